# SPDX-License-Identifier: Apache-2.0
"""Strategies that model the measured values by a Gaussian process (Ritter et al., section III)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import norm

from ..experiment import FloatArray, with_all_repetitions
from .baseline import baseline
from .orders import CheapestFirst
from .state import State, Suggestion, in_order, of_lines

BASELINE_REPETITIONS = 2
"""Repetitions of each point of the baseline, "to enable an analysis of the system noise" (section III)."""
SMOOTHNESS = 1.5
"""ν of the Matérn kernel, as in the published code of the strategy."""


@dataclass(frozen=True)
class GaussianProcess:
    """GPR: first the lines of all parameters, then the runs with the lowest weighted cost (equations 5 to 8).

    The weighted cost is cost² · weight / deviation⁴, where the weight grows with the repetitions of the point, and
    decreases with the noise. The deviation is the standard deviation of the Gaussian process.
    """

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return the next runs (`Strategy.suggest`)."""
        if (begun := of_lines(state, BASELINE_REPETITIONS, budget, batch)) is not None:
            return begun
        possible = state.affordable(budget)
        _, deviation = surrogate(state)
        repetitions = state.counts + 1
        weight = 2.0 ** (0.5 * repetitions - 0.5) - np.tanh(0.25 * noise_percent(state) - 2.5)
        weighted = state.costs**2 * weight / np.maximum(deviation, 1e-300) ** 4
        order = np.argsort(np.where(possible, weighted, np.inf), kind="stable")[: int(possible.sum())]
        return in_order(state, order, "the least weighted cost by a Gaussian process", budget, batch)


@dataclass(frozen=True)
class Hybrid:
    """First the lines of all parameters and the `extra` cheapest other points, then a Gaussian process.

    extra: None is the number of parameters.
    """

    extra: int | None = None
    cheapest: CheapestFirst = field(default_factory=lambda: CheapestFirst(BASELINE_REPETITIONS))

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return the next runs (`Strategy.suggest`)."""
        extra = len(state.parameters) if self.extra is None else self.extra
        points = len(baseline(state.candidates, state.costs)) + extra
        begun = min(points, len(state.costs)) * BASELINE_REPETITIONS - int(state.counts.sum())
        if begun > 0:
            return self.cheapest.suggest(state, budget, min(batch, begun))
        return GaussianProcess().suggest(state, budget, batch)


@dataclass(frozen=True)
class ExpectedImprovement:
    """Bayesian optimization: first the lines of all parameters, then the runs with the largest expected improvement.

    The improvement is the expected decrease of the smallest measured time.
    """

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return the next runs (`Strategy.suggest`)."""
        if (begun := of_lines(state, BASELINE_REPETITIONS, budget, batch)) is not None:
            return begun
        possible = state.affordable(budget)
        mean, deviation = surrogate(state)
        least = float(_means(state).min())
        distance = (least - mean) / np.maximum(deviation, 1e-300)
        improvement = (least - mean) * norm.cdf(distance) + deviation * norm.pdf(distance)
        order = np.argsort(-np.where(possible, improvement, -np.inf), kind="stable")[: int(possible.sum())]
        return in_order(state, order, "the largest expected improvement", budget, batch)


def surrogate(state: State) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation, each (N,), of the total of all call paths at the candidates.

    They come from a Gaussian process with a Matérn kernel and white noise (equations 5 and 6). Parameters are scaled to
    0 … 1.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern, WhiteKernel

    low, high = state.candidates.min(axis=0), state.candidates.max(axis=0)
    places = (state.candidates - low) / np.where(high > low, high - low, 1.0)
    process = GaussianProcessRegressor(Matern(nu=SMOOTHNESS) + WhiteKernel(), normalize_y=True)
    with warnings.catch_warnings():
        # With so few values, a length scale or noise level at the limit of its range is acceptable.
        warnings.simplefilter("ignore", ConvergenceWarning)
        process.fit(places[state.measured], _means(state))
    mean, deviation = process.predict(places, return_std=True)
    return np.asarray(mean, dtype=np.float64), np.asarray(deviation, dtype=np.float64)


def noise_percent(state: State) -> float:
    """Return the mean relative distance of repetitions from their mean in percent, 0 to 100 (section III).

    0 without repetitions.
    """
    totals = _totals(state)[state.measured]
    means = np.nanmean(totals, axis=1, keepdims=True)
    distances = np.abs(totals - means) / np.maximum(np.abs(means), 1e-300)
    repeated = (~np.isnan(totals)).sum(axis=1) > 1
    return min(100.0 * float(np.nanmean(distances[repeated])), 100.0) if repeated.any() else 0.0


def _totals(state: State) -> FloatArray:
    """Return the sum over call paths for each run, shape (N, R); NaN for runs that do not exist."""
    nothing = np.isnan(state.values).all(axis=0)
    return np.where(nothing, np.nan, np.nansum(with_all_repetitions(state.values), axis=0))


def _means(state: State) -> FloatArray:
    result: FloatArray = np.nanmean(_totals(state)[state.measured], axis=1)
    return result
