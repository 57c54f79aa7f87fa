"""Bytes, messages and processes of every operation of the table, against what the programs compute themselves."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from measured import PROGRAMS, check_accounting, run_preloaded
from quipu.mpi_wrap.table import load_table, operations_of

ACCOUNTED = ("point_to_point", "requests", "collectives", "neighbours", "one_sided", "files")
Build = Callable[[str], Path]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", ACCOUNTED)
def test_every_rank_counts_what_the_program_expects(
    name: str, ranks: int, program: Build, library: Path, tmp_path: Path
) -> None:
    run = run_preloaded([str(program(name))], ranks, tmp_path, library)
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
    if name in ("point_to_point", "requests", "neighbours"):
        sums = [sum(row[i] for counts in counted for row in counts.values()) for i in range(4)]
        lost = 8 if name == "requests" and ranks > 1 else 0  # a message that did not fit, per rank
        assert sums[0] == sums[1] + lost * ranks
        if name != "neighbours":
            assert sums[2] == sums[3] + (ranks if lost else 0)


def test_every_operation_of_the_installed_mpi_is_tested(program: Build, library: Path, tmp_path: Path) -> None:
    counted = set(json.loads((library.parent / "build.json").read_text())["counted"])
    tested: set[str] = set()
    for name in ACCOUNTED:
        folder = tmp_path / name
        folder.mkdir()
        tested |= set(run_preloaded([str(program(name))], 2, folder, library).expected(0))
    assert sorted(counted - tested) == []


@pytest.mark.parametrize("ranks", [1, 3])
def test_threads_count_exactly(ranks: int, program: Build, library: Path, tmp_path: Path) -> None:
    check_accounting(run_preloaded([str(program("threads"))], ranks, tmp_path, library))


@pytest.mark.parametrize("ranks", [1, 2])
def test_calls_from_inside_mpi_do_not_count(ranks: int, program: Build, library: Path, tmp_path: Path) -> None:
    run = run_preloaded([str(program("callbacks"))], ranks, tmp_path, library)
    check_accounting(run)
    assert not {"MPI_Type_size", "MPI_Send"} & set(run.counted(0))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_python_programs_count(ranks: int, library: Path, tmp_path: Path) -> None:
    check_accounting(run_preloaded([sys.executable, str(PROGRAMS / "ring.py")], ranks, tmp_path, library))
