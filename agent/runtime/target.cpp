// SPDX-License-Identifier: Apache-2.0
/* Target constructs of OpenMP as regions: launches of kernels, and copies from and to devices (docs/design/offload.md).
 *
 * OpenMP calls the callbacks on the host when it starts a kernel, not when a device runs it. If the device is the host,
 * the kernel runs within the call that starts it.
 */
#include "clock.h"
#include "further.h"
#include "hot.h"
#include "ompt.h"
#include "tree.h"

#include <string.h>

namespace quipu {
namespace {

using namespace ompt;

/* ompt_callbacks_t (OpenMP 5.2, 19.4.4.1) */
enum Event {
    event_device_initialize = 12,
    event_target_emi = 33,
    event_target_data_op_emi = 34,
    event_target_submit_emi = 35
};
/* ompt_target_t, ompt_target_data_op_t (OpenMP 5.2, 19.4.4.15, 19.4.4.16). asynchronous: added to the numbers of
 * asynchronous operations. */
enum Construct { target = 1, target_enter_data = 2, target_exit_data = 3, target_update = 4, without_waiting = 8 };
enum Operation { alloc = 1, to_device = 2, from_device = 3, release = 4, asynchronous = 16 };

quipu_region constructs[] = {openmp_region("omp target"), openmp_region("omp target enter data"),
                             openmp_region("omp target exit data"), openmp_region("omp target update")};
quipu_region operations[] = {openmp_region("omp device allocate"), openmp_region("omp copy to device"),
                             openmp_region("omp copy from device"), openmp_region("omp device release")};
quipu_region launch = openmp_region("omp kernel");

constexpr int most_devices = 64;
bool on_host[most_devices]; /* whether the device with this number runs kernels on this host (on_device) */

struct Kernel {
    uint64_t threads, iterations; /* 0: unknown */
    uint64_t begun;               /* ticks */
    bool on_host;                 /* whether the device of the construct runs kernels on this host */
};

thread_local Kernel kernel;

void add(quipu_further_metric metric, uint64_t value) {
    const uint32_t place = quipu_further_place(QUIPU_GROUP_OFFLOAD);
    quipu_node *node = place ? quipu_here() : nullptr;
    if (node && node->id)
        quipu_increase(&node->metrics[place + metric], value);
}

/* Ends the innermost frame if it belongs to this region. */
void leave(const quipu_region *region) {
    const quipu_node *node = quipu_here();
    if (node && node->region == id_of(region))
        quipu_exit(quipu_top());
}

void on_device(int number, const char *type, void *, Lookup, const char *) {
    if (number >= 0 && number < most_devices)
        on_host[number] = type && strcmp(type, "generic-64bit") == 0;
}

void on_target(int kind, Endpoint endpoint, int device, Data *, Data *, Data *construct, const void *) {
    const int of = kind & ~without_waiting;
    if (of < target || of > target_update)
        return;
    if (endpoint == scope_end) {
        if (construct && ompt::get(construct))
            quipu_exit(static_cast<quipu_frame *>(ompt::get(construct)));
        return;
    }
    kernel.on_host = device >= 0 && device < most_devices && on_host[device];
    quipu_frame *frame = quipu_enter(&constructs[of - target]);
    if (construct)
        ompt::set(construct, quipu_here() ? frame : nullptr);
}

void on_operation(Endpoint endpoint, Data *, Data *, uint64_t *, int kind, void *, int, void *, int, size_t bytes,
                  const void *) {
    const int of = kind > asynchronous ? kind - asynchronous : kind;
    if (of < alloc || of > release)
        return;
    quipu_region *region = &operations[of - alloc];
    if (endpoint != scope_end)
        quipu_enter(region);
    if (endpoint == scope_begin)
        return;
    if (of == to_device)
        add(QUIPU_BYTES_TO_DEVICE, bytes);
    if (of == from_device)
        add(QUIPU_BYTES_FROM_DEVICE, bytes);
    leave(region);
}

void on_submit(Endpoint endpoint, Data *, uint64_t *, unsigned requested_teams) {
    if (endpoint != scope_end) {
        quipu_enter(&launch);
        kernel.begun = ticks(clock_kind);
        const uint64_t teams = static_cast<int>(requested_teams) > 0 ? requested_teams : 0;
        add(QUIPU_KERNEL_LAUNCHES, 1);
        add(QUIPU_KERNEL_TEAMS, teams);
        add(QUIPU_KERNEL_THREADS, teams * kernel.threads);
        add(QUIPU_KERNEL_ITERATIONS, kernel.iterations);
    }
    if (endpoint == scope_begin)
        return;
    const uint64_t now = ticks(clock_kind);
    if (kernel.on_host && now > kernel.begun)
        add(QUIPU_DEVICE_TIME, now - kernel.begun);
    leave(&launch);
}

} // namespace

namespace ompt {

void watch_targets(SetCallback set) {
    set(event_device_initialize, reinterpret_cast<Callback>(on_device));
    set(event_target_emi, reinterpret_cast<Callback>(on_target));
    set(event_target_data_op_emi, reinterpret_cast<Callback>(on_operation));
    set(event_target_submit_emi, reinterpret_cast<Callback>(on_submit));
}

} // namespace ompt
} // namespace quipu

extern "C" void quipu_next_kernel(uint64_t threads, uint64_t iterations) {
    quipu::kernel.threads = threads;
    quipu::kernel.iterations = iterations;
}
