# SPDX-License-Identifier: Apache-2.0
"""Small functions count in the counters of their callers, exactly, whatever ends the callers."""

from __future__ import annotations

import subprocess

import pytest
from class_counts import assert_classes_equal_metrics
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.merge.run import merge_run

from .conftest import INSTALLED_LLVMS, Workshop
from .test_exactness import counts

HEADER = """
#pragma once
#define APART __attribute__((noinline))
APART inline int same(int n) { return n * 3; }
APART inline int choose(int n) { return n > 40 ? n / 3 : n < 7 ? same(n) : n + 1; }
APART inline int both(int n) { return choose(n) + choose(same(n)); }
struct Shape {
    virtual ~Shape() = default;
    virtual int sides(int n) const = 0;
};
struct Square : Shape {
    APART int sides(int n) const override { return n & 1 ? 4 : both(n); }
};
int other(int n);
"""

MAIN = """
#include "small.h"
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

static std::jmp_buf jump;
struct Counted {
    int *place;
    APART ~Counted() { ++*place; }
};
APART static int checked(int n) {
    if (n % 5 == 0)
        throw std::runtime_error("five");
    return same(n);
}
APART static int away(int n) {
    if (n % 7 == 0)
        std::longjmp(jump, n);
    return n;
}
// What comes after a call that may not come back is in the same block.
APART static int after(int n) { return choose(away(n)) + both(n); }
APART static int caught(int n) {
    int left = 0;
    try {
        Counted object{&left};
        return choose(checked(n)) + same(checked(n + 1));
    } catch (const std::exception &) {
        return both(n) + left;
    }
}
APART static int last(int n) {
    if (n < 0)
        std::exit(3);
    return choose(n);
}
APART static int deep(int n) { return n > 0 ? both(n) + deep(n - 1) : same(n); }

int main(int argc, char **argv) {
    const int n = argc > 1 ? std::atoi(argv[1]) : 30;
    volatile int sum = 0;
    Square square;
    const Shape *shape = &square;
    int (*volatile pointer)(int) = choose;
    for (volatile int i = 1; i < n; i = i + 1) {
        if (setjmp(jump) == 0)
            sum = sum + after(i);
        sum = sum + caught(i) + deep(i % 4) + other(i) + shape->sides(i) + square.sides(i) + pointer(i);
    }
    std::printf("%d\\n", sum);
    std::fflush(stdout);
    return last(last(n) < 0 ? 1 : -n) + same(n);
}
"""

OTHER = """
#include "small.h"
int other(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += both(i) + choose(i);
    return sum;
}
"""


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
def test_counts_are_those_of_one_call_per_block(workshop: Workshop, llvm: str, level: str) -> None:
    (workshop.folder / "small.h").write_text(HEADER)
    sources = workshop.folder / "main.cpp", workshop.folder / "other.cpp"
    for source, text in zip(sources, (MAIN, OTHER), strict=True):
        source.write_text(text)
    runs = []
    for name, options in (("naive", ("--quipu-naive",)), ("fast", ()), ("shared", ("-fPIC",))):
        # Two files with the same inline functions, optimized differently.
        compiled = workshop.build(sources[1], *options, "-Os" if level == "-O1" else "-O1", "-c", name=f"{name}.o")
        program = workshop.build(sources[0], *options, level, str(compiled), name=name)
        runs.append(workshop.run(program, "60", ends_with=3))
        plain = subprocess.run([program, "60"], capture_output=True, text=True, check=False)
        assert (plain.stdout, plain.returncode) == (runs[0].stdout, 3)
    exact, fast, shared = map(counts, runs)
    assert exact == fast == shared
    merged = merge_run(runs[1].profile.path.parent, workshop.folder / "runs", RunMetadata(exit_code=3))
    assert_classes_equal_metrics(read_archive(merged.path))


def test_who_counts_for_a_function_needs_no_hook(workshop: Workshop) -> None:
    """The call path remains without a hook, and its time is in that of the caller."""
    source = workshop.folder / "calls.c"
    source.write_text(
        """
__attribute__((noinline)) int leaf(int n) { return n & 3 ? n + 1 : n / 3; }
__attribute__((noinline)) int middle(int n) { return leaf(n) + leaf(n + 1); }
int main(void) {
    volatile int sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += middle(i);
    return 0;
}
"""
    )
    tree = workshop.run(workshop.build(source, "-O2")).tree
    assert tree[("main", "middle")]["visits"] == 1000
    assert tree[("main", "middle", "leaf")]["visits"] == 2000
    assert tree[("main", "middle")]["time"] == tree[("main", "middle", "leaf")]["time"] == 0
    assert tree[("main",)]["time"] > 0


CALLS = 100000
CALLED = f"""
#include <cstdio>
__attribute__((noinline)) static int choose(int n) {{ return n % 3 ? n / 7 + n * 5 : n ^ 21; }}
int main() {{
    int sum = 0;
    for (int i = 0; i < {CALLS}; i++)
        sum ^= choose(i);
    std::printf("%d\\n", sum);
}}
"""


def test_the_estimate_knows_counters_that_callers_have(workshop: Workshop) -> None:
    source = workshop.folder / "called.cpp"
    source.write_text(CALLED)
    run = workshop.run(workshop.build(source, "-O2"), QUIPU_CLOCK="none")
    assert run.tree["main", "choose(int)"]["visits"] == CALLS
    seconds = float(run.profile.attributes["counter_ns"]) * 1e-9
    # Each call passes the address of the counters, and adds to at most one counter, in one or two of three calls.
    assert CALLS * 4 / 3 * seconds * 0.99 <= run.tree[("main",)]["overhead"] <= 2.2 * CALLS * seconds + 1e-6


ADDING = {
    # The address of the counters in each visit, and one addition if n is a multiple of 3, which is expected to be rare.
    "ways": (
        "__attribute__((noinline)) static int f(int n) { if (n % 3 == 0) return n / 7; if (n % 5 == 0) return n ^ 21;"
        " return n * 5; }\nint main(void) { volatile int sum = 0; for (int i = 0; i < COUNT; i++) sum ^= f(i); }",
        CALLS * 4 // 3,
    ),
    # The loop and the branch count in registers; every second iteration takes the branch.
    "register": (
        "volatile int odd = 1;\nint main(void) { int sum = 0, step = odd; for (int i = 0; i < COUNT; i += step)"
        " if (i & 1) sum += 1000000 / (i + 1); odd = sum; }",
        3 * CALLS // 2,
    ),
    # Known in closed form.
    "closed": ("double x[COUNT];\nint main(void) { for (int i = 0; i < COUNT; i++) x[i] += i; return 0; }", 0),
}


@pytest.mark.parametrize("name", ADDING)
def test_the_estimate_knows_the_additions_of_counting(workshop: Workshop, name: str) -> None:
    code, additions = ADDING[name]
    source = workshop.folder / f"{name}.c"
    source.write_text(code.replace("COUNT", str(CALLS)))
    run = workshop.run(workshop.build(source, "-O2", name=name), QUIPU_CLOCK="none")
    costs = {key: float(run.profile.attributes[key]) * 1e-9 for key in ("counter_ns", "pair_ns")}
    found = (run.tree[("main",)]["overhead"] - costs["pair_ns"]) / costs["counter_ns"]
    assert found == pytest.approx(additions, rel=0.01, abs=10)
