# SPDX-License-Identifier: Apache-2.0
"""The communication matrix: who sent how much to whom, by ranks of the world, whatever communicator was used."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from measured import LAUNCH, MPICH, compile_program
from numpy.typing import NDArray
from quipu.agent.archive.communication_table import read_communication
from quipu.agent.archive.run import CommunicationMatrix, RunArchive
from quipu.agent.campaign.repetition import LaunchOptions, run
from quipu.agent.launch.launchers import launch_command

QUIET = LaunchOptions(node_agent=False, say=lambda text: None)
Matrix = NDArray[np.int64]


def said(folder: Path, ranks: int) -> tuple[Matrix, Matrix]:
    """Return bytes and messages from each rank (row) to each rank, as the program computed them."""
    rows = [np.loadtxt(folder / f"partners-{rank}.tsv", dtype=np.int64, ndmin=2) for rank in range(ranks)]
    table = np.array(rows)  # (rank, partner, column)
    return table[:, :, 0] + table[:, :, 2].T, table[:, :, 1] + table[:, :, 3].T


def dense(found: CommunicationMatrix | None, ranks: int) -> tuple[Matrix, Matrix]:
    assert found is not None
    bytes_, messages = (np.zeros((ranks, ranks), dtype=np.int64) for _ in range(2))
    bytes_[found.sender, found.receiver] = found.bytes
    messages[found.sender, found.receiver] = found.messages
    return bytes_, messages


def measured(command: Sequence[str], folder: Path, environment: pytest.MonkeyPatch) -> RunArchive:
    for name, value in LAUNCH.items():
        environment.setenv(name, value)
    return run([*command, str(folder)], {}, None, folder / "runs", QUIET)


@pytest.mark.parametrize(("mpi", "ranks"), [("", 1), ("", 4), ("", 5), (MPICH, 3)])
@pytest.mark.parametrize("reduced", [True, False])
def test_every_pair_of_ranks_is_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mpi: str, ranks: int, reduced: bool
) -> None:
    program = compile_program("partners", tmp_path, mpi=mpi)
    monkeypatch.setenv("QUIPU_MPI_REDUCE", str(int(reduced)))
    archive = measured([f"mpirun{mpi}", "-n", str(ranks), str(program)], tmp_path, monkeypatch)
    assert archive.metadata.complete, archive.metadata.problems
    found, expected = dense(read_communication(archive.path), ranks), said(tmp_path, ranks)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("ranks", [1, 2, 33])
def test_ranks_that_are_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranks: int) -> None:
    program = tmp_path / "partners"
    source = Path(__file__).parent / "programs" / "partners.c"
    subprocess.run(["smpicc", "-O1", source, "-o", program], cwd=tmp_path, check=True, capture_output=True)
    archive = measured(launch_command("smpi", [str(program)], ranks, None), tmp_path, monkeypatch)
    found, expected = dense(read_communication(archive.path), ranks), said(tmp_path, ranks)
    assert np.array_equal(found, expected)
