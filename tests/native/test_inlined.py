"""Functions that the compiler inlines stay call paths of their own: the same ones, however the program was built."""

from __future__ import annotations

import subprocess

import pytest

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


@pytest.mark.parametrize("linker", ["-flto", "-flto=thin"])
def test_optimization_at_link_time_changes_no_call_path(workshop, linker: str) -> None:
    program = workshop.build("forces.c", "-O2", linker, "-fuse-ld=lld")
    found = called(workshop.run(program).tree)
    assert {path for path in found if path != (*MAIN, "ways")} == {path for path in CALLS if path != (*MAIN, "ways")}


def test_functions_that_do_enough_work_have_time(workshop) -> None:
    tree = workshop.run(workshop.build("forces.c", "-O2"), "2000").tree
    whole = sum(values["time"] for path, values in tree.items() if path)
    assert tree[(*MAIN, "forces")]["time"] > 0.2 * whole
    assert tree[(*MAIN, "sort")]["time"] > 0
    assert tree[(*MAIN, "forces", "pair")]["time"] == 0
    untimed = workshop.run(workshop.build("forces.c", "-O2", "--quipu-inlined=counts", name="counts"), "2000").tree
    assert untimed[(*MAIN, "forces")]["time"] == 0
    assert untimed[(*MAIN, "forces")]["instructions"] == tree[(*MAIN, "forces")]["instructions"]


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
