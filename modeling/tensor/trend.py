# SPDX-License-Identifier: Apache-2.0
"""Continue a model outside of the measured values.

ln(time) at a point outside is ln(time) at the nearest measured point, plus the change of a trend between the two
points. The position of a point in a parameter is the logarithm of the parameter, or the parameter itself if a value is
not positive. A parameter has one of these trends (forms):

- hold: no change;
- linear: ln(time) is linear in the position, with the slope of the outer part of the range (a power law);
- damped: the same, but the slope decreases exponentially with the distance (Gardner and McKenzie, "Forecasting trends
  in time series", 1985);
- logarithmic: time is a power of 1 + (distance from the smallest value)/scale (`_bend`), so the slope decreases slowly;
- powers: a sum of products of powers (`powers.py`).

A backtest selects the form of each parameter: trends are fitted to the rows in an inner part of its range, and the form
with the smallest error on the rows beyond it is selected. Several inner parts may select different forms; the result is
the mean of their trends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ..experiment import FloatArray
from ..progress import steps
from .additive import additive_factors
from .als import Penalty, Rows, huber_roots, huber_scale
from .modes import FEW_VALUES, IntArray, Mode, modes_of
from .powers import Powers, fit_powers, power_columns

Form = Literal["hold", "damped", "logarithmic", "linear", "powers"]
FORMS: tuple[Form, ...] = ("hold", "damped", "logarithmic", "linear", "powers")
OUTER = (0.25, 0.35, 0.5)
"""Outer shares of the range of a parameter that are the outer parts of the backtests, from near to far."""
FACTORS: dict[Form, float] = {"hold": 1.0, "damped": 1.0, "linear": 0.9, "powers": 0.8}
"""Factors of the errors in the selection, because growth is likelier than no growth (docs/design/tensor.md)."""
FEW_TREND_VALUES = 6
"""For parameters with fewer values, the logarithmic trend is also tried, and errors have no factors."""
DAMPING = 0.5
"""Distance at which a damped slope has fallen to 1/e, as a share of the measured range."""
BACKTEST_ROWS = 4096
"""Largest number of rows for the fit of trends. With 1500 rows, errors far outside have a standard deviation of 10 %
over seeds; with this number, 2 %."""
LEAST_ROWS = 24
EDGE_PENALTY = Penalty(1e-3, 1e-6)
"""Penalty of the log-additive model that replaces the decomposition at the edge of the inner rows."""
TAIL = 1.0 / 3.0
"""Outer share of a range in which the slope of linear and damped trends is fitted."""
SLOPE_STEPS = 3
"""Number of robust least-squares fits, each with weights from the residuals of the previous one."""
BENDS = (0.5, 0.25, 0.125, 1.0, 2.0)
"""Scales of a logarithmic trend that are tried, as shares of the measured range, in order of preference."""
ROWS_PER_COLUMN = 10
"""With fewer rows per coefficient, the exponent of a logarithmic trend does not depend on other parameters."""
BEND_GAIN = 1e-3
"""Least relative reduction of the error with which a later scale is preferred."""


@dataclass(frozen=True)
class Trend:
    """The continuation of a model: for each of P numeric parameters its form and the coefficients of the form.

    - columns: the parameters. logarithmic: whether their positions are logarithms.
    - slopes: (P, 2), changes of ln(time) per unit of the position, below and above the range.
    - reaches: (P,), distances at which damped slopes have fallen to 1/e.
    - bends: (P, 3 + P), scale, smallest measured position and exponents of logarithmic trends, see `_bend`.
    - powers: the sum of powers of all parameters with this form.
    - errors, distances: (P,), mean absolute error of ln(time) in backtests, and mean distance at which it occurred.
    """

    columns: tuple[int, ...] = ()
    logarithmic: tuple[bool, ...] = ()
    forms: tuple[Form, ...] = ()
    slopes: FloatArray = field(default_factory=lambda: np.empty((0, 2)))
    reaches: FloatArray = field(default_factory=lambda: np.empty(0))
    bends: FloatArray = field(default_factory=lambda: np.empty((0, 3)))
    powers: Powers = field(default_factory=Powers)
    errors: FloatArray = field(default_factory=lambda: np.empty(0))
    distances: FloatArray = field(default_factory=lambda: np.empty(0))

    def step(self, inside: FloatArray, x: FloatArray) -> FloatArray:
        """Return the change (N,) of ln(time) from the nearest measured values `inside` (N, d) to the rows x (N, d)."""
        result = np.zeros(len(x))
        by_powers = inside.copy()
        for number, (column, form) in enumerate(zip(self.columns, self.forms, strict=True)):
            if form == "powers":
                by_powers[:, column] = np.where(x[:, column] > 0.0, x[:, column], inside[:, column])
            elif form != "hold":
                distance = self._distance(number, inside, x)
                if form == "logarithmic":
                    above = distance > 0
                    result[above] += self._bent(number, inside[above], x[above])
                    distance = np.minimum(distance, 0.0)
                if form == "damped":
                    reach = self.reaches[number]
                    distance = np.sign(distance) * reach * -np.expm1(-np.abs(distance) / reach)
                result += np.where(distance > 0, self.slopes[number, 1], self.slopes[number, 0]) * distance
        if self.powers.columns:
            result += self.powers.step(inside, by_powers)
        return result

    def doubt(self, x: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return (N,) by how much the interval of ln(time) widens on each side at rows x (N, d).

        It is 0 within the measured range low .. high, and grows with the distance: 2 · errors/distances per unit.
        """
        result = np.zeros(len(x))
        inside = np.clip(x, low, high)
        for number in range(len(self.columns)):
            distance = np.abs(self._distance(number, inside, x))
            result += 2.0 * self.errors[number] * distance / self.distances[number]
        return result

    def _bent(self, number: int, inside: FloatArray, x: FloatArray) -> FloatArray:
        scale, low, exponent = self.bends[number, :3]
        places = [self._scaled(at, inside) for at in range(len(self.columns))]
        exponents = exponent + np.column_stack(places) @ self.bends[number, 3:]
        return np.asarray(exponents * np.log1p(self._distance(number, inside, x) / (scale + places[number] - low)))

    def _scaled(self, number: int, x: FloatArray) -> FloatArray:
        here = x[:, self.columns[number]]
        return np.log(np.where(here > 0.0, here, 1.0)) if self.logarithmic[number] else here

    def _distance(self, number: int, inside: FloatArray, x: FloatArray) -> FloatArray:
        here, there = inside[:, self.columns[number]], x[:, self.columns[number]]
        if not self.logarithmic[number]:
            return there - here
        positive = (here > 0.0) & (there > 0.0)  # rows that were not used for the fit of the trend may contain a 0
        return np.log(np.where(positive, there, 1.0) / np.where(positive, here, 1.0))


@dataclass(frozen=True)
class _Values:
    """Columns with at most FEW_VALUES different values (grid), and with fewer than FEW_TREND_VALUES (few)."""

    grid: frozenset[int]
    few: frozenset[int]


@dataclass(frozen=True)
class Continuation:
    """The weighted mean of several trends; the shares sum to 1. Without trends, the outermost values hold."""

    trends: tuple[Trend, ...] = ()
    shares: tuple[float, ...] = ()

    def forms(self, column: int) -> tuple[Form, ...]:
        """Return the different forms of the trends in a column; () for a constant or categorical column."""
        found = [one.forms[one.columns.index(column)] for one in self.trends if column in one.columns]
        return tuple(dict.fromkeys(found))

    def step(self, inside: FloatArray, x: FloatArray) -> FloatArray:
        """Return the change (N,) of ln(time) from the nearest measured values `inside` (N, d) to the rows x (N, d)."""
        result = np.zeros(len(x))
        for trend, share in zip(self.trends, self.shares, strict=True):
            result += share * trend.step(inside, x)
        return result

    def doubt(self, x: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return (N,) by how much the interval of ln(time) widens on each side at rows x (N, d); 0 in low .. high."""
        return self.trends[0].doubt(x, low, high) if self.trends else np.zeros(len(x))


def choose_trend(form: str, modes: Sequence[Mode], x: FloatArray, logs: FloatArray) -> Continuation:
    """Return the continuation of a model with these modes, fitted to rows x (N, d) with ln(time), logs (N,).

    form: one of FORMS for all parameters, or "auto": the form with the smallest error in backtests for each parameter.
    """
    columns = [mode.parameters[0] for mode in modes if mode.kind == "numeric" and len(mode.parameters) == 1]
    x, logs = x[:BACKTEST_ROWS], logs[:BACKTEST_ROWS]
    columns = [column for column in columns if np.ptp(x[:, column]) > 0]
    if not columns:
        return Continuation()
    counts = {column: len(np.unique(x[:, column])) for column in columns}
    values = _Values(
        frozenset(column for column in columns if counts[column] <= FEW_VALUES),
        frozenset(column for column in columns if counts[column] < FEW_TREND_VALUES),
    )
    categorical = [mode.parameters[0] for mode in modes if mode.kind == "categorical"]
    forms: list[tuple[Form, ...]] = []
    errors, distances = [], []
    for column in steps("continuation of the parameters", columns):
        place = _place(x[:, column])
        edges = [place.max() - share * float(np.ptp(place)) for share in OUTER]
        distances.append(float(np.mean([np.mean(place[place > edge] - edge) for edge in edges])))
        if form != "auto":
            forms.append((form,) * len(OUTER))  # type: ignore[arg-type]
            errors.append(OUTER[0] * float(np.std(logs)))
            continue
        parts = [(np.flatnonzero(place <= edge), np.flatnonzero(place > edge)) for edge in edges]
        few = column in values.few
        names = FORMS if few else tuple(FACTORS)
        tried = [_errors(column, columns, categorical, x, logs, *part, names, values) for part in parts]
        forms.append(_voted(tried, {} if few else FACTORS))
        found = [one[name] for name in forms[-1] for one in tried if np.isfinite(one[name])]
        errors.append(float(np.mean(found)) if found else float(np.std(logs)))
    together = Counter(zip(*forms, strict=True))
    reached = np.maximum(distances, 1e-9)
    trends = tuple(_fitted(columns, each, x, logs, np.array(errors), reached, values) for each in together)
    return Continuation(trends, tuple(count / len(OUTER) for count in together.values()))


def _voted(tried: Sequence[dict[Form, float]], factors: Mapping[Form, float]) -> tuple[Form, ...]:
    """Return the form with the smallest error times its factor in each backtest.

    tried: for each backtest, the error of each form, inf if the backtest is impossible. Impossible backtests have the
    form of the last possible one, or "hold".
    """
    result: list[Form] = [
        min(one, key=lambda name: one[name] * factors.get(name, 1.0)) for one in tried if np.isfinite(one["hold"])
    ]
    result = result or ["hold"]
    return tuple(result + result[-1:] * (len(tried) - len(result)))


def _errors(
    column: int,
    columns: Sequence[int],
    categorical: Sequence[int],
    x: FloatArray,
    logs: FloatArray,
    inner: IntArray,
    outer: IntArray,
    tried: Sequence[Form],
    values: _Values,
) -> dict[Form, float]:
    """Return for each form the mean absolute error of ln(time) at the outer rows, for trends of the inner rows.

    column: the parameter of the backtest; other parameters hold their outermost values. inner, outer: indices of rows.
    A log-additive model of the inner rows predicts the nearest points. Errors are inf if the backtest is impossible.
    """
    if len(inner) < LEAST_ROWS or len(outer) == 0:
        return dict.fromkeys(tried, np.inf)
    inside = np.clip(x[outer], x[inner].min(axis=0), x[inner].max(axis=0))
    inside[:, list(categorical)] = x[outer][:, list(categorical)]
    modes = modes_of(x[inner], categorical)
    center, scale = float(logs[inner].mean()), float(logs[inner].std()) or 1.0
    edge = np.full(len(outer), center)
    if modes:
        factors = additive_factors(modes, x[inner], (logs[inner] - center) / scale, EDGE_PENALTY)
        edge += scale * Rows(modes, inside, np.zeros(len(outer))).predicted(factors)
    varied = [one for one in columns if np.ptp(x[inner, one]) > 0]
    result: dict[Form, float] = {}
    for form in tried:
        forms = tuple(form if one == column else "hold" for one in varied)
        trend = _fitted(varied, forms, x[inner], logs[inner], np.zeros(len(varied)), np.ones(len(varied)), values)
        used = form != "powers" or column in trend.powers.columns
        result[form] = float(np.abs(edge + trend.step(inside, x[outer]) - logs[outer]).mean()) if used else np.inf
    return result


def _fitted(
    columns: Sequence[int],
    forms: tuple[Form, ...],
    x: FloatArray,
    logs: FloatArray,
    errors: FloatArray,
    distances: FloatArray,
    values: _Values,
) -> Trend:
    logarithmic = tuple(bool(x[:, column].min() > 0) for column in columns)
    wanted = [column for column, form in zip(columns, forms, strict=True) if form == "powers"]
    used = power_columns(x, columns, wanted) if wanted else ()
    forms = tuple(
        "linear" if form == "powers" and column not in used else form
        for column, form in zip(columns, forms, strict=True)
    )
    places = [_place(x[:, column]) for column in columns]
    sloped = not set(forms) <= {"hold", "powers"}
    slopes = _slopes(places, logs) if sloped else np.zeros((len(columns), 2))
    bends = np.zeros((len(columns), 3 + len(columns)))
    bends[:, 0] = 1.0
    for number, form in enumerate(forms):
        if form == "logarithmic":
            bends[number] = _bend(places, number, logs)
    reaches = np.array([DAMPING * float(np.ptp(place)) for place in places])
    powers = fit_powers(x, logs, used, values.grid, values.few)
    return Trend(tuple(columns), logarithmic, forms, slopes, reaches, bends, powers, errors, distances)


def _slopes(places: Sequence[FloatArray], logs: FloatArray) -> FloatArray:
    """Return the slopes (P, 2) of ln(time) below and above the range of each parameter.

    places: for each parameter, the positions (N,) of the rows. The model is log-additive and continuous; along each
    parameter it consists of up to three lines, which change at hinges. Hinges are at measured values, so with few
    values the slope is that between the outermost ones.
    """
    design = [np.ones(len(logs))]
    numbers = []
    for place in places:
        hinges, above, below = _hinges(place)
        numbers.append((len(design), above, below))
        design += hinges
    found, _ = _robust(np.column_stack(design), logs)
    result = np.empty((len(places), 2))
    for number, (first, above, below) in enumerate(numbers):
        result[number] = found[first]
        result[number, 1] += found[first + 1] if above else 0.0
        result[number, 0] -= found[first + 1 + above] if below else 0.0
    return result


def _hinges(place: FloatArray) -> tuple[list[FloatArray], bool, bool]:
    """Return the columns (N,) of a function of lines with hinges at the positions `place` (N,).

    The first column is the line; the others begin at the upper and at the lower hinge. Also returns whether there is an
    upper and a lower hinge.
    """
    values = np.unique(place)
    width = values[-1] - values[0]
    upper = values[values <= values[0] + (1.0 - TAIL) * width][-1]
    lower = values[values >= values[0] + TAIL * width][0]
    result = [place - values[0]]
    if upper > values[0]:
        result.append(np.maximum(place - upper, 0.0))
    if lower < upper:
        result.append(np.maximum(lower - place, 0.0))
    return result, bool(upper > values[0]), bool(lower < upper)


def _bend(places: Sequence[FloatArray], number: int, logs: FloatArray) -> FloatArray:
    """Return the coefficients (3 + P,) of a logarithmic trend: time is proportional to (1 + z/s)^b in one parameter.

    z is the distance of the position from the smallest one, s the scale. b = b₀ + Σ bⱼ · (position of parameter j),
    because the growth with one parameter can depend on the others. Result: s, smallest position, b₀, bⱼ for each
    parameter. In logarithmic positions, time is a power of a logarithm; the slope of ln(time) is b/(s + z).
    """
    place = places[number] - places[number].min()
    others = [at for at in range(len(places)) if at != number]
    columns = [column for at in others for column in _hinges(places[at])[0]]
    if len(logs) < ROWS_PER_COLUMN * (len(columns) + len(others)):
        others = []
    centers = np.array([places[at].mean() for at in others])
    best, result = np.inf, np.zeros(3 + len(places))
    for share in BENDS:
        scale = share * float(np.ptp(place))
        growth = np.log1p(place / scale)
        crossed = [growth * (places[at] - center) for at, center in zip(others, centers, strict=True)]
        found, error = _robust(np.column_stack([growth, *crossed, np.ones(len(logs)), *columns]), logs)
        if error < best * (1.0 - BEND_GAIN):
            exponents = found[1 : 1 + len(others)]
            best, result[0], result[1] = error, scale, places[number].min()
            result[2] = found[0] - exponents @ centers
            result[[3 + at for at in others]] = exponents
    return result


def _robust(matrix: FloatArray, logs: FloatArray) -> tuple[FloatArray, float]:
    """Return the coefficients of least squares with Huber's weights, and the mean absolute residual.

    matrix: (N, columns); logs: (N,).
    """
    norms = np.linalg.norm(matrix, axis=0) + 1e-300
    scaled = matrix / norms
    roots = np.ones(len(logs))
    found, residual = np.zeros(len(norms)), np.abs(logs)
    for _ in range(SLOPE_STEPS):
        weighted = scaled * roots[:, None]
        gram = weighted.T @ weighted + 1e-6 * np.eye(len(norms))
        found = np.linalg.solve(gram, weighted.T @ (logs * roots))
        residual = np.abs(logs - scaled @ found)
        roots = huber_roots(residual, huber_scale(residual))
    return found / norms, float(residual.mean())


def _place(values: FloatArray) -> FloatArray:
    return np.log(values) if values.min() > 0.0 else values
