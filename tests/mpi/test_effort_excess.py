# SPDX-License-Identifier: Apache-2.0
"""`effort_excess`: imbalance of a call path in blocks, also if all ranks have equal totals."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from measured import PROGRAMS
from quipu.agent.campaign.repetition import LaunchOptions, run
from quipu.agent.installation import native_file
from quipu.agent.launch.launchers import launch_command
from quipu.agent.load.measurements import load
from quipu.modeling.experiment import Experiment

CALLERS = ("in_turn", "in_pairs", "collected", "once")


def excess(folder: Path) -> dict[str, list[float]]:
    """Return the excess of `work` at all configurations, by caller."""
    experiment = load(folder, metrics=["effort_excess"])
    values = experiment.values["effort_excess"]
    tree = experiment.tree
    assert values[[tree.name(path).startswith("MPI_") for path in range(len(tree))]].sum() == 0
    found = {}
    for path in range(len(tree)):
        names = [tree.name(step) for step in tree.ancestry(path)]
        if names[-1] == "work":
            found[next(name for name in names if name in CALLERS)] = values[path, :, 0].tolist()
    return found


def expected(p: int) -> dict[str, float]:
    """Return what ranks wait for beyond the mean over ranks, of `work`, where the program says how much is executed."""
    return {
        "in_turn": 2 * p * (800 - (100 + 700 / p)),
        "in_pairs": 1000 - 500,
        "collected": 2 * 600 - (600 + 600) / p,
        "once": 300 - 300 / p,
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alternating")
    for wrapper in ("quipu-mpicc", "quipu-smpicc"):
        subprocess.run([native_file(wrapper), "-O1", PROGRAMS / "alternating.c", "-o", folder / wrapper], check=True)
    return folder


def native(built: Path, folder: Path, wait: str) -> Experiment:
    command = ["mpirun", "-n", "2", str(built / "quipu-mpicc")]
    run(command, {"p": 2}, None, folder, LaunchOptions(node_agent=False, mpi_wait=wait))
    return load(folder)


def test_simulated_excess_is_exact(built: Path, tmp_path: Path) -> None:
    for p in (2, 4, 8):
        command = launch_command("smpi", [str(built / "quipu-smpicc")], p, None)
        run(command, {"p": p}, None, tmp_path, LaunchOptions(node_agent=False))
    found = excess(tmp_path)
    assert found == {name: [expected(p)[name] for p in (2, 4, 8)] for name in expected(2)}


@pytest.mark.parametrize("wait", ["all", "sample"])
def test_excess_between_probes_is_exact(built: Path, tmp_path: Path, wait: str) -> None:
    """The program has so few calls that all are probed."""
    experiment = native(built, tmp_path, wait)
    assert "critical_blocks" not in experiment.metrics
    found = {name: value[0] for name, value in excess(tmp_path).items()}
    assert found == {**expected(2), "collected": 2 * 600 - 600}


def test_without_probes_it_is_that_of_the_whole_run(built: Path, tmp_path: Path) -> None:
    blocks = native(built, tmp_path, "local").excess["blocks"]
    assert np.array_equal(load(tmp_path, metrics=["effort_excess"]).values["effort_excess"], blocks)
    found = excess(tmp_path)
    assert (found["in_turn"], found["once"]) == ([0.0], [150.0])


def test_an_estimate_is_marked(tmp_path: Path) -> None:
    source = tmp_path / "often.c"
    text = (PROGRAMS / "alternating.c").read_text(encoding="utf-8").replace("2 * ranks", "200 * ranks")
    source.write_text(text, encoding="utf-8")
    subprocess.run([native_file("quipu-mpicc"), "-O1", source, "-o", tmp_path / "quipu-mpicc"], check=True)
    native(tmp_path, tmp_path / "runs", "sample")
    experiment = load(tmp_path / "runs", metrics=["effort_excess"])
    assert any("effort_excess is an estimate" in note for note in experiment.notes)
    assert excess(tmp_path / "runs")["in_turn"][0] >= 16 * 350.0  # the first calls are all probed
