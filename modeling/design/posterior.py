"""Quipu's strategy: the runs that most reduce the uncertainty of the prediction at the target per core hour.

What is not known of a call path is what the interval of its prediction says: near-best hypotheses with their posterior
weights, the coefficients of each, and what the measurements leave open of the exponents, which is in the covariance of
the model. Its mean and covariance between any two points make a Gaussian process whose kernel is what the models still
doubt, k(x, y) = Σ_h w_h φ_h(x)ᵀ S_h φ_h(y) + Σ_h w_h (f_h(x) - f(x)) (f_h(y) - f(y)) + e(x)ᵀ E e(y): the first part is
what noise left open, the second where hypotheses disagree, the third how exponents may deviate from a form that is
the only one left: as long as there are several, telling them apart comes first. At the target the third counts at most
as much as the first: far beyond the measurements it would outweigh it, and no run but the largest would be worth its
cost. A run at x reduces the variance at the target t by
k(t, x)² / (k(x, x) + s(x)²) (best linear prediction; s: the noise of one run), whatever it will measure, so that a
whole batch can be chosen, each run after those before it. What is known of the form, as under priors from effort, is
in the hypotheses. Runs with more ranks than processors say nothing of the time, only of effort: a line is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..experiment import FloatArray
from ..pmnf.model import Model
from ..pmnf.model.term import Term
from .baseline import has_lines, missing_of
from .state import State, Suggestion, in_order, of_lines

LEAST_NOISE = 1e-3
"""Relative noise of one run that is always expected: times of a program are not known better than that."""
MOST_PATHS = 32
"""Call paths that are looked at: those with most variance at the target."""


@dataclass(frozen=True)
class Posterior:
    """Choose by the expected reduction of the variance of the predicted total at the target, for each core hour."""

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return the next runs: one repetition of the lines of each parameter first, then the best for their cost."""
        missing = not has_lines(state.candidates, state.measured)
        if missing and (begun := of_lines(state, 1, budget, batch)) is not None:
            return begun
        doubts = doubts_of(state)
        total = sum(doubt.variance for doubt in doubts)
        if not total > 0.0:
            order = np.argsort(state.costs, kind="stable").tolist()
            rest = missing_of(order, state.counts, state.repetitions)
            return in_order(state, rest, "the models leave nothing open: a cheap check", budget, batch)
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
    everywhere = np.vstack([state.candidates, state.target])
    doubts = []
    for model, values in zip(state.models, state.values, strict=True):
        if isinstance(model, Model):
            found = _doubt(model, values, state, everywhere)
            if np.isfinite(found.variance) and found.variance > 0.0:
                doubts.append(found)
    return sorted(doubts, key=lambda doubt: -doubt.variance)[:MOST_PATHS]


class Doubt:
    """The covariance of one call path between all candidates and the target, and what runs would leave of it.

    factors: (N + 1, r), whose product with its transpose is the covariance, the target last. noise: (N,) variance of
    one run at each candidate.
    """

    def __init__(self, factors: FloatArray, noise: FloatArray) -> None:
        self.factors, self.noise = factors, noise
        self._own = np.einsum("nr,nr->n", factors, factors)
        self._target = factors @ factors[-1]
        self._taken: list[FloatArray] = []

    @property
    def variance(self) -> float:
        """The variance of the prediction at the target."""
        return max(float(self._own[-1]), 0.0)

    def gains(self) -> FloatArray:
        """Return by how much one run at each candidate would reduce the variance at the target, (N,)."""
        result: FloatArray = self._target[:-1] ** 2 / np.maximum(self._own[:-1] + self.noise, 1e-300)
        return result

    def measure(self, candidate: int) -> None:
        """Take off what a run at a candidate reveals."""
        column = self.factors @ self.factors[candidate]
        for before in self._taken:
            column -= before * before[candidate]
        scale = float(column[candidate] + self.noise[candidate])
        if scale <= 0.0:
            return
        column = column / np.sqrt(scale)
        self._taken.append(column)
        self._own = np.maximum(self._own - column**2, 0.0)
        self._target = self._target - column * column[-1]


def _doubt(model: Model, values: FloatArray, state: State, everywhere: FloatArray) -> Doubt:
    rows = np.flatnonzero((~np.isnan(values)).any(axis=1) & ~state.shared)
    if not rows.size:
        rows = np.flatnonzero((~np.isnan(values)).any(axis=1))
    means = np.nanmean(values[rows], axis=1)
    counts = (~np.isnan(values[rows])).sum(axis=1)
    noise = relative_noise(model, values[rows], state.candidates[rows])
    seen = 1.0 - sum(a.weight for a in model.alternatives if a.hidden)
    forms: list[tuple[float, float, Sequence[Term]]] = [
        (a.weight / seen, a.constant, a.terms) for a in model.alternatives if not a.hidden
    ]
    forms.insert(0, (1.0 - sum(weight for weight, _, _ in forms), model.constant, model.terms))
    predictions, factors = [], []
    for weight, constant, terms in forms:
        basis = replace(model, constant=constant, terms=tuple(terms), covariance=()).sensitivities(everywhere)
        scaled = basis / np.maximum(np.abs(basis[rows]).max(axis=0), 1e-300)
        weighted = scaled[rows] * (np.sqrt(counts) / (noise * np.maximum(np.abs(means), 1e-300)))[:, None]
        values_of, vectors = np.linalg.eigh(weighted.T @ weighted)
        known = values_of > 1e-12 * values_of.max(initial=0.0)
        factors.append(np.sqrt(weight) * scaled @ (vectors[:, known] / np.sqrt(values_of[known])))
        predictions.append(basis @ np.array([constant, *(term.coefficient for term in terms)]))
    weights = np.array([weight for weight, _, _ in forms])
    mean = weights @ np.array(predictions)
    factors += [np.sqrt(w) * (own - mean)[:, None] for w, own in zip(weights, predictions, strict=True)]
    within = np.concatenate(factors, axis=1)
    noises = (noise * mean[:-1]) ** 2
    if len(forms) > 1:
        return Doubt(within, noises)
    beyond = _of_exponents(model, everywhere)
    largest = float((within[-1] ** 2).sum()), float((beyond[-1] ** 2).sum())
    share = min(1.0, np.sqrt(largest[0] / largest[1])) if largest[1] > 0.0 else 0.0
    return Doubt(np.concatenate([within, share * beyond], axis=1), noises)


def _of_exponents(model: Model, points: FloatArray) -> FloatArray:
    """Return factors (N, r) of the covariance at points that comes from what the model leaves open of its exponents."""
    covariance, coefficients = np.array(model.covariance), len(model.terms) + 1
    if len(covariance) <= coefficients:
        return np.zeros((len(points), 1))
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(deviations > 0.0, deviations, 1.0)
    whole = covariance / scale / scale[:, None]
    variances, directions = np.linalg.eigh(whole[coefficients:, coefficients:])
    known = variances > 1e-12 * variances.max(initial=0.0)
    moved = np.concatenate([whole[:coefficients, coefficients:], whole[coefficients:, coefficients:]])
    factors = moved @ (directions[:, known] / np.sqrt(variances[known]))
    result: FloatArray = model.sensitivities(points) @ (scale[:, None] * factors)
    return result


def relative_noise(model: Model, values: FloatArray, points: FloatArray) -> float:
    """Return the relative standard deviation of one run, from repetitions and from what the model leaves.

    values: (C, R) of one call path, NaN where there are fewer repetitions; points: (C, m).
    """
    means = np.nanmean(values, axis=1)
    happened = np.abs(means) > 1e-12 * np.abs(means).max()
    values, points, means = values[happened], points[happened], means[happened]
    counts = (~np.isnan(values)).sum(axis=1)
    size = np.abs(means)
    repeated = np.nansum(((values - means[:, None]) / size[:, None]) ** 2)
    residuals = (((means - model.evaluate(points)) / size) ** 2 * counts).sum()
    freedom = float((counts - 1).sum()) + max(len(values) - len(model.terms) - 1, 0)
    return max(float(np.sqrt((repeated + residuals) / max(freedom, 1.0))), LEAST_NOISE)
