# SPDX-License-Identifier: Apache-2.0
"""The remaining data of killed runs."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from killing import RANKS, Moments, compile_endless, failed_run, killed_run, wait_until_at_work
from launching import LAUNCH

_RANDOM = random.Random(5)
MOMENTS = [_RANDOM.uniform(0, 0.3) for _ in range(5)]
LIMIT = 3600.0
LONG = 2.0  # seconds: more than may be missing


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_endless(tmp_path_factory.mktemp("endless"))


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LAUNCH.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("seconds", [0.0, *MOMENTS])
def test_a_killed_run_merges_and_misses_nothing(endless: Path, library: Path, tmp_path: Path, seconds: float) -> None:
    ranks = killed_run(endless, library, tmp_path, seconds)
    assert len(ranks) == RANKS
    assert all(rank.complete for rank in ranks), ranks


@pytest.mark.parametrize("node_agent", [True, False])
def test_time_in_a_long_function_is_there_up_to_the_kill(
    endless: Path, library: Path, tmp_path: Path, node_agent: bool
) -> None:
    ranks = killed_run(endless, library, tmp_path, LONG, sit=True, node_agent=node_agent)
    assert all(rank.complete and rank.visits == 1 for rank in ranks), ranks
    assert all(rank.seconds > LONG - 1 for rank in ranks), ranks


@pytest.mark.parametrize("mode", ["abort", "mpi_abort"])
def test_an_aborted_run_misses_nothing(endless: Path, library: Path, tmp_path: Path, mode: str) -> None:
    ranks = failed_run(endless, library, tmp_path, [mode], Moments())
    assert all(rank.complete and rank.visits == 1 for rank in ranks), ranks


def test_a_time_limit_misses_nothing(
    endless: Path, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit ends while the ranks work, also on a busy machine."""
    wait = subprocess.Popen.wait

    def limited(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        if timeout != LIMIT:
            return wait(process, timeout)
        wait_until_at_work(tmp_path, operations=1)
        raise subprocess.TimeoutExpired(process.args, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", limited)
    ranks = failed_run(endless, library, tmp_path, ["sit"], Moments(), timeout=LIMIT)
    assert all(rank.complete and rank.visits == 1 for rank in ranks), ranks
