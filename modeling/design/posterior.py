"""Quipu's strategy: the runs that most reduce the uncertainty of the prediction at the target per core hour.

What is not known of a call path is a mixture: near-best hypotheses with their posterior weights, and the coefficients
of each with their covariance. Its mean and covariance between any two points make a Gaussian process whose kernel is
what the models still doubt, k(x, y) = Σ_h w_h φ_h(x)ᵀ S_h φ_h(y) + Σ_h w_h (f_h(x) - f(x)) (f_h(y) - f(y)): the first
part is what noise left open, the second where hypotheses disagree. A run at x reduces the variance at the target t by
k(t, x)² / (k(x, x) + s(x)²) (best linear prediction; s: the noise of one run), whatever it will measure, so that a
whole batch can be chosen, each run after those before it. What is known of the form, as under priors from effort, is
in the hypotheses: with one alone, only its coefficients are left to be measured, and cheap points do that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..experiment import FloatArray
from ..pmnf.model import Model, evaluate
from ..pmnf.model.term import Term
from .baseline import baseline, has_lines, missing_of
from .state import State, Suggestion, in_order

LEAST_NOISE = 1e-3
"""Relative noise of one run that is always expected: times of a program are not known better than that."""
MOST_PATHS = 32
"""Call paths that are looked at: those with most variance at the target."""


@dataclass(frozen=True)
class Posterior:
    """Choose by the expected reduction of the variance of the predicted total at the target, for each core hour."""

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return the next runs: one repetition of the lines of each parameter first, then the best for their cost."""
        if not has_lines(state.candidates, state.measured):
            begun = missing_of(baseline(state.candidates, state.costs), state.counts, 1)
            return in_order(state, begun, "of the line of a parameter", budget, batch)
        doubts = doubts_of(state)
        total = sum(doubt.variance for doubt in doubts)
        if not total > 0.0:
            order = np.argsort(state.costs, kind="stable").tolist()
            rest = missing_of(order, state.counts, state.repetitions)
            return in_order(state, rest, "the models leave nothing open: a cheap check", budget, batch)
        counts, chosen = state.counts.copy(), list[Suggestion]()
        while len(chosen) < batch:
            possible = (counts < state.repetitions) & (state.costs <= budget)
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
    rows = np.flatnonzero((~np.isnan(values)).any(axis=1))
    means = np.nanmean(values[rows], axis=1)
    counts = (~np.isnan(values[rows])).sum(axis=1)
    noise = relative_noise(model, values[rows], state.candidates[rows])
    hypotheses = _hypotheses(model)
    predictions, factors = [], []
    for weight, constant, terms in hypotheses:
        basis = _basis(model.parameters, terms, everywhere)
        coefficients = np.array([constant, *(term.coefficient for term in terms)])
        largest = np.maximum(np.abs(basis[rows]).max(axis=0), 1e-300)
        scaled = basis / largest
        weighted = scaled[rows] * (np.sqrt(counts) / (noise * np.maximum(np.abs(means), 1e-300)))[:, None]
        values_of, vectors = np.linalg.eigh(weighted.T @ weighted)
        known = values_of > 1e-12 * values_of.max(initial=0.0)
        factors.append(np.sqrt(weight) * scaled @ (vectors[:, known] / np.sqrt(values_of[known])))
        predictions.append(basis @ coefficients)
    weights = np.array([weight for weight, _, _ in hypotheses])
    mean = weights @ np.array(predictions)
    apart = [np.sqrt(w) * (own - mean) for w, own in zip(weights, predictions, strict=True)]
    return Doubt(np.column_stack([*factors, *apart]), (noise * mean[:-1]) ** 2)


def _hypotheses(model: Model) -> list[tuple[float, float, Sequence[Term]]]:
    """Return weight, constant and terms of the model's own hypothesis and its alternatives."""
    others = [(other.weight, other.constant, other.terms) for other in model.alternatives]
    return [(1.0 - sum(weight for weight, _, _ in others), model.constant, model.terms), *others]


def _basis(parameters: Sequence[str], terms: Sequence[Term], points: FloatArray) -> FloatArray:
    """Return the constant and the terms with coefficient 1 at points, (C, 1 + terms)."""
    columns = [evaluate(parameters, 0.0, (Term(1.0, term.factors),), points) for term in terms]
    return np.column_stack([np.ones(len(points)), *columns])


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
