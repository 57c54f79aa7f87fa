# SPDX-License-Identifier: Apache-2.0
"""What only those who wrote a library of headers know is part of its callers, and nothing of the program is lost."""

from __future__ import annotations

import re

import pytest

from .conftest import Tree
from .test_exactness import METRICS, counts
from .test_inlined import called

PROGRAM = "libraries.cpp"
MAIN = ("main",)
CALL_PATHS = {
    MAIN,
    (*MAIN, "grid::Field::Field"),
    (*MAIN, "grid::each<app::Half>"),
    (*MAIN, "grid::each<app::Half>", "app::Half::operator()"),
    (*MAIN, "grid::each<app::Half>", "app::Half::operator()", "app::Half::of"),
    (*MAIN, "grid::each<lambda>"),
    (*MAIN, "grid::each<lambda>", "lambda"),
    # All of this library is in its namespace for the implementation; the program calls it.
    (*MAIN, "tool::detail::scale<double>"),
    # The program's own namespace of such a name, and a class.
    (*MAIN, "app::detail::total"),
    (*MAIN, "app::detail::total", "app::detail::weight"),
    (*MAIN, "Solver::Solver"),
    (*MAIN, "Solver::Solver", "Solver::Impl::Impl"),
    (*MAIN, "Solver::solve"),
    (*MAIN, "Solver::solve", "Solver::Impl::step"),
    (*MAIN, "Solver::solve", "Solver::Impl::step", "app::twice"),
    (*MAIN, "Solver::~Solver"),
}


def short(name: str) -> str:
    """Return a name without types of arguments and results; clang numbers lambdas as it likes."""
    name = re.sub(r"main::\$_\d+", "lambda", name)
    if name.startswith("lambda::"):
        return "lambda"
    name = name.removesuffix(" const").replace("Field<double>", "Field").removeprefix("void ").removeprefix("double ")
    return name[: name.rindex("(")]


def paths(tree: Tree) -> set[tuple[str, ...]]:
    return {("main", *map(short, path[1:])) for path in called(tree)}


@pytest.mark.parametrize(
    "options", [("-O0",), ("-O2", "-g"), ("-O2", "-g0"), ("-O3", "-flto"), ("-O2", "--quipu-naive")]
)
def test_call_paths_are_those_of_the_program(workshop, options: tuple[str, ...]) -> None:
    assert paths(workshop.run(workshop.build(PROGRAM, *options)).tree) == CALL_PATHS


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_effort_of_what_is_left_out_is_exact(workshop, level: str) -> None:
    exact = workshop.run(workshop.build(PROGRAM, level, "--quipu-naive", name="naive"))
    assert counts(workshop.run(workshop.build(PROGRAM, level))) == counts(exact)


def test_a_filter_and_an_option_show_what_is_inside(workshop) -> None:
    rules = workshop.folder / "filter"
    rules.write_text("SCOREP_REGION_NAMES_BEGIN\nINCLUDE grid::Impl::*\nSCOREP_REGION_NAMES_END\n")
    plain, filtered, everything = (
        workshop.run(workshop.build(PROGRAM, "-O2", "--quipu-inlined=counts", *more, name=f"p{number}")).tree
        for number, more in enumerate([(), (f"--quipu-filter={rules}",), ("--quipu-all",)])
    )
    added = {path[-1] for path in paths(filtered) - paths(plain)}
    assert {"grid::Impl::rounded", "grid::Impl::Allocation<double>::~Allocation"} <= added
    assert not any(name.startswith("grid::Field::size") for name in added)
    assert any(name.startswith("grid::Field::size") for path in paths(everything) for name in path)
    for metric in METRICS[1:]:
        sums = {sum(values[metric] for values in tree.values()) for tree in (plain, filtered, everything)}
        assert len(sums) == 1, metric


def test_a_variable_of_each_thread_in_another_file_is_no_work(workshop) -> None:
    """Calls that find and initialize a `thread_local` variable are not counted as functions."""
    source, other = workshop.folder / "uses.cpp", workshop.folder / "defines.cpp"
    other.write_text("int begin() { return 3; }\nthread_local int tracked = begin();\n")
    source.write_text(
        "extern thread_local int tracked;\n"
        "struct Handle { Handle() { tracked++; } };\n"
        "int main() { Handle first, second; return tracked - 5; }\n"
    )
    workshop.build(other, "-O0", "-c", name="defines.o")
    run = workshop.run(workshop.build(source, "-O2", str(workshop.folder / "defines.o")))
    assert {path: visits for path, visits in called(run.tree).items() if "tracked" not in path[-1]} == {
        MAIN: 1,
        (*MAIN, "Handle::Handle()"): 2,
        (*MAIN, "begin()"): 1,
    }
    assert not any("tracked" in path[-1] for path in called(run.tree))
    assert run.tree[(*MAIN, "Handle::Handle()")]["time"] == 0
