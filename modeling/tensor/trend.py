"""How a model goes on outside of the measured values.

The logarithm outside is that at the nearest measured value plus the change of a trend between the two. Trends: none; a
log-linear continuation of each mode (rank one, as the paper's rank-one factorization of each factor, with the slope of
its outer part); a sum of products of powers with positive coefficients, which tends to the fastest growing product. The
one that predicts the outermost measured rows best from the others is taken, for each parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

import numpy as np
from scipy.optimize import nnls

from ..experiment import FloatArray
from .als import Decomposition, Penalty, Rows, started
from .modes import IntArray, Mode, modes_of

Form = Literal["hold", "linear", "powers"]
FORMS: tuple[Form, ...] = ("hold", "linear", "powers")
OUTER = (0.25, 0.5)
"""Outer shares of the range of a parameter that its continuation is tried on: near, and far."""
ENOUGH_VALUES, FEW_VALUES_FACTOR = 5, 2.0
"""With fewer measured values a trend must be better than none by this factor: they hardly show its curvature."""
BACKTEST_ROWS = 1500
LEAST_ROWS = 24
MOST_POWERS = 4
"""Parameters whose products of powers are looked at, those with the widest ranges."""
EXPONENTS = (0.0, 0.5, 1.0)
TAIL = 1.0 / 3.0
"""Outer share of a range that gives its slope."""


@dataclass(frozen=True)
class Trend:
    """The continuation: its form by parameter, and what the forms need.

    columns, logarithmic: numeric parameters, and whether their scale is logarithmic. slopes: of the logarithm of the
    time, below and above the range, in that scale. exponents (K, P), coefficients (K): the sum of powers of `powers`.
    errors: mean error in the outermost rows by parameter, and the distance at which it was measured.
    """

    columns: tuple[int, ...] = ()
    logarithmic: tuple[bool, ...] = ()
    forms: tuple[Form, ...] = ()
    slopes: FloatArray = field(default_factory=lambda: np.empty((0, 2)))
    powers: tuple[int, ...] = ()
    exponents: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    coefficients: FloatArray = field(default_factory=lambda: np.empty(0))
    errors: FloatArray = field(default_factory=lambda: np.empty(0))
    distances: FloatArray = field(default_factory=lambda: np.empty(0))

    def step(self, inside: FloatArray, x: FloatArray) -> FloatArray:
        """Return the change of the logarithm from the nearest measured values to the rows, (N,)."""
        result = np.zeros(len(x))
        by_powers = inside.copy()
        for number, column in enumerate(self.columns):
            if self.forms[number] == "linear":
                distance = self._distance(number, inside, x)
                result += np.where(distance > 0, self.slopes[number, 1], self.slopes[number, 0]) * distance
            elif self.forms[number] == "powers":
                by_powers[:, column] = x[:, column]
        if len(self.coefficients):
            result += np.log(self._sum(by_powers)) - np.log(self._sum(inside))
        return result

    def doubt(self, x: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return by how much the interval of the logarithm widens on each side, (N,): zero inside."""
        result = np.zeros(len(x))
        inside = np.clip(x, low, high)
        for number in range(len(self.columns)):
            distance = np.abs(self._distance(number, inside, x))
            result += 2.0 * self.errors[number] * distance / self.distances[number]
        return result

    def _distance(self, number: int, inside: FloatArray, x: FloatArray) -> FloatArray:
        column = self.columns[number]
        return _place(x[:, column], self.logarithmic[number]) - _place(inside[:, column], self.logarithmic[number])

    def _sum(self, x: FloatArray) -> FloatArray:
        return np.maximum(_products(x, self.powers, self.exponents) @ self.coefficients, 1e-300)


def choose_trend(
    form: str, modes: Sequence[Mode], x: FloatArray, logs: FloatArray, random: np.random.Generator
) -> Trend:
    """Return the continuation of `form`, or for auto the one that does best beyond an inner part of the rows."""
    numeric = [mode for mode in modes if mode.kind == "numeric" and len(mode.parameters) == 1 and mode.size > 1]
    if not numeric:
        return Trend()
    x, logs = x[:BACKTEST_ROWS], logs[:BACKTEST_ROWS]
    categorical = [mode.parameters[0] for mode in modes if mode.kind == "categorical"]
    forms: list[Form] = []
    errors, distances = [], []
    for mode in numeric:
        place = mode.scaled(x)
        edges = [place.max() - share * float(np.ptp(place)) for share in OUTER]
        beyond = [np.mean(place[place > edge] - edge) for edge in edges if place.max() > edge]
        distances.append(float(np.mean(beyond or [1.0])))
        if form != "auto":
            forms.append(form)  # type: ignore[arg-type]
            errors.append(OUTER[0] * float(np.std(logs)))
            continue
        parts = [(np.flatnonzero(place <= edge), np.flatnonzero(place > edge)) for edge in edges]
        tried = [_errors(numeric, categorical, x, logs, *part, random) for part in parts]
        found = {name: float(np.mean([one[name] for one in tried])) for name in FORMS}
        factor = FEW_VALUES_FACTOR if len(np.unique(place)) < ENOUGH_VALUES else 1.0
        best = min(FORMS[1:], key=lambda name: found[name])
        forms.append(best if found[best] * factor < found["hold"] else "hold")
        errors.append(found[forms[-1]] if np.isfinite(found[forms[-1]]) else float(np.std(logs)))
    return _fitted(numeric, tuple(forms), x, logs, np.array(errors), np.maximum(distances, 1e-9))


def _errors(
    numeric: Sequence[Mode],
    categorical: Sequence[int],
    x: FloatArray,
    logs: FloatArray,
    inner: IntArray,
    outer: IntArray,
    random: np.random.Generator,
) -> dict[Form, float]:
    """Return the mean absolute error of the logarithm beyond the inner rows, by form of the continuation."""
    if len(inner) < LEAST_ROWS or len(outer) == 0:
        return {"hold": np.inf, "linear": np.inf, "powers": np.inf}
    inside = np.clip(x[outer], x[inner].min(axis=0), x[inner].max(axis=0))
    inside[:, list(categorical)] = x[outer][:, list(categorical)]
    modes = modes_of(x[inner], categorical)
    center, scale = float(logs[inner].mean()), float(logs[inner].std()) or 1.0
    edge = np.full(len(outer), center)
    if modes:
        fit = Decomposition(started(modes, 4, random))
        fit.sweep(modes, Rows(modes, x[inner], (logs[inner] - center) / scale), Penalty(1e-3, 1e-7), 8)
        edge += scale * Rows(modes, inside, np.zeros(len(outer))).predicted(fit.factors)
    result: dict[Form, float] = {}
    for form in FORMS:
        zeros = np.zeros(len(numeric))
        trend = _fitted(numeric, (form,) * len(numeric), x[inner], logs[inner], zeros, zeros + 1.0)
        result[form] = float(np.abs(edge + trend.step(inside, x[outer]) - logs[outer]).mean())
    return result


def _fitted(
    numeric: Sequence[Mode],
    forms: tuple[Form, ...],
    x: FloatArray,
    logs: FloatArray,
    errors: FloatArray,
    distances: FloatArray,
) -> Trend:
    columns = tuple(mode.parameters[0] for mode in numeric)
    logarithmic = tuple(mode.logarithmic for mode in numeric)
    slopes = _slopes(numeric, x, logs) if "linear" in forms else np.zeros((len(numeric), 2))
    trend = Trend(columns, logarithmic, forms, slopes, errors=errors, distances=distances)
    positive = [column for column in columns if x[:, column].min() > 0]
    if "powers" not in forms or not positive:
        return trend
    ranges = {column: float(np.ptp(np.log(x[:, column]))) for column in positive}
    wanted = [column for column, form in zip(columns, forms, strict=True) if form == "powers" and column in ranges]
    powers = tuple(sorted(positive, key=lambda column: (column not in wanted, -ranges[column]))[:MOST_POWERS])
    exponents = np.array(list(product(EXPONENTS, repeat=len(powers))))
    terms = _products(x, powers, exponents) / np.exp(logs)[:, None]  # relative errors count
    size = np.linalg.norm(terms, axis=0)
    coefficients = nnls(terms / size, np.ones(len(x)))[0] / size
    used = coefficients > 0
    return Trend(columns, logarithmic, forms, slopes, powers, exponents[used], coefficients[used], errors, distances)


def _slopes(numeric: Sequence[Mode], x: FloatArray, logs: FloatArray) -> FloatArray:
    """Return the slopes (P, 2) below and above the range of each parameter, of a log-additive model of hinges."""
    design = [np.ones(len(x))]
    for mode in numeric:
        place = mode.scaled(x)
        low, width = place.min(), float(np.ptp(place)) or 1.0
        design += [
            place - low,
            np.maximum(place - low - (1 - TAIL) * width, 0),
            np.maximum(low + TAIL * width - place, 0),
        ]
    matrix = np.column_stack(design)
    norms = np.linalg.norm(matrix, axis=0) + 1e-300
    scaled = matrix / norms
    gram = scaled.T @ scaled + 1e-6 * np.eye(scaled.shape[1])
    found = np.linalg.solve(gram, scaled.T @ logs) / norms
    middle, above, below = found[1::3], found[2::3], found[3::3]
    return np.column_stack([middle - below, middle + above])


def _products(x: FloatArray, powers: Sequence[int], exponents: FloatArray) -> FloatArray:
    return np.exp(np.log(np.maximum(x[:, list(powers)], 1e-300)) @ exponents.T)


def _place(values: FloatArray, logarithmic: bool) -> FloatArray:
    return np.log(np.maximum(values, 1e-300)) if logarithmic else values
