"""What is left of runs that are killed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from killing import RANKS, killed_run

MOMENTS = [random.Random(5).uniform(0, 0.3) for _ in range(9)]


@pytest.mark.parametrize("seconds", [0.0, *MOMENTS])
def test_a_killed_run_merges_and_misses_nothing(
    program: Callable[[str], Path], library: Path, tmp_path: Path, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OMPI_MCA_btl_vader_single_copy_mechanism", "OMPI_MCA_rmaps_base_oversubscribe"):
        monkeypatch.setenv(name, "none" if name.startswith("OMPI_MCA_btl") else "1")
    ranks = killed_run(program("endless"), library, tmp_path, seconds)
    assert len(ranks) == RANKS
    assert all(rank.complete for rank in ranks), ranks
