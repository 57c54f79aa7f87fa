# SPDX-License-Identifier: Apache-2.0
"""Laws that disagree at a target, and the run that tells them apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from quipu.modeling.counts.deciding import deciding
from quipu.modeling.counts.program import fit
from quipu.modeling.process_grid import balanced

POINTS = np.array(list(itertools.product((1.0, 2.0, 4.0), (8.0, 12.0, 16.0, 24.0))))
Count = Callable[[int, int], float]


def faces(dimensions: int) -> Count:
    return lambda p, n: 6.0 * n**2 * sum(extent - 1 for extent in balanced(p, dimensions))


def table(counts: list[Count], points: np.ndarray = POINTS) -> list[np.ndarray]:
    return [np.array([count(int(p), int(n)) for p, n in points], dtype=np.float64) for count in counts]


def work(p: int, n: int) -> float:
    return 60.0 * n**3


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_a_run_with_the_ranks_of_the_target_decides_on_the_process_grid(dimensions: int) -> None:
    models = fit(POINTS, ("p", "n"), table([faces(dimensions), work]))
    found = deciding(models[:1], models[1:], POINTS, (64.0, 48.0), 0)
    assert found is not None and found.point is not None
    assert found.path == 0
    assert found.apart > 0.01
    assert found.point[0] > 4 and found.work < 0.05
    (first, one), (second, other) = found.laws
    assert abs(first - second) > 0.01 * first and one != other
    more = np.vstack([POINTS, found.point])
    again = fit(more, ("p", "n"), table([faces(dimensions), work], more))
    left = deciding(again[:1], again[1:], more, (64.0, 48.0), 0)
    assert left is None or left.apart < found.apart
    truth = faces(dimensions)(64, 48)
    known = again[0].at((64.0, 48.0))
    assert known.quantile(0.05) <= truth * 1.0001 and known.quantile(0.95) >= truth * 0.9999


def test_laws_that_agree_need_no_run() -> None:
    models = fit(POINTS, ("p", "n"), table([work]))
    assert deciding(models, models, POINTS, (64.0, 48.0), 0) is None


def test_what_a_smaller_run_does_not_show_is_said() -> None:
    """Values of a parameter beyond all measurements: only a run at the target decides."""
    points = POINTS[POINTS[:, 0] == 1]
    values = [float(np.floor(np.log2(n)) ** 3 * 1000 + 7 * n) for _, n in points]
    models = fit(points, ("p", "n"), [np.array(values)])
    found = deciding(models, models, points, (1.0, 25.0), 0)
    assert found is None or found.point is None or found.work <= 0.5


def test_counts_without_a_number_of_ranks() -> None:
    points = np.array([[8.0], [12.0], [16.0]])
    models = fit(points, ("n",), [np.array([9.0, 30.0, 47.0])], ranks=None)
    found = deciding(models, models, points, (200.0,), None)
    assert found is not None
    assert found.point is None or 16 < found.point[0] < 200
