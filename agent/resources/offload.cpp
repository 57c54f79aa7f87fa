// SPDX-License-Identifier: Apache-2.0
/* libquipu_offload.so: wrappers of functions that launch kernels on GPUs and copy data (docs/design/offload.md).
 *
 * CUDA and HIP: functions of the driver and of the runtime. OpenMP: a function of libomptarget (LLVM), for properties
 * of kernels that the tool interface of OpenMP (OMPT) does not report. Headers of these interfaces are not needed:
 * streams, functions and similar arguments are addresses. */
#include "further.h"
#include "hot.h"
#define QUIPU_REGION_RUNTIME
#include "quipu/region.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

namespace quipu::offload {
namespace {

/* Error code "not initialized" of the driver of CUDA, of its runtime, and of HIP. Returned if the library is missing.
 */
constexpr int not_initialized = 3;

__thread bool inside; /* inside of a counted call; calls that the CUDA or HIP library makes itself are not counted */

template <typename Function> Function next_of(const char *name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void add(quipu_further_metric metric, uint64_t value) {
    const uint32_t place = quipu_further_place ? quipu_further_place(QUIPU_GROUP_OFFLOAD) : 0;
    quipu_node *node = place ? quipu_here() : nullptr;
    if (node && node->id)
        quipu_increase(&node->metrics[place + metric], value);
}

struct Kernel {
    const char *name;        /* null: not known */
    uint64_t teams, threads; /* number of teams (blocks), and number of threads of each team */
};

struct Copy {
    uint64_t to_device, from_device; /* bytes */
};

/* Converts a direction of type cudaMemcpyKind or hipMemcpyKind. If the library determines the direction itself (kind
 * "default"), the direction is unknown here, and no bytes are counted. */
Copy copy_of(uint64_t bytes, int kind) {
    enum { host_to_device = 1, device_to_host = 2 };
    return {kind == host_to_device ? bytes : 0, kind == device_to_host ? bytes : 0};
}

/* Dimensions of a grid or a block (dim3). */
struct Dimensions {
    unsigned x, y, z;
    uint64_t all() const { return uint64_t{x} * y * z; }
};

/* The beginning of CUlaunchConfig and of cudaLaunchConfig_t. */
struct Launch {
    Dimensions grid, block;
};

void count(const Kernel &kernel) {
    add(QUIPU_KERNEL_LAUNCHES, 1);
    add(QUIPU_KERNEL_TEAMS, kernel.teams);
    add(QUIPU_KERNEL_THREADS, kernel.teams * kernel.threads);
}

void count(const Copy &copy) {
    add(QUIPU_BYTES_TO_DEVICE, copy.to_device);
    add(QUIPU_BYTES_FROM_DEVICE, copy.from_device);
}

/* A call that waits for the device and counts nothing. */
struct Waiting {};
void count(const Waiting &) {}

const char *kernel_name(const Kernel &kernel) { return kernel.name ? quipu_region_name(kernel.name) : nullptr; }
template <typename Other> const char *kernel_name(const Other &) { return nullptr; }

/* Calls the library in a region, and counts the call. The region has the name of the kernel; if there is none, the name
 * of the called function. what: the Kernel, Copy or Waiting to count. */
template <typename What, typename Call> int counted(const char *name, const What &what, Call call) {
    if (inside)
        return call();
    const int error = errno;
    const char *kernel = kernel_name(what);
    const char *region = kernel ? kernel : name;
    inside = true;
    quipu_region_begin(region);
    count(what);
    errno = error;
    const int result = call();
    const int after = errno;
    quipu_region_end(region);
    inside = false;
    errno = after;
    return result;
}

/* Functions that return the name of a kernel; null if the library has no function for it. These functions are
 * cuFuncGetName and cudaFuncGetName (since CUDA 12.3), hipKernelNameRef and hipKernelNameRefByPtr. */
using NameOf = int (*)(const char **, const void *);
const char *name_by(NameOf function, const void *kernel) {
    const char *name = nullptr;
    return function && function(&name, kernel) == 0 ? name : nullptr;
}
const char *cuda_name(const void *kernel) {
    static const auto function = next_of<NameOf>("cuFuncGetName");
    return name_by(function, kernel);
}
const char *cuda_runtime_name(const void *kernel) {
    static const auto function = next_of<NameOf>("cudaFuncGetName");
    return name_by(function, kernel);
}
const char *hip_name(const void *kernel) {
    static const auto function = next_of<const char *(*)(const void *)>("hipKernelNameRef");
    return function ? function(kernel) : nullptr;
}
const char *hip_runtime_name(const void *kernel, const void *stream) {
    static const auto function = next_of<const char *(*)(const void *, const void *)>("hipKernelNameRefByPtr");
    return function ? function(kernel, stream) : nullptr;
}

/* Beginning of the structure that the compiler passes to libomptarget for a kernel (LLVM 16 and later,
 * openmp/libomptarget/include). iterations: number of iterations of the distributed loop; 0: unknown. */
struct KernelArguments {
    uint32_t version, count;
    void *arguments[6];
    uint64_t iterations;
};

} // namespace
} // namespace quipu::offload

using namespace quipu::offload;

#define EXPORTED __attribute__((visibility("default")))

extern "C" {

EXPORTED int __tgt_target_kernel(void *place, int64_t device, int32_t teams, int32_t threads, void *host,
                                 KernelArguments *arguments) {
    static const auto next = next_of<decltype(&__tgt_target_kernel)>("__tgt_target_kernel");
    if (!next)
        return 1; /* failure: the program then runs the construct on the host */
    constexpr uint32_t oldest = 2;
    const bool known = arguments && arguments->version >= oldest && arguments->version < 16;
    if (quipu_next_kernel)
        quipu_next_kernel(threads > 0 ? static_cast<uint64_t>(threads) : 0, known ? arguments->iterations : 0);
    const int result = next(place, device, teams, threads, host, arguments);
    if (quipu_next_kernel)
        quipu_next_kernel(0, 0);
    return result;
}

// NOLINTBEGIN(bugprone-macro-parentheses): names of functions and their parameters
#define CALL(name, parameters, arguments, what)                                                                        \
    EXPORTED int name parameters;                                                                                      \
    int name parameters {                                                                                              \
        static const auto next = next_of<decltype(&name)>(#name);                                                      \
        return next ? counted(#name, what, [&] { return next arguments; }) : not_initialized;                          \
    }
/* Defines a wrapper of a function of CUDA, and of its variant for per-thread default streams. */
#define CALL_OF(name, suffix, parameters, arguments, what)                                                             \
    CALL(name, parameters, arguments, what)                                                                            \
    CALL(name##suffix, parameters, arguments, what)

/* The driver of CUDA */
#define SHAPE unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz
#define TEAMS (Dimensions{gx, gy, gz}.all())
#define THREADS (Dimensions{bx, by, bz}.all())
CALL_OF(cuLaunchKernel, _ptsz, (void *kernel, SHAPE, unsigned shared, void *stream, void **values, void **extra),
        (kernel, gx, gy, gz, bx, by, bz, shared, stream, values, extra), (Kernel{cuda_name(kernel), TEAMS, THREADS}))
CALL_OF(cuLaunchCooperativeKernel, _ptsz, (void *kernel, SHAPE, unsigned shared, void *stream, void **values),
        (kernel, gx, gy, gz, bx, by, bz, shared, stream, values), (Kernel{cuda_name(kernel), TEAMS, THREADS}))
CALL_OF(cuLaunchKernelEx, _ptsz, (const Launch *launch, void *kernel, void **values, void **extra),
        (launch, kernel, values, extra), (Kernel{cuda_name(kernel), launch->grid.all(), launch->block.all()}))
CALL_OF(cuMemcpyHtoD_v2, _ptds, (uint64_t to, const void *from, size_t bytes), (to, from, bytes), (Copy{bytes, 0}))
CALL_OF(cuMemcpyDtoH_v2, _ptds, (void *to, uint64_t from, size_t bytes), (to, from, bytes), (Copy{0, bytes}))
CALL_OF(cuMemcpyHtoDAsync_v2, _ptsz, (uint64_t to, const void *from, size_t bytes, void *stream),
        (to, from, bytes, stream), (Copy{bytes, 0}))
CALL_OF(cuMemcpyDtoHAsync_v2, _ptsz, (void *to, uint64_t from, size_t bytes, void *stream), (to, from, bytes, stream),
        (Copy{0, bytes}))
CALL(cuCtxSynchronize, (), (), Waiting{})
CALL_OF(cuStreamSynchronize, _ptsz, (void *stream), (stream), Waiting{})
CALL(cuEventSynchronize, (void *event), (event), Waiting{})

/* The runtime of CUDA, if the program is linked with its shared library */
CALL_OF(cudaLaunchKernel, _ptsz,
        (const void *kernel, Dimensions grid, Dimensions block, void **values, size_t shared, void *stream),
        (kernel, grid, block, values, shared, stream), (Kernel{cuda_runtime_name(kernel), grid.all(), block.all()}))
CALL_OF(cudaLaunchCooperativeKernel, _ptsz,
        (const void *kernel, Dimensions grid, Dimensions block, void **values, size_t shared, void *stream),
        (kernel, grid, block, values, shared, stream), (Kernel{cuda_runtime_name(kernel), grid.all(), block.all()}))
CALL_OF(cudaLaunchKernelExC, _ptsz, (const Launch *launch, const void *kernel, void **values), (launch, kernel, values),
        (Kernel{cuda_runtime_name(kernel), launch->grid.all(), launch->block.all()}))
CALL_OF(cudaMemcpy, _ptds, (void *to, const void *from, size_t bytes, int kind), (to, from, bytes, kind),
        copy_of(bytes, kind))
CALL_OF(cudaMemcpyAsync, _ptsz, (void *to, const void *from, size_t bytes, int kind, void *stream),
        (to, from, bytes, kind, stream), copy_of(bytes, kind))
CALL_OF(cudaMemcpy2D, _ptds,
        (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind),
        (to, to_pitch, from, from_pitch, width, height, kind), copy_of(width *height, kind))
CALL_OF(cudaMemcpy2DAsync, _ptsz,
        (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind,
         void *stream),
        (to, to_pitch, from, from_pitch, width, height, kind, stream), copy_of(width *height, kind))
CALL(cudaDeviceSynchronize, (), (), Waiting{})
CALL_OF(cudaStreamSynchronize, _ptsz, (void *stream), (stream), Waiting{})
CALL(cudaEventSynchronize, (void *event), (event), Waiting{})

/* HIP */
CALL_OF(hipModuleLaunchKernel, _spt, (void *kernel, SHAPE, unsigned shared, void *stream, void **values, void **extra),
        (kernel, gx, gy, gz, bx, by, bz, shared, stream, values, extra), (Kernel{hip_name(kernel), TEAMS, THREADS}))
CALL_OF(hipLaunchKernel, _spt,
        (const void *kernel, Dimensions grid, Dimensions block, void **values, size_t shared, void *stream),
        (kernel, grid, block, values, shared, stream),
        (Kernel{hip_runtime_name(kernel, stream), grid.all(), block.all()}))
CALL(hipLaunchCooperativeKernel,
     (const void *kernel, Dimensions grid, Dimensions block, void **values, unsigned shared, void *stream),
     (kernel, grid, block, values, shared, stream), (Kernel{hip_runtime_name(kernel, stream), grid.all(), block.all()}))
CALL(hipExtLaunchKernel,
     (const void *kernel, Dimensions grid, Dimensions block, void **values, size_t shared, void *stream, void *start,
      void *stop, int flags),
     (kernel, grid, block, values, shared, stream, start, stop, flags),
     (Kernel{hip_runtime_name(kernel, stream), grid.all(), block.all()}))
CALL_OF(hipMemcpy, _spt, (void *to, const void *from, size_t bytes, int kind), (to, from, bytes, kind),
        copy_of(bytes, kind))
CALL_OF(hipMemcpyAsync, _spt, (void *to, const void *from, size_t bytes, int kind, void *stream),
        (to, from, bytes, kind, stream), copy_of(bytes, kind))
CALL(hipMemcpyWithStream, (void *to, const void *from, size_t bytes, int kind, void *stream),
     (to, from, bytes, kind, stream), copy_of(bytes, kind))
CALL(hipMemcpyHtoD, (void *to, void *from, size_t bytes), (to, from, bytes), (Copy{bytes, 0}))
CALL(hipMemcpyDtoH, (void *to, void *from, size_t bytes), (to, from, bytes), (Copy{0, bytes}))
CALL(hipMemcpyHtoDAsync, (void *to, void *from, size_t bytes, void *stream), (to, from, bytes, stream),
     (Copy{bytes, 0}))
CALL(hipMemcpyDtoHAsync, (void *to, void *from, size_t bytes, void *stream), (to, from, bytes, stream),
     (Copy{0, bytes}))
CALL(hipDeviceSynchronize, (), (), Waiting{})
CALL_OF(hipStreamSynchronize, _spt, (void *stream), (stream), Waiting{})
CALL(hipEventSynchronize, (void *event), (event), Waiting{})
// NOLINTEND(bugprone-macro-parentheses)
}
