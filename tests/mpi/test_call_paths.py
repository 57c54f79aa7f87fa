# SPDX-License-Identifier: Apache-2.0
"""The call path that posted a request gets its bytes, whoever completes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from measured import Counts, compile_program, launch
from quipu.mpi_wrap.library import runtime_files

NOTHING = (0, 0, 0, 0)


@pytest.fixture(scope="module")
def linked(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program linked with both libraries, to run without a preload."""
    include, runtime = runtime_files()
    folders = [library.parent, runtime.parent]
    flags = [f"-I{include}", str(library), str(runtime), *(f"-Wl,-rpath,{folder}" for folder in folders)]
    return compile_program("call_paths", tmp_path_factory.mktemp("linked"), flags)


def test_the_posting_call_path_is_credited(linked: Path, tmp_path: Path) -> None:
    run = launch([str(linked)], 2, tmp_path, {"QUIPU_DIR": str(tmp_path)})
    for rank in range(2):
        counts: dict[tuple[str, ...], Counts] = dict(run.call_paths(rank))
        assert counts["post", "MPI_Irecv"] == (0, 80, 0, 1, 2)
        assert counts["post", "MPI_Isend"] == (80, 0, 1, 0, 2)
        assert counts["complete", "MPI_Waitall"][:4] == NOTHING
        assert counts["prepare", "MPI_Recv_init"][:4] == NOTHING
        assert counts["prepare", "MPI_Send_init"][:4] == NOTHING
        assert counts["start", "MPI_Startall"] == (120, 120, 3, 3, 2)


def test_nothing_is_written_without_a_folder(linked: Path, tmp_path: Path) -> None:
    launch([str(linked)], 2, tmp_path, {})
    assert list(tmp_path.iterdir()) == []
