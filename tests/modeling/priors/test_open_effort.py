# SPDX-License-Identifier: Apache-2.0
"""Times of effort without an exact function: uncertainty of counts is uncertainty of the time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.pmnf import Model

from ..waiting_program import RECEIVE, WORK, N, P, experiment


@pytest.mark.parametrize("seed", range(3))
def test_times_are_as_open_as_the_counts_that_they_follow(seed: int) -> None:
    """Each block takes the same time, so the time has no further information about the number of blocks."""
    chance = np.exp(0.1 * np.random.default_rng(seed).standard_normal(len(P)))
    runs = experiment(WORK * chance, RECEIVE)
    blocks = runs.values["blocks"].copy()
    blocks[1, :, 0] = np.round(3 * N**2 * chance)
    analysis = analyze(replace(runs, values={**runs.values, "blocks": blocks}))
    counted, taken = (analysis.models(metric)[1].model for metric in ("blocks", "time"))
    assert isinstance(counted, Model) and isinstance(taken, Model)
    for at in ((216.0, 500.0), (1000.0, 2000.0)):
        of_blocks, of_time = counted.predict(at), taken.predict(at)
        assert of_time.upper / of_time.lower >= 0.9 * of_blocks.upper / of_blocks.lower
        assert of_time.upper / of_time.lower <= 1.5 * of_blocks.upper / of_blocks.lower
