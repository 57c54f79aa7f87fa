# SPDX-License-Identifier: Apache-2.0
"""Bytes, messages and processes of every operation of the table equal the programs' computation."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from measured import LARGE, MPICH, PROGRAMS, Run, check_accounting, compile_program, run_preloaded
from peers import needs
from quipu.mpi_wrap.table import load_table, operations_of

ACCOUNTED = ("point_to_point", "requests", "collectives", "neighbours", "one_sided", "files")
Build = Callable[[str], Path]


class Way(NamedTuple):
    """How a test program is built: for which MPI (end of its tools' names), with which form of the functions."""

    mpi: str
    large_counts: bool

    def __str__(self) -> str:
        return (self.mpi.removeprefix(".") or "default") + "-large" * self.large_counts


PLAIN, ON_MPICH, LARGE_COUNTS = Way("", False), Way(MPICH, False), Way(MPICH, True)
# MPICH has MPI 4: all functions are there with large counts, too. Each form gets the rank counts that the other lacks.
CASES = [(PLAIN, 1), (PLAIN, 2), (PLAIN, 3), (PLAIN, 4), (PLAIN, 5)]
CASES += [(ON_MPICH, 2), (LARGE_COUNTS, 3), (LARGE_COUNTS, 4), (ON_MPICH, 5)]
RunOnce = Callable[[str, Way, int], Run]


@pytest.fixture(scope="session")
def run_once(libraries: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> RunOnce:
    """Run a test program; another test that wants the same run gets the one that has been."""

    @functools.cache
    def build(name: str, way: Way) -> Path:
        folder, flags = tmp_path_factory.mktemp(name), ["-Wno-stringop-overflow"]
        if way.large_counts:
            renamed = [twin for twin in counted_of(libraries(way.mpi)) if twin.endswith(LARGE)]
            header = folder / "large_counts.h"
            header.write_text("".join(f"#define {twin.removesuffix(LARGE)} {twin}\n" for twin in renamed))
            flags.append(f'-DLARGE_COUNTS="{header}"')
        return compile_program(name, folder, flags, way.mpi)

    @functools.cache
    def run(name: str, way: Way, ranks: int) -> Run:
        folder = tmp_path_factory.mktemp(f"{name}-{way}")
        return run_preloaded([str(build(name, way))], ranks, folder, libraries(way.mpi), way.mpi)

    return run


def counted_of(library: Path) -> list[str]:
    """Functions of the table that exist in this MPI."""
    counted: list[str] = json.loads((library.parent / "build.json").read_text())["counted"]
    return counted


@pytest.mark.parametrize(("way", "ranks"), CASES, ids=str)
@pytest.mark.parametrize("name", ACCOUNTED)
def test_every_rank_counts_what_the_program_expects(name: str, way: Way, ranks: int, run_once: RunOnce) -> None:
    run = run_once(name, way, ranks)
    check_accounting(run)
    for rank, profile in run.profiles.items():
        attributes = profile.attributes
        assert (attributes["rank"], attributes["ranks"]) == (str(rank), str(ranks))
        assert attributes["mpi_finalized"] == "1"
        assert attributes["mpi_library"]
    operations = operations_of(load_table())
    counted = [run.counted(rank) for rank in range(ranks)]
    two_sided = {name for name in set().union(*counted) if name in operations and operations[name].kind == "collective"}
    for function in two_sided:
        sent, received = (sum(row[function][i] for row in counted if function in row) for i in (0, 1))
        assert sent == received, function
    if name in ("point_to_point", "requests", "collectives", "neighbours"):
        sums = [sum(row[i] for counts in counted for row in counts.values()) for i in range(4)]
        lost = 8 if name == "requests" and ranks > 1 else 0  # a message that did not fit, per rank
        assert sums[0] == sums[1] + lost * ranks
        if name in ("point_to_point", "requests"):
            assert sums[2] == sums[3] + (ranks if lost else 0)


def test_the_process_grid_is_an_attribute_of_the_first_rank(run_once: RunOnce) -> None:
    profiles = run_once("neighbours", PLAIN, 4).profiles
    assert [profiles[rank].attributes.get("process_grid") for rank in range(4)] == ["4", None, None, None]
    assert profiles[0].attributes.get("process_grid_periodic") == "0"


@pytest.mark.parametrize("ways", [[PLAIN], [ON_MPICH, LARGE_COUNTS]], ids=["default", "mpich"])
def test_every_operation_of_an_installed_mpi_is_tested(
    ways: list[Way], run_once: RunOnce, libraries: Callable[[str], Path]
) -> None:
    tested: set[str] = set()
    for way in ways:
        for name in ACCOUNTED:
            run = run_once(name, way, next(ranks for case, ranks in CASES if case == way and ranks > 1))
            called, expected = {path[-1] for path, _ in run.call_paths(0)}, run.expected(0)
            tested |= {function for function in called if function.removesuffix(LARGE) in expected}
    assert sorted(set(counted_of(libraries(ways[0].mpi))) - tested) == []


def test_a_program_with_sessions_and_without_init_counts(run_once: RunOnce) -> None:
    run = run_once("session", ON_MPICH, 3)
    check_accounting(run)
    for rank, profile in run.profiles.items():
        assert (profile.attributes["rank"], profile.attributes["ranks"]) == (str(rank), "3")
        assert profile.attributes["mpi_finalized"] == "1"


@pytest.mark.parametrize("ranks", [1, 3])
def test_threads_count_exactly(ranks: int, program: Build, library: Path, tmp_path: Path) -> None:
    check_accounting(run_preloaded([str(program("threads"))], ranks, tmp_path, library))


@pytest.mark.parametrize("ranks", [1, 2])
def test_calls_from_inside_mpi_do_not_count(ranks: int, program: Build, library: Path, tmp_path: Path) -> None:
    run = run_preloaded([str(program("callbacks"))], ranks, tmp_path, library)
    check_accounting(run)
    assert not {"MPI_Type_size", "MPI_Send"} & set(run.counted(0))


@needs("mpi4py")
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_python_programs_count(ranks: int, library: Path, tmp_path: Path) -> None:
    check_accounting(run_preloaded([sys.executable, str(PROGRAMS / "ring.py")], ranks, tmp_path, library))
