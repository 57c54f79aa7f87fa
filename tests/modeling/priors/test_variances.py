# SPDX-License-Identifier: Apache-2.0
"""Variances of many call paths from few runs: planted distributions are found, and moderated."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.priors.variances import MOST_FREEDOM, CommonVariance, common_variance


def drawn(own: float | None, freedom: float, seed: int = 0, count: int = 4000) -> np.ndarray:
    """Return variances of samples whose true ones are 4·d0/χ²(d0), or all 4 if d0 is None."""
    random = np.random.default_rng(seed)
    true = 4.0 if own is None else 4.0 * own / random.chisquare(own, count)
    return np.asarray(true * random.chisquare(freedom, count) / freedom)


@pytest.mark.parametrize("own", [1.0, 4.0, 20.0])
@pytest.mark.parametrize("freedom", [2.0, 15.0])
def test_the_distribution_of_variances_is_found(own: float, freedom: float) -> None:
    found = common_variance(drawn(own, freedom), np.full(4000, freedom))
    assert found.variance == pytest.approx(4.0, rel=0.1)
    assert found.freedom == pytest.approx(own, rel=0.3)


def test_equal_variances_are_known_from_two_degrees_of_freedom_each() -> None:
    found = [common_variance(drawn(None, 2.0, seed, 40), np.full(40, 2.0)) for seed in range(50)]
    assert np.median([own.variance for own in found]) == pytest.approx(4.0, rel=0.15)
    assert np.median([own.freedom for own in found]) > 100
    assert max(own.freedom for own in found) <= MOST_FREEDOM


def test_variances_of_different_orders_say_nothing_of_each_other() -> None:
    found = common_variance(np.logspace(-30, 30, 40), np.full(40, 15.0))
    assert found.freedom < 0.1
    variance, freedom = found.moderated(3.0, 15.0)
    assert (variance, freedom) == (pytest.approx(3.0, rel=0.05), pytest.approx(15.0, rel=0.01))


def test_moderation_weighs_by_degrees_of_freedom() -> None:
    assert CommonVariance(2.0, 6.0).moderated(5.0, 3.0) == (3.0, 9.0)
    assert CommonVariance(0.0, 0.0).moderated(5.0, 3.0) == (5.0, 3.0)


@pytest.mark.parametrize("variances", [[], [1.0, 2.0], [0.0, 0.0, 0.0], [np.nan, np.inf, 1.0]])
def test_too_few_variances_tell_nothing(variances: list[float]) -> None:
    assert common_variance(np.array(variances), np.full(len(variances), 2.0)).freedom == 0.0
