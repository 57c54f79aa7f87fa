# SPDX-License-Identifier: Apache-2.0
"""Kernels on devices and copies to and from them: OpenMP on the host's own device, CUDA and HIP with stand-ins."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from quipu.agent.installation import native_file

from .conftest import Measured, Workshop

LIBRARY = native_file("libquipu_offload.so")
HOST = ("-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu", "-Wl,-rpath,/usr/lib/llvm-19/lib")
OPENMP = """
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static void scale(double *a, int n) {
#pragma omp target teams distribute parallel for map(tofrom : a[0 : n]) num_teams(2) thread_limit(1)
    for (int i = 0; i < n; i++)
        a[i] = 2 * a[i] + omp_is_initial_device();
}
__attribute__((noinline)) static void later(double *a, int n) {
#pragma omp target map(to : a[0 : n]) nowait
    a[0] = 0;
#pragma omp taskwait
}
int main(int argc, char **argv) {
    int n = atoi(argv[1]);
    double *a = malloc(n * sizeof *a);
    for (int i = 0; i < n; i++) a[i] = i;
    scale(a, n);
#pragma omp target data map(to : a[0 : n])
    {
        for (int k = 0; k < 3; k++) scale(a, n);
#pragma omp target update from(a[0 : n / 2])
    }
    later(a, n);
    printf("%g %d\\n", a[n / 4], omp_get_num_devices() > 0);
    return 0;
}
"""


def asked(workshop: Workshop, program: Path, *arguments: str, ends_with: int = 0, **environment: str) -> Measured:
    """Run a program as `quipu run --offload` does."""
    library = str(LIBRARY)
    return workshop.run(program, *arguments, ends_with=ends_with, QUIPU_OFFLOAD="1", LD_PRELOAD=library, **environment)


def openmp(workshop: Workshop, *options: str) -> Path:
    source = workshop.folder / "offloaded.c"
    source.write_text(OPENMP)
    return workshop.build(source, "-O2", *HOST, *options)


@pytest.mark.parametrize("options", [(), ("-g",)], ids=["plain", "debug information"])
def test_kernels_of_openmp(workshop: Workshop, options: tuple[str, ...]) -> None:
    measured = asked(workshop, openmp(workshop, *options), "1000")
    assert measured.stdout == "4000 1\n"
    kernel = measured.tree["main", "scale", "omp target", "omp kernel"]
    counts = [kernel[f"kernel_{name}"] for name in ("launches", "teams", "threads", "iterations")]
    assert counts == [4, 8, 8, 4000]
    assert kernel["device_time"] > 0
    below = sum(values["time"] for path, values in measured.tree.items() if "omp kernel" in path and "scale" in path)
    assert kernel["device_time"] <= 1.01 * below


def test_copies_of_openmp(workshop: Workshop) -> None:
    tree = asked(workshop, openmp(workshop), "1000").tree
    to, back = "omp copy to device", "omp copy from device"
    scale = ("main", "scale", "omp target")
    assert (tree[(*scale, to)]["bytes_to_device"], tree[(*scale, back)]["bytes_from_device"]) == (8000, 8000)
    assert tree["main", "omp target enter data", to]["bytes_to_device"] == 8000
    assert tree["main", "omp target update", back]["bytes_from_device"] == 4000
    assert tree["main", "later", "omp target", to]["bytes_to_device"] == 8000
    assert tree["main", "later", "omp target", "omp kernel"]["kernel_launches"] == 1
    for metric, total in (("bytes_to_device", 24_000), ("bytes_from_device", 12_000)):
        assert sum(values[metric] for values in tree.values()) == total


def test_what_kernels_do_on_this_host_is_counted(workshop: Workshop) -> None:
    tree = asked(workshop, openmp(workshop), "1000").tree
    kernel = ("main", "scale", "omp target", "omp kernel", "scale (omp target line 6)")
    assert tree[kernel]["visits"] == 4
    stores = sum(values["stores"] for path, values in tree.items() if path[:5] == kernel)
    assert stores >= 4 * 1000


def test_without_being_asked_regions_have_time_alone(workshop: Workshop) -> None:
    measured = workshop.run(openmp(workshop), "1000")
    assert measured.stdout == "4000 1\n"
    kernel = measured.tree["main", "scale", "omp target", "omp kernel"]
    assert kernel["visits"] == 4
    assert kernel["time"] > 0
    assert "kernel_launches" not in measured.profile.values


def test_a_target_construct_on_the_host_launches_nothing(workshop: Workshop) -> None:
    measured = asked(workshop, openmp(workshop), "1000", OMP_TARGET_OFFLOAD="disabled")
    assert sum(values["kernel_launches"] for values in measured.tree.values()) == 0
    assert not [path for path in measured.tree if "omp kernel" in path]


HEAD = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef struct { unsigned x, y, z; } dim3;
"""
CUDA_DRIVER = """
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **values, void **extra);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
int cuCtxSynchronize(void);
int main(void) {
    char data[100];
    int wrong = cuMemcpyHtoD_v2(1, data, 100);
    for (int i = 0; i < 3; i++)
        wrong |= cuLaunchKernel((void *)1, 4, 2, 1, 32, 4, 1, 0, NULL, NULL, NULL);
    wrong |= cuLaunchKernel((void *)2, 1, 1, 1, 8, 1, 1, 0, NULL, NULL, NULL) != 7;
    wrong |= cuCtxSynchronize() | cuMemcpyDtoH_v2(data, 1, 60);
    printf("%d\\n", wrong);
}
"""
CUDA_DRIVER_LIBRARY = """
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **values, void **extra) {
    printf("launch %u %u %u %u\\n", gx, gy, bx, by);
    return (uintptr_t)f == 2 ? 7 : 0;
}
int cuFuncGetName(const char **name, void *f) {
    *name = "saxpy";
    return (uintptr_t)f == 1 ? 0 : 1;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) { return 0; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { return 0; }
int cuCtxSynchronize(void) { return 0; }
"""
RUNTIME = """
int PREFIXLaunchKernel(const void *f, dim3 grid, dim3 block, void **values, size_t shared, void *stream);
int PREFIXMemcpy(void *to, const void *from, size_t bytes, int kind);
int PREFIXMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int PREFIXDeviceSynchronize(void);
int main(void) {
    char data[100];
    dim3 grid = {4, 2, 1}, block = {32, 4, 1};
    int wrong = PREFIXMemcpy(data, data, 100, 1);
    for (int i = 0; i < 3; i++)
        wrong |= PREFIXLaunchKernel((void *)1, grid, block, NULL, 5, (void *)6);
    wrong |= PREFIXMemcpyAsync(data, data, 60, 2, NULL) | PREFIXMemcpy(data, data, 1000, 3);
    wrong |= PREFIXDeviceSynchronize();
    printf("%d\\n", wrong);
}
"""
RUNTIME_LIBRARY = """
int PREFIXMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream) { return 0; }
int PREFIXMemcpy(void *to, const void *from, size_t bytes, int kind) {
    return PREFIXMemcpyAsync(to, from, bytes, kind, NULL);
}
int PREFIXLaunchKernel(const void *f, dim3 grid, dim3 block, void **values, size_t shared, void *stream) {
    printf("launch %u %u %u %u %zu %p\\n", grid.x, grid.y, block.x, block.y, shared, stream);
    return 0;
}
int PREFIXDeviceSynchronize(void) { return 0; }
int cudaFuncGetName(const char **name, const void *f) { *name = "saxpy"; return 0; }
const char *hipKernelNameRefByPtr(const void *f, void *stream) { return "saxpy"; }
"""


def run(workshop: Workshop, program: str, library: str) -> Measured:
    """Run a program that calls a library of devices; library: the source of what stands for it."""
    source, stand_in = workshop.folder / "program.c", workshop.folder / "stand_in.c"
    source.write_text(HEAD + program)
    stand_in.write_text(HEAD + library)
    shared = stand_in.with_name("libstand_in.so")
    subprocess.run(["clang-19", "-shared", "-fPIC", stand_in, "-o", shared], check=True)
    built = workshop.build(source, "-O1", str(shared), f"-Wl,-rpath,{shared.parent}")
    return asked(workshop, built)


def test_the_driver_of_cuda(workshop: Workshop) -> None:
    measured = run(workshop, CUDA_DRIVER, CUDA_DRIVER_LIBRARY)
    assert measured.stdout == "launch 4 2 32 4\n" * 3 + "launch 1 1 8 1\n0\n"
    tree = measured.tree
    named, other = tree["main", "saxpy"], tree["main", "cuLaunchKernel"]
    assert [named[f"kernel_{name}"] for name in ("launches", "teams", "threads")] == [3, 24, 3 * 8 * 128]
    assert [other[f"kernel_{name}"] for name in ("launches", "teams", "threads")] == [1, 1, 8]
    assert tree["main", "cuMemcpyHtoD_v2"]["bytes_to_device"] == 100
    assert tree["main", "cuMemcpyDtoH_v2"]["bytes_from_device"] == 60
    assert tree["main", "cuCtxSynchronize"]["visits"] == 1


@pytest.mark.parametrize("prefix", ["cuda", "hip"])
def test_the_runtime_of_cuda_and_hip(workshop: Workshop, prefix: str) -> None:
    program, library = (text.replace("PREFIX", prefix) for text in (RUNTIME, RUNTIME_LIBRARY))
    measured = run(workshop, program, library)
    assert measured.stdout == "launch 4 2 32 4 5 0x6\n" * 3 + "0\n"
    tree = measured.tree
    assert tree["main", "saxpy"]["kernel_threads"] == 3 * 8 * 128
    assert tree["main", f"{prefix}Memcpy"]["bytes_to_device"] == 100
    assert tree["main", f"{prefix}MemcpyAsync"]["bytes_from_device"] == 60
    assert sum(values["bytes_to_device"] + values["bytes_from_device"] for values in tree.values()) == 160
    assert tree["main", f"{prefix}Memcpy"]["visits"] == 2


def test_a_function_that_no_library_has_fails(workshop: Workshop) -> None:
    source = workshop.folder / "alone.c"
    source.write_text(
        '#include <dlfcn.h>\nint main(void) { return ((int (*)(void))dlsym(0, "cudaDeviceSynchronize"))(); }\n'
    )
    asked(workshop, workshop.build(source, "-O1"), ends_with=3)
