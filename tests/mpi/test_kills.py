"""What is left of runs that are killed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from killing import RANKS, compile_endless, killed_run

MOMENTS = [random.Random(5).uniform(0, 0.3) for _ in range(6)]
LONG = 2.0  # seconds: more than may be missing


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_endless(tmp_path_factory.mktemp("endless"))


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMPI_MCA_btl_vader_single_copy_mechanism", "OMPI_MCA_rmaps_base_oversubscribe"):
        monkeypatch.setenv(name, "none" if name.startswith("OMPI_MCA_btl") else "1")


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
