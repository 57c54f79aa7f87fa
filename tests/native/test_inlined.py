# SPDX-License-Identifier: Apache-2.0
"""Functions that the compiler inlines stay call paths of their own: the same ones, however the program was built."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from patience import until

from .conftest import INSTALLED_LLVMS, Tree
from .test_exactness import METRICS

MAIN = ("main",)
CALLS = {
    MAIN: 1,
    (*MAIN, "forces"): 1,
    (*MAIN, "forces", "pair"): 60 * 60,
    (*MAIN, "sort"): 1,
    (*MAIN, "search"): 1,
    (*MAIN, "search", "find"): 60,
    (*MAIN, "ways"): 465,
}


def called(tree: Tree) -> dict[tuple[str, ...], int]:
    return {path: int(values["visits"]) for path, values in tree.items() if values["visits"]}


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
@pytest.mark.parametrize("options", [(), ("-g",), ("-g0",), ("--quipu-inlined=counts",), ("--quipu-naive",)])
def test_call_paths_are_those_of_the_source(workshop, level: str, options: tuple[str, ...]) -> None:
    found = called(workshop.run(workshop.build("forces.c", level, *options)).tree)
    recursion = found.pop((*MAIN, "ways"))
    assert found == {path: visits for path, visits in CALLS.items() if path != (*MAIN, "ways")}
    # Where calls at the end became a loop, that loop counts in the visits of what was inlined.
    assert 1 <= recursion <= CALLS[(*MAIN, "ways")]


@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_scopes_split_what_is_counted_and_change_nothing(workshop, llvm: str, level: str) -> None:
    trees = [
        workshop.run(workshop.build("forces.c", level, *kept, name=f"p{len(kept)}")).tree
        for kept in ((), ("--quipu-inlined=off",))
    ]
    assert (*MAIN, "forces") not in trees[1]
    for metric in METRICS[1:]:
        with_scopes, without = (sum(values[metric] for values in tree.values()) for tree in trees)
        assert with_scopes == without, metric


def test_places_of_hooks_change_no_count_of_loops_one_after_the_other(workshop) -> None:
    """Sums that loops left are needed further on, guards are known from the loop before, and marks are dropped."""
    source = Path(__file__).parents[2] / "benchmarks/programs/ten_functions.c"
    timed, counted, off = (
        workshop.run(workshop.build(source, "-O2", f"--quipu-inlined={kept}", "-lm", name=kept), "100", "3").tree
        for kept in ("time", "counts", "off")
    )
    assert called(timed) == called(counted)
    assert timed[(*MAIN, "forces")]["visits"] == 3
    for metric in METRICS[1:]:
        sums = {sum(values[metric] for values in tree.values()) for tree in (timed, counted, off)}
        assert len(sums) == 1, (metric, sums)


@pytest.mark.parametrize("linker", ["-flto", "-flto=thin"])
def test_optimization_at_link_time_changes_no_call_path(workshop, linker: str) -> None:
    program = workshop.build("forces.c", "-O2", linker, "-fuse-ld=lld")
    found = called(workshop.run(program).tree)
    assert {path for path in found if path != (*MAIN, "ways")} == {path for path in CALLS if path != (*MAIN, "ways")}


def test_functions_that_do_enough_work_have_time(workshop) -> None:
    program = workshop.build("forces.c", "-O2")

    def share() -> float:  # of a run; one that waited for the processor in another function does not count
        tree = workshop.run(program, "2000").tree
        return tree[(*MAIN, "forces")]["time"] / sum(values["time"] for path, values in tree.items() if path)

    until(lambda: share() > 0.2, "a run spends a fifth of its time in forces")
    tree = workshop.run(program, "2000").tree
    assert tree[(*MAIN, "sort")]["time"] > 0
    assert tree[(*MAIN, "forces", "pair")]["time"] == 0
    untimed = workshop.run(workshop.build("forces.c", "-O2", "--quipu-inlined=counts", name="counts"), "2000").tree
    assert untimed[(*MAIN, "forces")]["time"] == 0
    assert untimed[(*MAIN, "forces")]["instructions"] == tree[(*MAIN, "forces")]["instructions"]


LEFT_BY_LONGJMP = """
#include <setjmp.h>

static jmp_buf back;
static volatile int state, sum;

__attribute__((noinline)) static void work(int count) {
    for (int i = 0; i < count; i++) {
        if (state == 1)
            longjmp(back, 1);
        sum += i;
    }
}
static void both(int count) {
    work(count);
    work(count + 1);
}
int main(int count, char **arguments) {
    if (setjmp(back) == 0)
        both(100 * count);
    return 0;
}
"""


@pytest.mark.parametrize("options", [(), ("--quipu-naive",)])
def test_an_exit_by_longjmp_does_not_limit_a_loop(workshop, options: tuple[str, ...]) -> None:
    """The functions around the loop do much work, and have hooks where they are inlined."""
    source = workshop.folder / "left.c"
    source.write_text(LEFT_BY_LONGJMP)
    found = called(workshop.run(workshop.build(source, "-O2", *options)).tree)
    assert found == {MAIN: 1, (*MAIN, "both"): 1, (*MAIN, "both", "work"): 2}


@pytest.mark.parametrize("when", ["compile", "run"])
def test_a_filter_makes_a_function_part_of_its_caller(workshop, when: str) -> None:
    rules = workshop.folder / "filter"
    rules.write_text("SCOREP_REGION_NAMES_BEGIN\nEXCLUDE forces find\nSCOREP_REGION_NAMES_END\n")
    whole = workshop.run(workshop.build("forces.c", "-O2", name="whole")).tree
    options, environment = (
        ((f"--quipu-filter={rules}",), {}) if when == "compile" else ((), {"QUIPU_FILTER": str(rules)})
    )
    tree = workshop.run(workshop.build("forces.c", "-O2", *options), **environment).tree
    assert (*MAIN, "forces") not in tree
    assert tree[(*MAIN, "pair")]["visits"] == 60 * 60
    for metric in METRICS[1:]:
        assert sum(v[metric] for v in tree.values()) == sum(v[metric] for v in whole.values()), metric


EXCEPTIONS = """
#include <cstdio>
#include <stdexcept>
static int check(const int *x, int n) {
    for (int i = 0; i < n; i++)
        if (x[i] < 0)
            throw std::runtime_error("negative");
    return n;
}
static int attempt(const int *x, int n) {
    int good = 0;
    for (int i = 1; i <= n; i++)
        try {
            good += check(x, i);
        } catch (const std::exception &) {
            good--;
        }
    return good;
}
template <typename F> static void repeat(int n, F what) {
    for (int i = 0; i < n; i++)
        what(i);
}
int main(int argc, char **) {
    int x[20], sum = 0;
    repeat(20, [&](int i) { x[i] = i < 10 * argc ? i : -i; });
    sum = attempt(x, 20);
    repeat(argc + 4, [&](int i) { sum += x[i]; });
    std::printf("%d\\n", sum);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_exceptions_templates_and_lambdas(workshop, level: str) -> None:
    source = workshop.folder / "exceptions.cpp"
    source.write_text(EXCEPTIONS)
    run = workshop.run(workshop.build(source, level, "-std=c++17"))
    assert run.stdout == "55\n"
    found = called(run.tree)
    assert found[(*MAIN, "attempt(int const*, int)")] == 1
    assert found[(*MAIN, "attempt(int const*, int)", "check(int const*, int)")] == 20
    repeats = {path[1]: path for path in found if len(path) == 2 and "repeat<" in path[1]}
    assert [found[path] for path in sorted(repeats.values())] == [1, 1]
    assert sorted(visits for path, visits in found.items() if len(path) == 3 and path[1] in repeats) == [5, 20]


def test_a_mistake_in_the_option_is_an_error(workshop) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        workshop.build("forces.c", "--quipu-inlined=some")


LIBRARY = """
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>
static bool before(double a, double b) { return a < b; }
static long places(const std::vector<double> &x) {
    long sum = 0;
    for (double v : x)
        sum += std::lower_bound(x.begin(), x.end(), v) - x.begin();
    return sum;
}
int main(int argc, char **argv) {
    std::vector<double> x(500 * argc);
    const std::string name(argc > 5 ? argv[5] : "a name of many letters"); // has a class in a function of the library
    for (unsigned i = 0; i < x.size(); i++)
        x[i] = i * 7919 % 503;
    std::map<int, int> seen;
    for (double v : x)
        seen[std::max(0, static_cast<int>(v)) / 100]++;
    std::sort(x.begin(), x.end(), [](double a, double b) { return before(a, b); });
    std::printf("%ld %zu %d\\n", places(x), seen.size(), name.empty());
}
"""


def short(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a call path without types and arguments; the names of lambdas differ by how clang numbers them."""
    algorithms = ("std::sort", "std::lower_bound")
    return tuple(
        "lambda"
        if "$_0::" in name
        else next((known for known in algorithms if f"{known}<" in name), name.split("(")[0].split()[-1])
        for name in path
    )


@pytest.mark.parametrize("options", [("-O0",), ("-O2",), ("-O2", "-g0"), ("-O3", "--quipu-naive")])
def test_of_the_library_only_algorithms_are_call_paths(workshop, options: tuple[str, ...]) -> None:
    source = workshop.folder / "library.cpp"
    source.write_text(LIBRARY)
    run = workshop.run(workshop.build(source, *options))
    names = {short(path) for path in called(run.tree)}
    sort = (*MAIN, "std::sort", "lambda")
    assert names - {(*sort, "before")} == {
        MAIN,
        sort[:2],
        sort,
        (*MAIN, "places"),
        (*MAIN, "places", "std::lower_bound"),
    }
    assert (*sort, "before") in names


def test_a_filter_shows_what_the_library_does_inside(workshop) -> None:
    source, rules = workshop.folder / "library.cpp", workshop.folder / "filter"
    source.write_text(LIBRARY)
    rules.write_text("SCOREP_REGION_NAMES_BEGIN\nINCLUDE std::map*\nSCOREP_REGION_NAMES_END\n")
    counts = ("-O2", "--quipu-inlined=counts")
    plain = workshop.run(workshop.build(source, *counts, name="plain")).tree
    shown = workshop.run(workshop.build(source, *counts, f"--quipu-filter={rules}")).tree
    inside = [path for path in called(shown) if "std::map<" in path[-1]]
    assert inside
    assert not any("std::map<" in path[-1] for path in called(plain))
    for metric in METRICS[1:]:
        assert sum(v[metric] for v in shown.values()) == sum(v[metric] for v in plain.values()), metric
