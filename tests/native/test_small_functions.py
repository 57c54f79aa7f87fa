# SPDX-License-Identifier: Apache-2.0
"""Small functions are counted exactly and leave the registers of their callers alone, whoever calls them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import INSTALLED_LLVMS, Workshop
from .test_exactness import counts

# Eight vectors are alive while each function is called for the first time, and later from other call paths.
REGISTERS = """
#include <stdio.h>
#include <pthread.h>
typedef double vector __attribute__((vector_size(WIDTH)));
__attribute__((noinline)) double choose(double a, double b) {
    if (a > 3 * b)
        return a;
    if (a < b)
        return a * b;
    return b - a;
}
__attribute__((noinline)) vector mix(const double *from, vector a, vector b, vector c, vector d) {
    vector e = a * b, f = c + d, g = a - d, h = b * c;
    double scale = choose(from[0], from[1]);
    return (a + b * scale) + (c - d) * scale + e * f - g * h;
}
__attribute__((noinline)) double sum(vector v) {
    double total = 0;
    for (unsigned i = 0; i < sizeof v / sizeof(double); i++)
        total += v[i];
    return total;
}
__attribute__((noinline)) double first(const double *from, vector v) { return sum(mix(from, v, v + 1, v * 2, v - 3)); }
__attribute__((noinline)) double second(const double *from, vector v) { return sum(mix(from, v * 3, v, v + 2, v)); }
static void *run(void *result) {
    double numbers[] = {1, 2, 0.5, 7, 3};
    vector v = {1, 2};
    double total = 0;
    for (int i = 0; i < 1000; i++)
        total += i % 3 ? first(numbers + i % 4, v * i) : second(numbers + i % 4, v + i);
    *(double *)result = total;
    return 0;
}
int main(void) {
    double result[4];
    pthread_t threads[4];
    run(&result[0]);
    for (int i = 1; i < 4; i++)
        pthread_create(&threads[i], 0, run, &result[i]);
    for (int i = 1; i < 4; i++)
        pthread_join(threads[i], 0);
    printf("%a %a %a %a\\n", result[0], result[1], result[2], result[3]);
    return 0;
}
"""


def vector_options() -> list[tuple[str, int]]:
    """Return the processor options that this machine can run, with the bytes of a vector."""
    flags = Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0].split()
    found = [("-march=x86-64", 16)]
    if "avx" in flags:
        found.append(("-mavx", 32))
    if "avx512f" in flags:
        found.append(("-mavx512f", 64))
    return found


@pytest.mark.parametrize("kind", ["program", "library"])
def test_registers_of_callers(workshop: Workshop, kind: str) -> None:
    source = workshop.folder / "registers.c"
    source.write_text(REGISTERS)
    position = ["-fPIC"] if kind == "library" else []
    for option, width in vector_options():
        options = ["-O2", option, f"-DWIDTH={width}", "-ffp-contract=off", "-pthread", "-w"]
        plain = workshop.folder / "plain"
        subprocess.run([f"clang-{workshop.llvm}", *options, source, "-o", plain], check=True)
        expected = subprocess.run([plain], capture_output=True, text=True, check=True, timeout=60).stdout
        program = workshop.build(source, *options, *position, "--quipu-all", name="all")
        assert workshop.run(program).stdout == expected
        program = workshop.build(source, *options, *position, name="fast")
        measured = workshop.run(program)
        unmeasured = subprocess.run([program], env={}, capture_output=True, text=True, check=True, timeout=60)
        assert (measured.stdout, unmeasured.stdout) == (expected, expected)
        exact = workshop.run(workshop.build(source, *options, "--quipu-naive", name="naive"))
        assert counts(measured) == counts(exact)


BRANCHES = """
#include <stdlib.h>
enum kind { A, B, C, D };
__attribute__((noinline)) int switched(int n, enum kind k) {
    switch (k) {
    case A: return n;
    case B: n = n * 3 + 1; /* fall through */
    case C: return n ^ 5;
    default: return n > 4 ? n / 2 : 7 - n;
    }
}
__attribute__((noinline)) int chain(int a, int b, int c) {
    int result = a;
    if (a > b) {
        if (b > c)
            return a + b;
        result *= c;
    } else if (c > 3)
        result += b;
    if (result & 1)
        result -= 9;
    return result;
}
__attribute__((noinline)) void fill(char *to, int n) {
    if (n > 5)
        __builtin_memset(to, n, n);
    else if (n == 3)
        *to = 3;
}
__attribute__((noinline)) int both(int n) {
    static char room[128];
    fill(room, n % 100);
    return switched(n, n % 4) + chain(n % 7, n % 5, n % 11) + room[n % 10];
}
int main(int argc, char **argv) {
    volatile int total = 0;
    for (int i = 0; i < atoi(argv[1]); i++)
        total ^= both(i) + switched(i, i % 3);
    return 0;
}
"""


@pytest.mark.parametrize("options", [(), ("-fPIC",), ("-flto",), ("-Os",)], ids=lambda o: " ".join(o) or "usual")
@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
def test_ways_through_small_functions(workshop: Workshop, llvm: str, options: tuple[str, ...]) -> None:
    source = workshop.folder / "branches.c"
    source.write_text(BRANCHES)
    exact = workshop.run(workshop.build(source, "-O2", "-w", *options, "--quipu-naive", name="naive"), "5000")
    fast = workshop.run(workshop.build(source, "-O2", "-w", *options, name="fast"), "5000")
    assert counts(fast) == counts(exact)
    assert fast.tree[("main", "switched")]["visits"] == 5000


MANY = """
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
__attribute__((noinline)) double far(int i) { if (i > 90) throw std::runtime_error("far"); return i * 0.5; }
template <int K> static inline double sum(int n) {
    double total = 0;
    for (int i = 0; i < n; i++)
        total += far(i) * K;
    return total;
}
__attribute__((noinline)) double many(int n) {
    try {
        return sum<1>(n) + sum<2>(n + 1) + sum<3>(n % 3) + sum<4>(n + 2) + sum<5>(n % 7);
    } catch (const std::exception &) {
        return sum<6>(n % 5);
    }
}
int main(int argc, char **argv) {
    double total = 0;
    for (int i = 0; i < std::atoi(argv[1]); i++)
        total += many(i);
    std::printf("%g\\n", total);
    return 0;
}
"""


@pytest.mark.parametrize("options", [(), ("-fPIC",), ("-flto",)], ids=lambda o: " ".join(o) or "usual")
@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
def test_many_functions_inside_of_one(workshop: Workshop, llvm: str, options: tuple[str, ...]) -> None:
    source = workshop.folder / "many.cpp"
    source.write_text(MANY)
    exact = workshop.run(workshop.build(source, "-O2", *options, "--quipu-naive", name="naive"), "100")
    program = workshop.build(source, "-O2", *options, name="fast")
    fast = workshop.run(program, "100")
    assert (fast.stdout, counts(fast)) == (exact.stdout, counts(exact))
    unmeasured = subprocess.run([program, "100"], capture_output=True, text=True, check=True, timeout=60)
    assert unmeasured.stdout == exact.stdout
