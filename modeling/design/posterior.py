# SPDX-License-Identifier: Apache-2.0
"""Quipu's strategy: the runs that most reduce the uncertainty of the prediction at the target per core hour.

The prediction of a call path has these uncertain parts:

- its form: several hypotheses with posterior weights,
- the function of each parameter in the most probable form, such as n² or n·log2(n) (`exchanges`),
- the coefficients of each hypothesis,
- if only one hypothesis is left, its exponents (covariance of the model).

The prediction at points x, y is treated as a Gaussian process with the covariance

    k(x, y) = Σ_h w_h φ_h(x)ᵀ S_h φ_h(y) + Σ_h w_h (f_h(x) - f(x)) (f_h(y) - f(y)) + e(x)ᵀ E e(y)

over the hypotheses h with weight w_h, terms φ_h, covariance of coefficients S_h and prediction f_h; f is the weighted
mean of the predictions. The first sum is the uncertainty of the coefficients from noise. The second sum is the
difference between hypotheses: between the forms and, for each parameter, between its functions. The last part is the
uncertainty of the exponents, with their covariance E and the derivatives e; it is used only if one hypothesis is left.
At the target the last part is limited to the size of the first one. Otherwise it would dominate far beyond the
measurements, and only the largest runs would be suggested.

A run at x with the standard deviation s(x) of noise reduces the variance at the target t by
k(t, x)² / (k(x, x) + s(x)²) (best linear prediction). This does not depend on the measured value, so a whole batch can
be chosen in sequence.

Priors from effort restrict the hypotheses. If runs have more ranks than processors, only their effort is used, not
their times. A line consists of points that differ in one parameter. One line per parameter is enough to find the form
of effort.
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
"""Least relative noise of the time of one run."""
LEAST_PART = 1e-9
"""Times below this share of the largest time count as this share, so that weights are finite."""
MOST_PATHS = 32
"""Largest number of call paths that are considered: the ones with the largest variance at the target."""
MOST_APART = 0.2
"""Largest relative distance between a hypothesis and the mean at the target; larger distances are reduced to it."""
_SIGNIFICANT = 0.99
"""Residuals show more than the noise of runs if the ratio of variances is above this quantile of the F distribution.
This is also the case for 1 % of the call paths without any other error."""
_ROUNDING = 1e-12
"""A variance below this share of its original value counts as rounding error."""


@dataclass(frozen=True)
class Posterior:
    """Chooses the runs with the largest expected reduction of the variance of the predicted total per core hour."""

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return the next runs (`Strategy.suggest`).

        First come one run of each point of the lines of all parameters; if effort determines all forms, only of the
        line of the number of ranks. Then come the best runs per core hour.
        """
        begun = None
        if state.follows_effort:
            begun = of_ranks(state, budget, batch)
        elif not has_lines(state.candidates, state.measured):
            begun = of_lines(state, 1, budget, batch)
        if begun is not None:
            return begun
        doubts = uncertainties_of(state)
        total = sum(doubt.variance for doubt in doubts)
        if not total > 0.0:
            order = np.argsort(state.costs, kind="stable").tolist()
            rest = missing_of(order, state.counts, state.repetitions)
            return in_order(
                state, rest, "the prediction is certain already: a cheap run checks it", budget, batch, gain=0.0
            )
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


def uncertainties_of(state: State) -> list[Uncertainty]:
    """Return the uncertainties of the at most MOST_PATHS call paths with the largest variance at the target."""
    columns = Columns(state.parameters, np.vstack([state.candidates, state.target]))
    doubts = []
    known_forms = state.known_forms or [False] * len(state.models)
    for model, values, known in zip(state.models, state.values, known_forms, strict=True):
        if isinstance(model, Model) and np.nanmax(np.abs(values), initial=0.0) > 0.0:
            found = _uncertainty(model, values, state, columns, known)
            if np.isfinite(found.variance) and found.variance > 0.0:
                doubts.append(found)
    return sorted(doubts, key=lambda doubt: -doubt.variance)[:MOST_PATHS]


def uncertainty_of(state: State) -> float:
    """Return the relative standard deviation of the predicted total at the target; NaN if the total is not above 0."""
    models = [model for model in state.models if isinstance(model, Model)]
    total = sum(max(float(model.evaluate(state.target[None])[0]), 0.0) for model in models)
    variance = sum(doubt.variance for doubt in uncertainties_of(state))
    return float(np.sqrt(variance)) / total if total > 0.0 else float("nan")


@dataclass(frozen=True)
class Noise:
    """Relative standard deviations of measured values.

    run: of the noise of one run. configuration: of an error that all runs of a configuration share.
    """

    run: float
    configuration: float = 0.0

    def variance(self, runs: FloatArray) -> FloatArray:
        """Return the relative variance of the mean of `runs` runs (at least 1) of a configuration; same shape."""
        return np.asarray(self.configuration**2 + self.run**2 / runs)

    def of_next(self, runs: FloatArray) -> FloatArray:
        """Return the relative variance of an independent observation with the information of one more run.

        runs: numbers of previous runs of the configuration. The error that all runs share makes further runs of the
        same configuration less informative.
        """
        after = self.variance(runs + 1.0)
        before = self.variance(np.maximum(runs, 1.0))
        said = np.maximum(1.0 / after - 1.0 / before, _ROUNDING / after)
        return np.asarray(np.where(runs > 0, 1.0 / said, after))


class Uncertainty:
    """The covariance of the prediction of one call path at the N candidates and the target; further runs reduce it.

    factors: (r, N + 1); the covariance is factorsᵀ · factors, with the target last. size: (N,), expected value at each
    candidate, to which `scatter` is relative. runs: (N,), number of runs of each candidate.
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
        """Return the variance of the prediction at the target."""
        return max(float(self._at_points[-1]), 0.0)

    def gains(self) -> FloatArray:
        """Return the reduction (N,) of the variance at the target by one run at each candidate."""
        variance = self._at_points[:-1] + self.noise
        left = variance > self._rounding  # without noise, nothing is left after one run
        result: FloatArray = np.where(left, self._with_target[:-1] ** 2 / np.where(left, variance, 1.0), 0.0)
        return result

    def measure(self, candidate: int) -> None:
        """Reduce the covariance by the information of one run at a candidate, and count the run."""
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


def _uncertainty(model: Model, values: FloatArray, state: State, columns: Columns, known_form: bool) -> Uncertainty:
    measured = (~np.isnan(values)).any(axis=1)
    rows = np.flatnonzero(measured & ~state.shared)
    if not np.nan_to_num(values[rows]).any():  # no usable values: use times with shared processors, too
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
        scale = np.where(scale > 0.0, scale, 1.0)
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
        return Uncertainty(within, *said)
    beyond = _of_exponents(model, columns.points)
    largest = float((within[:, -1] ** 2).sum()), float((beyond[:, -1] ** 2).sum())
    share = min(1.0, np.sqrt(largest[0] / largest[1])) if largest[1] > 0.0 else 0.0
    return Uncertainty(np.concatenate([within, share * beyond]), *said)


def _forms(model: Model, known_form: bool) -> list[tuple[float, float, Sequence[Term]]]:
    """Return (weight, constant, terms) of the hypotheses, the model first, without hidden terms.

    Hypotheses with the same products of parameters as the model, but other functions, are merged with the model: their
    weights are added. `exchanges` treats their functions. known_form: no hypotheses are merged.
    """
    seen = 1.0 - sum(a.weight for a in model.alternatives if a.hidden)
    shape = _structure(model.terms)
    others = [
        (a.weight / seen, a.constant, a.terms)
        for a in model.alternatives
        if not a.hidden and (known_form or _structure(a.terms) != shape)
    ]
    return [(1.0 - sum(weight for weight, _, _ in others), model.constant, model.terms), *others]


def _structure(terms: Sequence[Term]) -> list[list[str]]:
    """Return the parameters of each product, sorted."""
    return sorted(sorted(name for factor in term.factors for name in factor.parameters) for term in terms)


def _spread(weights: FloatArray, predictions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean (N,) of predictions (A, N), and factors (A, N) of the covariance between them.

    The target is the last point. The deviation of a prediction from the mean is reduced to MOST_APART at the target.
    """
    mean: FloatArray = weights @ predictions
    apart = np.abs(predictions[:, -1] - mean[-1]) / max(abs(float(mean[-1])), 1e-300)
    limited = np.minimum(1.0, MOST_APART / np.maximum(apart, 1e-300))
    return mean, (np.sqrt(weights) * limited)[:, None] * (predictions - mean)


def _of_exponents(model: Model, points: FloatArray) -> FloatArray:
    """Return factors (r, N) of the covariance at points (N, m) that uncertain exponents of the model cause.

    0 if the covariance of the model contains no exponents.
    """
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
    """Return the noise of the values of one call path, from repetitions and from the residuals of the model.

    If the residuals are significantly larger than repetitions explain (F test), the difference is an error of the
    configurations, for example from random input data, which more runs do not reduce. Otherwise all deviations are
    noise of runs. values: (C, R), NaN for missing repetitions. points: (C, m).
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
