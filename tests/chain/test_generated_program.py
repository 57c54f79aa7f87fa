# SPDX-License-Identifier: Apache-2.0
"""A generated program does the work that it states, and finds its errors."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_programs import make, run
from patience import PATIENCE
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.experiment import Experiment

from .conftest import quipu

FUNCTIONS = 9  # each operation once
NAMES = {"floor": math.floor, "log2": math.log2, "max": max}


def formula(text: str, experiment: Experiment) -> np.ndarray:
    return np.array([eval(text, NAMES, {"p": int(p), "n": int(n)}) for p, n in experiment.points], dtype=float)


def counted(experiment: Experiment, metric: str, path: tuple[str, ...], inclusive: bool = False) -> np.ndarray:
    """Return the mean over ranks of a metric at each configuration, of the call path that ends in these regions.

    inclusive: with what it calls, inlined functions too.
    """
    (found,) = (
        node
        for node in range(len(experiment.tree))
        if tuple(experiment.tree.name(i).split("(")[0] for i in experiment.tree.ancestry(node)[-len(path) :]) == path
    )
    below = [node for node in range(len(experiment.tree)) if found in experiment.tree.ancestry(node)]
    values: np.ndarray = experiment.values[metric][below if inclusive else [found], :, 0].sum(axis=0)
    return values


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of random functions, built with the wrappers."""
    target = tmp_path_factory.mktemp("generated") / "bench"
    bounds = ("--from", "p=2,n=500", "--to", "p=64,n=4000", "--most-steps", "2e6")
    quipu("generate", "--functions", FUNCTIONS, "--seed", 11, *bounds, "-o", target, cwd=target.parent)
    make("benchmark", target, "MPICXX=quipu-mpic++")
    return target


@pytest.fixture(scope="module")
def stated(folder: Path) -> list[dict[str, Any]]:
    functions: list[dict[str, Any]] = json.loads((folder / "complexity.json").read_text())["functions"]
    return functions


@pytest.fixture(scope="module")
def parallel(folder: Path) -> Experiment:
    """Runs with all ranks."""
    for p in (2, 3, 4):
        for n in (500, 1100):
            command = ("mpirun", "-n", p, "./benchmark", n)
            quipu("run", "--param", f"p={p},n={n}", "-o", "parallel.runs", "--", *command, cwd=folder)
    return load_experiment(folder / "parallel.runs", "mean")


def test_messages_are_as_stated(parallel: Experiment, stated: list[dict[str, Any]]) -> None:
    for function in stated:
        own = function["communication"]
        for mpi in own["mpi"]:
            path = (own["region"], mpi["region"])
            assert (counted(parallel, "visits", path) == formula(mpi["calls"], parallel)).all(), path
            for metric in ("bytes_sent", "bytes_received"):
                np.testing.assert_allclose(counted(parallel, metric, path), formula(mpi[metric], parallel), rtol=1e-12)


def test_blocks_are_as_many_as_stated_steps(parallel: Experiment, stated: list[dict[str, Any]]) -> None:
    """Each loop has a constant number of blocks per step, a whole number, in all runs."""
    for function in stated:
        own = function["computation"]
        steps = [formula(loop["steps"], parallel) for loop in own["loops"]]
        columns = np.stack([*steps, np.ones(len(steps[0]))], axis=1)
        blocks = counted(parallel, "blocks", (own["region"],), inclusive=True)
        per_step, *_ = np.linalg.lstsq(columns, blocks, rcond=None)
        np.testing.assert_allclose(columns @ per_step, blocks, rtol=1e-9)
        if np.linalg.matrix_rank(columns) == columns.shape[1] < len(blocks):
            np.testing.assert_allclose(per_step, np.round(per_step), atol=1e-3)
            assert (np.asarray(np.round(per_step))[:-1] >= 1).all()


def test_one_process_computes_what_a_rank_does(
    parallel: Experiment, folder: Path, stated: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("./benchmark", 1100, "--as-ranks", 3)
    monkeypatch.setenv("QUIPU_ONE_OF_RANKS", "1")
    quipu("run", "--param", "p=3,n=1100", "-o", "as.runs", "--", *command, cwd=folder)
    alone = load_experiment(folder / "as.runs", "mean")
    (row,) = np.flatnonzero((parallel.points == [3, 1100]).all(axis=1))
    for function in stated:
        path = (function["computation"]["region"],)
        assert counted(alone, "blocks", path)[0] == counted(parallel, "blocks", path)[row]


def test_wrong_results_are_found(folder: Path, tmp_path: Path) -> None:
    """The program detects a wrong message and a missing step."""
    quipu("generate", "--functions", 2, "--operation", "bcast", "-o", tmp_path / "bench", cwd=tmp_path)
    source = tmp_path / "bench" / "functions_00.cpp"
    right = source.read_text()
    for old, new, fault in (
        (", 0, MPI_COMM_WORLD);", ", 1, MPI_COMM_WORLD);", "elements"),
        ("result.step(window[step++]);", "result.step(window[step += 2]);", "computations"),
    ):
        assert old in right
        source.write_text(right.replace(old, new, 1))
        make("benchmark", source.parent, "MPICXX=mpicxx")
        done = run(["mpirun", "-n", "2", "./benchmark", "8000", "--functions", "0:1"], source.parent)
        assert done.returncode == 1
        assert " WRONG" in done.stdout
        assert f" 0 {fault}" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("0",),
        ("x",),
        ("8", "--only"),
        ("8", "--only", "x"),
        ("8", "--functions", "0:99"),
        ("8", "--as-ranks", "-1"),
    ],
)
def test_bad_arguments_are_refused(folder: Path, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["./benchmark", *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("usage:") == 1
