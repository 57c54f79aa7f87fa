# SPDX-License-Identifier: Apache-2.0
"""Quipu's strategy: the runs that most reduce the uncertainty of the prediction at the target per core hour.

What is not known of a call path are its form, near-best hypotheses with their posterior weights; the function of each
parameter in the likeliest form, all others that explain the measurements as well (`exchanges`); the coefficients of
each; and, where one hypothesis is left, what the measurements leave open of the exponents, which is in the covariance
of the model. Mean and covariance between any two points make a Gaussian process whose kernel is what the models still
doubt, k(x, y) = Σ_h w_h φ_h(x)ᵀ S_h φ_h(y) + Σ_h w_h (f_h(x) - f(x)) (f_h(y) - f(y)) + e(x)ᵀ E e(y): the first part is
what noise left open, the second where hypotheses disagree (summed over the form and each parameter), the third how
exponents may deviate from a form that is the only one left: as long as there are several, telling them apart comes
first. At the target the third counts at most
as much as the first: far beyond the measurements it would outweigh it, and no run but the largest would be worth its
cost. A run at x reduces the variance at the target t by
k(t, x)² / (k(x, x) + s(x)²) (best linear prediction; s: the noise of one run), whatever it will measure, so that a
whole batch can be chosen, each run after those before it. What is known of the form, as under priors from effort, is
in the hypotheses. Runs with more ranks than processors say nothing of the time, only of effort: a line is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import f as f_distribution

from ..experiment import FloatArray
from ..pmnf.model import Model
from ..pmnf.model.term import Term
from .baseline import has_lines, missing_of
from .exchanges import Columns, Observations, exchanges
from .state import State, Suggestion, in_order, of_lines, of_ranks

LEAST_NOISE = 1e-3
"""Relative noise of one run that is always expected: times of a program are not known better than that."""
LEAST_PART = 1e-9
"""Part of the largest time below which a time counts as this, so that weights stay finite."""
MOST_PATHS = 32
"""Call paths that are looked at: those with most variance at the target."""
MOST_APART = 0.2
"""Relative distance from the mean at the target beyond which a hypothesis counts no more: it is as wrong."""
_SIGNIFICANT = 0.99
"""From which quantile of F on residuals are no noise of runs: of one call path in a hundred by chance."""
_ROUNDING = 1e-12
"""Part of a variance below which what is left of it is rounding."""


@dataclass(frozen=True)
class Posterior:
    """Choose by the expected reduction of the variance of the predicted total at the target, for each core hour."""

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return the next runs: one repetition of the lines of each parameter first, then the best for their cost.

        Where effort gives all forms, the line of ranks is enough.
        """
        begun = None
        if state.follows_effort:
            begun = of_ranks(state, budget, batch)
        elif not has_lines(state.candidates, state.measured):
            begun = of_lines(state, 1, budget, batch)
        if begun is not None:
            return begun
        doubts = doubts_of(state)
        total = sum(doubt.variance for doubt in doubts)
        if not total > 0.0:
            order = np.argsort(state.costs, kind="stable").tolist()
            rest = missing_of(order, state.counts, state.repetitions)
            return in_order(state, rest, "the models leave nothing open: a cheap check", budget, batch, gain=0.0)
        counts, chosen = state.counts.copy(), list[Suggestion]()
        while len(chosen) < batch:
            possible = (counts < state.repetitions) & (state.costs <= budget) & ~state.shared
            if not possible.any():
                break
            gains = np.sum([doubt.gains() for doubt in doubts], axis=0)
            best = int(np.argmax(np.where(possible, gains / state.costs, -1.0)))
            counts[best] += 1
            cost = float(state.costs[best])
            budget -= cost
            share = float(gains[best]) / total
            reason = f"reduces the variance of the prediction by {100.0 * share:.2g} %"
            chosen.append(Suggestion(best, int(counts[best]), cost, reason, share))
            for doubt in doubts:
                doubt.measure(best)
        return chosen


def doubts_of(state: State) -> list[Doubt]:
    """Return what is not known of the call paths with most variance at the target."""
    columns = Columns(state.parameters, np.vstack([state.candidates, state.target]))
    doubts = []
    known_forms = state.known_forms or [False] * len(state.models)
    for model, values, known in zip(state.models, state.values, known_forms, strict=True):
        if isinstance(model, Model) and np.nanmax(np.abs(values), initial=0.0) > 0.0:
            found = _doubt(model, values, state, columns, known)
            if np.isfinite(found.variance) and found.variance > 0.0:
                doubts.append(found)
    return sorted(doubts, key=lambda doubt: -doubt.variance)[:MOST_PATHS]


def uncertainty_of(state: State) -> float:
    """Return the standard deviation of the predicted total at the target as a share of it; NaN if it is not above 0."""
    models = [model for model in state.models if isinstance(model, Model)]
    total = sum(max(float(model.evaluate(state.target[None])[0]), 0.0) for model in models)
    variance = sum(doubt.variance for doubt in doubts_of(state))
    return float(np.sqrt(variance)) / total if total > 0.0 else float("nan")


@dataclass(frozen=True)
class Noise:
    """Relative standard deviations: of one run, and of a configuration, which all of its runs have in common."""

    run: float
    configuration: float = 0.0

    def variance(self, runs: FloatArray) -> FloatArray:
        """Return the relative variance of the mean of so many runs of a configuration, 1 at least."""
        return np.asarray(self.configuration**2 + self.run**2 / runs)

    def of_next(self, runs: FloatArray) -> FloatArray:
        """Return the relative variance of an observation that says as much as one run more than `runs`."""
        after = self.variance(runs + 1.0)
        before = self.variance(np.maximum(runs, 1.0))
        said = np.maximum(1.0 / after - 1.0 / before, _ROUNDING / after)
        return np.asarray(np.where(runs > 0, 1.0 / said, after))


class Doubt:
    """The covariance of one call path between all candidates and the target, and what runs would leave of it.

    factors: (r, N + 1), whose transpose times itself is the covariance, the target last. size: (N,) what is expected at
    each candidate, to which `scatter` is relative. runs: (N,) how often it was measured.
    """

    def __init__(self, factors: FloatArray, size: FloatArray, scatter: Noise, runs: FloatArray) -> None:
        self.factors, self._size, self._scatter = factors, size, scatter
        self._runs = runs.astype(np.float64)
        self.noise = scatter.of_next(self._runs) * size**2
        self._at_points = np.einsum("rn,rn->n", factors, factors)
        self._with_target = factors[:, -1] @ factors
        self._rounding = _ROUNDING * self._at_points[:-1]
        self._taken: list[FloatArray] = []

    @property
    def variance(self) -> float:
        """The variance of the prediction at the target."""
        return max(float(self._at_points[-1]), 0.0)

    def gains(self) -> FloatArray:
        """Return by how much one run at each candidate would reduce the variance at the target, (N,)."""
        variance = self._at_points[:-1] + self.noise
        left = variance > self._rounding  # where nothing is expected to scatter, one run is enough
        result: FloatArray = np.where(left, self._with_target[:-1] ** 2 / np.where(left, variance, 1.0), 0.0)
        return result

    def measure(self, candidate: int) -> None:
        """Take off what a run at a candidate reveals."""
        noise = float(self.noise[candidate])
        self._runs[candidate] += 1
        self.noise[candidate] = self._scatter.of_next(self._runs[candidate]) * self._size[candidate] ** 2
        column = self.factors[:, candidate] @ self.factors
        for before in self._taken:
            column -= before * before[candidate]
        scale = float(column[candidate]) + noise
        if scale <= self._rounding[candidate]:
            return
        column = column / np.sqrt(scale)
        self._taken.append(column)
        self._at_points = np.maximum(self._at_points - column**2, 0.0)
        self._with_target = self._with_target - column * column[-1]


def _doubt(model: Model, values: FloatArray, state: State, columns: Columns, known_form: bool) -> Doubt:
    measured = (~np.isnan(values)).any(axis=1)
    rows = np.flatnonzero(measured & ~state.shared)
    if not np.nan_to_num(values[rows]).any():  # nothing was measured there, or nothing happened
        rows = np.flatnonzero(measured)
    means = np.nanmean(values[rows], axis=1)
    counts = (~np.isnan(values[rows])).sum(axis=1)
    scatter = scatter_of(model, values[rows], state.candidates[rows])
    size = np.maximum(np.abs(means), max(LEAST_PART * float(np.abs(means).max()), 1e-300))
    precise = 1.0 / (np.sqrt(scatter.variance(counts)) * size)
    forms = _forms(model, known_form)
    predictions, factors = [], []
    for weight, constant, terms in forms:
        basis = columns.basis(terms)
        at_rows = basis[:, rows]
        scale = np.abs(at_rows).max(axis=1)
        scale = np.where(scale > 0.0, scale, 1.0)  # of a term that is 0 at all of them, nothing is learned
        weighted = at_rows / scale[:, None] * precise
        precision, vectors = np.linalg.eigh(weighted @ weighted.T)
        known = precision > 1e-12 * precision.max(initial=0.0)
        factors.append((np.sqrt(weight / precision[known]) * vectors[:, known] / scale[:, None]).T @ basis)
        predictions.append(np.array([constant, *(term.coefficient for term in terms)]) @ basis)
    mean, between = _spread(np.array([weight for weight, _, _ in forms]), np.array(predictions))
    factors.append(between)
    freedom = float(counts.sum()) - len(model.terms) - 1.0
    observations = Observations(rows, means, precise, max(freedom, 1.0))
    open_parameters = () if known_form else model.parameters
    for weights, exchanged in exchanges(open_parameters, model.terms, columns, observations):
        if len(weights) > 1:
            factors.append(_spread(weights, exchanged)[1])
    within = np.concatenate(factors)
    said = mean[:-1], scatter, (~np.isnan(values)).sum(axis=1)
    if len(forms) > 1 or len(factors) > 2:
        return Doubt(within, *said)
    beyond = _of_exponents(model, columns.points)
    largest = float((within[:, -1] ** 2).sum()), float((beyond[:, -1] ** 2).sum())
    share = min(1.0, np.sqrt(largest[0] / largest[1])) if largest[1] > 0.0 else 0.0
    return Doubt(np.concatenate([within, share * beyond]), *said)


def _forms(model: Model, known_form: bool) -> list[tuple[float, float, Sequence[Term]]]:
    """Return weight, constant and terms of hypotheses; exchanges of functions in the first one count as it."""
    seen = 1.0 - sum(a.weight for a in model.alternatives if a.hidden)
    shape = _structure(model.terms)
    others = [
        (a.weight / seen, a.constant, a.terms)
        for a in model.alternatives
        if not a.hidden and (known_form or _structure(a.terms) != shape)
    ]
    return [(1.0 - sum(weight for weight, _, _ in others), model.constant, model.terms), *others]


def _structure(terms: Sequence[Term]) -> list[list[str]]:
    """Return which parameters are in each product."""
    return sorted(sorted(factor.parameter for factor in term.factors) for term in terms)


def _spread(weights: FloatArray, predictions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean (N,) of predictions (A, N), the target last, and the factors (A, N) of their covariance."""
    mean: FloatArray = weights @ predictions
    apart = np.abs(predictions[:, -1] - mean[-1]) / max(abs(float(mean[-1])), 1e-300)
    limited = np.minimum(1.0, MOST_APART / np.maximum(apart, 1e-300))
    return mean, (np.sqrt(weights) * limited)[:, None] * (predictions - mean)


def _of_exponents(model: Model, points: FloatArray) -> FloatArray:
    """Return factors (r, N) of the covariance at points that comes from what the model leaves open of its exponents."""
    covariance, coefficients = np.array(model.covariance), len(model.terms) + 1
    if len(covariance) <= coefficients:
        return np.zeros((1, len(points)))
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(deviations > 0.0, deviations, 1.0)
    whole = covariance / scale / scale[:, None]
    variances, directions = np.linalg.eigh(whole[coefficients:, coefficients:])
    known = variances > 1e-12 * variances.max(initial=0.0)
    moved = np.concatenate([whole[:coefficients, coefficients:], whole[coefficients:, coefficients:]])
    factors = moved @ (directions[:, known] / np.sqrt(variances[known]))
    result: FloatArray = (model.sensitivities(points) @ (scale[:, None] * factors)).T
    return result


def scatter_of(model: Model, values: FloatArray, points: FloatArray) -> Noise:
    """Return the noise of one run, from repetitions and from what the model leaves.

    Where the model leaves significantly more than repetitions explain (an F test), the rest is of configurations: what
    chance does to the data there, say, which more runs do not change.
    values: (C, R) of one call path, NaN where there are fewer repetitions; points: (C, m).
    """
    means = np.nanmean(values, axis=1)
    happened = np.abs(means) > 1e-12 * np.abs(means).max()
    values, points, means = values[happened], points[happened], means[happened]
    counts = (~np.isnan(values)).sum(axis=1)
    size = np.abs(means)
    repeated = np.nansum(((values - means[:, None]) / size[:, None]) ** 2)
    residuals = (((means - model.evaluate(points)) / size) ** 2 * counts).sum()
    of_runs, of_points = float((counts - 1).sum()), float(max(len(values) - len(model.terms) - 1, 0))
    together = max(float(np.sqrt((repeated + residuals) / max(of_runs + of_points, 1.0))), LEAST_NOISE)
    if of_runs < 1 or of_points < 1:
        return Noise(together)
    run = max(float(repeated) / of_runs, LEAST_NOISE**2)
    between = float(residuals) / of_points
    if between < run * float(f_distribution.ppf(_SIGNIFICANT, of_points, of_runs)):
        return Noise(together)
    return Noise(run**0.5, ((between - run) / float(counts.mean())) ** 0.5)
