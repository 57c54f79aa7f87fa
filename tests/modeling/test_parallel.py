# SPDX-License-Identifier: Apache-2.0
"""Models do not depend on who fits them, but for the last digits of sums."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from launching import LAUNCH
from patience import PATIENCE
from peers import needs
from quipu.modeling.errors import FormatError, UsageError
from quipu.modeling.experiment import Metric
from quipu.modeling.parallel import LEAST_BATCH, Workers, batches, batches_of, jobs, modeling_by
from quipu.modeling.pmnf import NoModel, fit_models

QUIPU = str(Path(sys.executable).with_name("quipu"))
TIME = Metric("time", "s", "cost")
P = np.array([4.0, 8, 16, 32, 64])


def _texts(values: np.ndarray, executed: np.ndarray) -> list[object]:
    models = fit_models(P[:, None], values, TIME, ("p",), executed=executed)
    return [model.reason if isinstance(model, NoModel) else str(model) for model in models]


def test_models_of_workers_are_the_same() -> None:
    random = np.random.default_rng(0)
    values = random.uniform(1, 9, (3 * LEAST_BATCH, 1, 1)) * P[None, :, None] + random.uniform(
        0, 1, (3 * LEAST_BATCH, 5, 3)
    )
    executed = random.random((3 * LEAST_BATCH, 5)) > 0.05
    alone = _texts(values, executed)
    with ThreadPoolExecutor(3) as pool, modeling_by(Workers(3, pool.map)):
        assert _texts(values, executed) == alone
    with jobs("2"):
        assert _texts(values, executed) == alone


def test_batches_hold_every_path_once() -> None:
    for paths in (500, 501, 9999):
        found = np.concatenate([np.arange(paths)[part] for part in batches(paths, 4)])
        assert (found == np.arange(paths)).all()


def test_batches_of_groups_divide_only_the_large_ones() -> None:
    sizes = [100, 0, 600, 3000, 7]
    parts = batches_of(sizes, 1)
    assert [part for own in parts for part in own] == [
        slice(0, 100), slice(100, 100), slice(100, 700), slice(700, 2700), slice(2700, 3700), slice(3700, 3707)
    ]  # fmt: skip
    assert [len(own) for own in parts] == [3, 1, 2]
    assert max(own[-1].stop - own[0].start for own in batches_of([100] * 50, 4)) <= 313
    assert batches_of([], 1) == []


@pytest.mark.parametrize("number", ["0", "-1", "many", "", "٣", "²", "9" * 5000])
def test_bad_numbers_of_jobs(number: str) -> None:
    with pytest.raises(UsageError, match="number of processes"), jobs(number):
        pass


def _unreadable(line: int) -> None:
    raise FormatError("run.json", "is no JSON", line)


def test_errors_come_back_from_workers() -> None:
    with pytest.raises(FormatError, match=r"^run\.json:7: is no JSON$"), jobs("2") as workers:
        assert workers is not None
        list(workers.map(_unreadable, [7]))


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of Extra-P with call paths for several batches."""
    path = tmp_path_factory.mktemp("mpi") / "large.txt"
    lines = ["PARAMETER p", "POINTS 4 8 16 32 64"]
    for region in range(2 * LEAST_BATCH):
        lines += [f"REGION f{region}", "METRIC time", *(f"DATA {region + p * (1 + region % 5)}" for p in P)]
    path.write_text("\n".join(lines) + "\n")
    return path


def _modeled(experiment: Path, output: Path, *command: str) -> bytes:
    environment = {**os.environ, **LAUNCH}
    full = [*command[:-1], QUIPU, "model", str(experiment), "--jobs", command[-1], "-o", str(output), "--json"]
    result = subprocess.run(full, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr.count("wrote") == 1
    return output.read_bytes()


@needs("mpi4py")
def test_models_of_an_mpi_job_are_the_same(experiment: Path, tmp_path: Path) -> None:
    alone = _modeled(experiment, tmp_path / "alone.json", "1")
    mpirun = ("mpirun", "-n", "3")
    assert _modeled(experiment, tmp_path / "mpi.json", *mpirun, "mpi") == alone
    futures = (*mpirun, sys.executable, "-m", "mpi4py.futures")
    assert _modeled(experiment, tmp_path / "futures.json", *futures, "mpi") == alone


@needs("mpi4py")
def test_a_launcher_of_another_mpi_is_one_error() -> None:
    program = "from quipu.modeling.parallel import jobs\nwith jobs('mpi'): pass"
    environment = {**os.environ, **LAUNCH, "MPI_LOCALNRANKS": "3"}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert result.returncode == 1
    assert "EnvironmentProblem: the launcher started several processes, but mpi4py sees only one" in result.stderr
