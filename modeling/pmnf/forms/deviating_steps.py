# SPDX-License-Identifier: Apache-2.0
"""Model counts that depend on data and grow in steps, such as merges: n·⌈log2(n/7)⌉ plus a random part.

Sums of up to three functions, one of them with steps, are compared with the former model by the posterior of counts
that deviate (criterion/deviating.py). They replace it if the gain exceeds twice the logarithm of the number of tried
sums, and STEPS_LEAST_GAIN. The number of cells of a quadtree oscillates around a multiple of n; with sizes that double,
4^⌈log4(n/u)⌉ in addition to n describes this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log

import numpy as np

from ...experiment import FloatArray
from ..build import qualities
from ..calibration import (
    FINALISTS,
    INEXACT,
    LEAST_SHARE,
    SHOWN_BELOW_LEAD,
    STEPS_DEVIATING_BASES,
    STEPS_LEAST,
    STEPS_LEAST_GAIN,
)
from ..criterion.criterion import ALL, Rows
from ..criterion.deviating import Deviating, Numbers, penalty_of
from ..data.noise import Repetitions
from ..data.preparation import ranges
from ..fit.shortlist import lowest
from ..fit.subsets import solve_shared
from ..hypotheses.library import SLOW_GROWTH
from ..hypotheses.tables import make_tables
from ..model import Alternative, Factor, Model, Steps, Term, evaluate
from ..proposers.steps import classes_of_steps, likeliest_of_alike, unlikeliness
from ..uncertainty.covariance import joint_covariance, value_variance

_Factors = tuple[Factor, ...]


@dataclass(frozen=True)
class _Candidate:
    """A sum of a call path, with its score and its predictions at further values of the parameter."""

    score: float
    steps: Steps
    constant: float
    terms: tuple[Term, ...]


class DeviatingSteps:
    """Counts `values` (N, C) at `points` (C, m), of which only the parameter `name` varies, with their repetitions."""

    def __init__(
        self, points: FloatArray, names: tuple[str, ...], name: str, values: FloatArray, repetitions: Repetitions
    ) -> None:
        self.points, self.names, self.name = points, names, name
        self.values, self.repetitions = values, repetitions
        self.x = points[:, names.index(name)]
        self.criterion = Deviating(self.x[:, None], make_tables(self.x[:, None], SLOW_GROWTH), values, repetitions)
        classes = classes_of_steps(tuple(self.x.tolist()))
        shown = [alike for alike in classes if np.unique(alike[0].number(self.x)).size > STEPS_LEAST]
        self.classes = [alike for alike in shown if alike[0].base in STEPS_DEVIATING_BASES]

    def models(self, former: Sequence[Model]) -> list[Model | None]:
        """Return the models that are sufficiently likelier than the `former` ones; None for others."""
        if not self.classes or self.x.size < 5:
            return [None] * len(former)
        forms = [(number, own) for number, alike in enumerate(self.classes) for own in _forms(self.name, alike[0])]
        rough = self._rough(forms)
        best = lowest(rough, FINALISTS)
        result: list[Model | None] = []
        for path, model in enumerate(former):
            before = self._score(path, model.constant, model.terms)
            most = before - 2.0 * log(len(forms)) - STEPS_LEAST_GAIN
            found = []
            for number in best[path][rough[path, best[path]] <= most].tolist():
                alike, form = self.classes[forms[number][0]], forms[number][1]
                if (first := self._fitted(path, alike[0], form, most)) is not None:
                    others = (self._fitted(path, steps, form, most) for steps in alike[1:])
                    found += [first, *(own for own in others if own is not None)]
            result.append(self._model(path, found, model.notes) if found else None)
        return result

    def _rough(self, forms: Sequence[tuple[int, tuple[_Factors, ...]]]) -> FloatArray:
        """Return scores (N, H) of the `forms`, only with penalties of coefficients."""
        criterion = self.criterion
        total = ((criterion.weights * self.values) ** 2).sum(axis=1, keepdims=True)
        products = list(dict.fromkeys(product for _, own in forms for product in own))
        table = np.array([_column(self.name, product, self.x) for product in products])
        table /= np.abs(table).max(axis=1, keepdims=True)
        place = {product: number for number, product in enumerate(products)}
        scores = np.empty((len(self.values), len(forms)))
        for width in (1, 2, 3):
            own = np.array([number for number, (_, form) in enumerate(forms) if len(form) == width])
            subsets = np.array([[place[product] for product in forms[number][1]] for number in own.tolist()])
            _, explained = solve_shared(table, subsets, self.values, criterion.weights)
            penalty = np.full((1, own.size), INEXACT.coefficient * width)
            scores[:, own] = self._posterior(np.maximum(total - explained, 0.0), Numbers(width - 1, width), penalty)
        return np.where(np.isnan(scores), np.inf, scores)

    def _fitted(self, path: int, steps: Steps, form: tuple[_Factors, ...], most: float) -> _Candidate | None:
        """Return the sum of the functions of `form` with these steps, if its score is at most `most`."""
        shapes = [
            tuple(factor if factor.steps is None else _with(factor, steps) for factor in product) for product in form
        ]
        columns = np.array([_column(self.name, product, self.x) for product in shapes])
        weights = self.criterion.weights[path]
        top = np.abs(columns).max(axis=1)
        design = (columns / top[:, None] * weights).T
        found, _, rank, _ = np.linalg.lstsq(design, self.values[path] * weights, rcond=None)
        if rank < len(shapes):
            return None
        coefficients = found / top
        shown = (np.abs(coefficients[:, None] * columns) * weights).max(axis=1)
        least = min(LEAST_SHARE, SHOWN_BELOW_LEAD * float(self.criterion.known[path]))
        if coefficients[0] <= 0.0 or shown.min() < least:
            return None
        parts = list(zip(coefficients.tolist(), shapes, strict=True))
        constant = sum(value for value, product in parts if not product)
        terms = tuple(Term(value, product) for value, product in parts if product)
        score = self._score(path, constant, terms)
        return _Candidate(score + unlikeliness(steps), steps, constant, terms) if score <= most else None

    def _score(self, path: int, constant: float, terms: tuple[Term, ...]) -> float:
        """Return -2 log of the posterior of a model of a call path."""
        fitted = evaluate(self.names, constant, terms, self.points)
        width = len(terms) + bool(constant)
        squares = ((self.criterion.weights[path] * (fitted - self.values[path])) ** 2).sum()
        penalty = penalty_of(constant, terms, self.name)
        numbers, rows = Numbers(width - 1, width), np.array([path])
        return float(self._posterior(np.array([[squares]]), numbers, np.array([[penalty]]), rows)[0, 0])

    def _posterior(self, squares: FloatArray, numbers: Numbers, penalty: FloatArray, rows: Rows = ALL) -> FloatArray:
        """Return scores from the sums of squared errors (N, H) of sums with these numbers of coefficients."""
        points = self.x.size
        mean, free = squares / points, max(points - numbers.coefficients, 0.5)
        left_out = mean * (points / free) ** 2
        return self.criterion.posterior(mean, points, penalty, [numbers], rows, left_out)

    def _model(self, path: int, found: Sequence[_Candidate], notes: tuple[str, ...]) -> Model:
        """Return the likeliest sum as a model, with the sums that differ beyond the values as alternatives."""
        values, points = self.values[path][None], self.points
        far = self.points[[-1]].repeat(31, axis=0)
        far[:, self.names.index(self.name)] = self.x.max() * np.arange(2.0, 33.0)
        ahead = [np.log(np.maximum(evaluate(self.names, own.constant, own.terms, far), 1e-300)) for own in found]
        keys = [np.round(logs, 4).tobytes() for logs in ahead]
        (_, best), *rest = likeliest_of_alike([(own.score, key, own) for key, own in zip(keys, found, strict=True)])
        columns = [_column(self.name, term.factors, self.x) for term in best.terms]
        design = np.array([np.ones_like(self.x), *columns])[None]
        coefficients = np.array([[best.constant, *(term.coefficient for term in best.terms)]])
        fitted = np.einsum("nk,nkc->nc", coefficients, design)
        width = (coefficients != 0).sum(axis=1)
        quality = qualities(values, fitted, np.full(1, np.nan), width)[0]
        residual, repetitions = np.array([quality.rms_relative]), _row(self.repetitions, path)
        variance = value_variance(residual, repetitions, self.x.size, width + len(best.terms))
        covariance = joint_covariance(design, coefficients, points, variance, values)[0]
        others = tuple(Alternative(weight, own.constant, own.terms) for weight, own in rest)
        rows = tuple(map(tuple, covariance.tolist()))
        return Model(self.names, best.constant, best.terms, quality, ranges(points), rows, others, notes)


def _forms(name: str, steps: Steps) -> list[tuple[_Factors, ...]]:
    """Return the sums that are tried: products, one with steps first. The empty product is a constant."""
    plain: list[_Factors] = [(), (Factor(name, Fraction(1)),), (Factor(name, Fraction(1), 1),)]
    passes = (Factor(name, Fraction(1)), Factor(name, log=1, steps=steps))
    padded = (Factor(name, Fraction(1), steps=steps),)
    both = (Factor(name, Fraction(1), 1, steps=steps),)
    pairs = [(own, other) for own in (passes, padded, both) for other in plain]
    more = [(passes, padded), (passes, plain[1], plain[0]), (passes, plain[1], plain[2]), (passes, padded, plain[1])]
    more.append((padded, plain[1], plain[2]))
    return [(passes,), (padded,), (both,), *pairs, *more]


def _with(factor: Factor, steps: Steps) -> Factor:
    return Factor(factor.parameter, factor.exponent, factor.log, steps=steps)


def _column(name: str, product: _Factors, x: FloatArray) -> FloatArray:
    return Term(1.0, product).evaluate({name: x}, x.shape)


def _row(repetitions: Repetitions, path: int) -> Repetitions:
    return Repetitions(*(field[[path]] for field in vars(repetitions).values()))
