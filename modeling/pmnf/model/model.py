# SPDX-License-Identifier: Apache-2.0
"""Models in performance model normal form: f(x) = c_0 + Σ_k c_k Π_l x_l^i_kl · log2(x_l)^j_kl for parameters x_l.

Source: Calotoiu et al., Using Automated Performance Modeling to Find Scalability Bugs in Complex Codes, SC 2013. Terms
may also contain other functions (term.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, log, sqrt
from typing import Any

import numpy as np

from ...documents import Real
from ...errors import ModelingError
from ...experiment import FloatArray
from . import text
from .interval import interval
from .term import Exponents, Factor, Term, lead_exponents, sort_key

# A sum of coefficients counts as 0 if it is below this part of the sum of their magnitudes.
_ROUNDED = 1e-14


@dataclass(frozen=True, slots=True)
class Quality:
    """How well a model fits the points to which it was fitted. Numbers that are not defined are NaN.

    smape: symmetric mean absolute percentage error, in %.
    rms_relative: root mean square of (value - model)/value.
    r2, adjusted_r2: coefficient of determination of the unweighted values.
    cross_validated: root mean square of the relative error at each point, by a fit to the other points.
    points: number of configurations.
    """

    smape: float
    rms_relative: float
    r2: float
    adjusted_r2: float
    cross_validated: float
    points: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted value and its 90 % interval, lower .. upper, in the unit of the metric.

    extrapolates: whether the point is outside the measured range of a parameter.
    """

    value: float
    lower: float
    upper: float
    extrapolates: bool


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another hypothesis that explains the measurements nearly as well as the model.

    weight: its posterior probability. hidden: whether it is the model with an additional term that the noise may hide.
    """

    weight: Real
    constant: Real
    terms: tuple[Term, ...]
    hidden: bool = False


@dataclass(frozen=True)
class Model:
    """A function of named parameters in normal form: constant + Σ terms.

    ranges: for each parameter, (lowest, highest) measured value; () without measurements.
    covariance: of the K coefficients, the constant first; () if the model is exact. If the growth is uncertain, further
    rows follow: for each parameter, the K coefficients times the deviations of their exponents; then, for each
    parameter, the curvature of the whole (uncertainty.covariance).
    alternatives: other likely hypotheses. Their weights and the weight of this one add up to 1.
    notes: texts for the user, such as "repetitions differ".
    absent: pairs (parameter, value). Where a parameter has this value, the call path is not executed and the prediction
    is 0; constant and terms hold elsewhere.
    Covariance and alternatives may be computed at their first use (`Deferred`).
    """

    parameters: tuple[str, ...]
    constant: Real = 0.0
    terms: tuple[Term, ...] = ()
    quality: Quality | None = None
    ranges: tuple[tuple[Real, Real], ...] = ()
    covariance: Sequence[tuple[Real, ...]] = ()
    alternatives: Sequence[Alternative] = ()
    notes: tuple[str, ...] = field(default=())
    absent: tuple[tuple[str, Real], ...] = ()

    def evaluate(self, points: FloatArray | Sequence[Sequence[float]]) -> FloatArray:
        """Return the values (C,) of the model at points (C, m), with m values in the order of the parameters.

        Ignores `absent`. Raises ModelingError for other shapes, or if a value is not finite.
        """
        return evaluate(self.parameters, self.constant, self.terms, points)

    def at(self, **values: float) -> float:
        """Return the value of the model at one point: at(p=8, n=64). Raises ModelingError as `evaluate`."""
        return float(self.evaluate([self.point(values)])[0])

    def point(self, values: Mapping[str, float]) -> tuple[float, ...]:
        """Return `values` in the order of the parameters. Raises ModelingError if the names do not match."""
        missing = [name for name in self.parameters if name not in values]
        unknown = sorted(set(values) - set(self.parameters))
        if missing or unknown:
            problems = [f"missing {', '.join(missing)}"] if missing else []
            problems += [f"unknown {', '.join(unknown)}"] if unknown else []
            known = ", ".join(self.parameters) or "none"
            raise ModelingError(f"point does not fit the model: {'; '.join(problems)} (parameters: {known})")
        return tuple(float(values[name]) for name in self.parameters)

    def extrapolates(self, point: Sequence[float]) -> bool:
        """Return whether `point` is outside the measured range in any parameter."""
        return any(not low <= float(x) <= high for x, (low, high) in zip(point, self.ranges, strict=False))

    def is_absent(self, point: Sequence[float]) -> bool:
        """Return whether the call path is not executed at a point, according to `absent`."""
        return any(dict(zip(self.parameters, point, strict=True))[name] == value for name, value in self.absent)

    def predict(self, point: Sequence[float]) -> Prediction:
        """Return the value of the model at a point and its 90 % interval, which always contains the value.

        The interval is that of the posterior distribution: a mixture of this model and its alternatives with their
        weights, all with the relative standard error of this model. Raises ModelingError if a value is not finite.
        """
        if self.is_absent(point):
            return Prediction(0.0, 0.0, 0.0, False)
        value = float(self.evaluate([point])[0])
        values, weights = [value], [1.0 - sum(a.weight for a in self.alternatives)]
        for other in self.alternatives:
            values.append(float(evaluate(self.parameters, other.constant, other.terms, [point])[0]))
            weights.append(other.weight)
        lower, upper = interval(values, weights, self.standard_error(point))
        return Prediction(value, lower, upper, self.extrapolates(point))

    def standard_error(self, point: Sequence[float]) -> float:
        """Return the standard error of the model at a point, in the unit of the metric; 0 without covariance."""
        if not self.covariance:
            return 0.0
        vector = self.sensitivities([point])[0]
        with np.errstate(over="ignore", invalid="ignore"):
            variance = float(vector @ np.asarray(self.covariance) @ vector)
        return sqrt(variance) if 0.0 < variance < inf else 0.0

    def sensitivities(self, points: FloatArray | Sequence[Sequence[float]]) -> FloatArray:
        """Return the derivatives (C, rows) of the model at points (C, m) by the quantities in its covariance."""
        places = np.asarray(points, dtype=np.float64)
        terms = [evaluate(self.parameters, 0.0, (Term(1.0, term.factors),), places) for term in self.terms]
        basis = np.stack([np.ones(len(places)), *terms], axis=1)
        if len(self.covariance) <= basis.shape[1]:
            return basis
        logs = np.log(np.where(places > 0.0, places, 1.0))
        changes = [basis * column[:, None] for column in logs.T]
        return np.concatenate([basis, *changes, self.evaluate(places)[:, None] * logs**2], axis=1)

    def lead(self, parameter: str) -> Exponents:
        """Return (i, j): the model grows like x^i·log2(x)^j in this parameter x if the others are constant.

        Raises ModelingError if the model has no such parameter.
        """
        if parameter not in self.parameters:
            raise ModelingError(f"model has no parameter {parameter!r}; it has: {', '.join(self.parameters) or 'none'}")
        return lead_exponents(self.terms, self.constant, parameter)

    def depends_on(self, parameter: str) -> bool:
        """Return whether a term depends on a parameter."""
        return any(parameter in factor.parameters for term in self.terms for factor in term.factors)

    @property
    def leading(self) -> dict[str, Exponents]:
        """Return the leading exponents (i, j) of every parameter (`lead`)."""
        return {name: self.lead(name) for name in self.parameters}

    @property
    def is_constant(self) -> bool:
        """Return whether no parameter has an effect."""
        return not self.terms

    def times(self, factor: Model) -> Model:
        """Return the product of this model and another one, without quality and covariance.

        The alternatives of the product are the alternatives of one model times the other model.
        """
        names = merge_names((self, factor))
        doubts = [sum(other.weight for other in own.alternatives) for own in (self, factor)]
        others = [
            replace(other, weight=other.weight * (1.0 - doubt), **_product(other, own))
            for several, own, doubt in ((self, factor, doubts[1]), (factor, self, doubts[0]))
            for other in several.alternatives
        ]
        ranges = _merge_ranges(names, (self, factor))
        return Model(names, **_product(self, factor), ranges=ranges, alternatives=tuple(others))

    def doubted(self, weight: float, constant: float, terms: Sequence[Term]) -> Model:
        """Return the model with an additional alternative of the posterior probability `weight`.

        The weights of the model and of its other alternatives decrease by the factor 1 - weight.
        """
        others = [replace(own, weight=(1.0 - weight) * own.weight) for own in self.alternatives]
        return replace(self, alternatives=(*others, Alternative(weight, constant, tuple(terms))))

    def scaled(self, by: float) -> Model:
        """Return the model with all coefficients multiplied by `by`. Quality and weights do not change.

        The covariance is left out if it would not be finite.
        """
        if by == 1.0:
            return self
        alternatives = tuple(
            replace(a, constant=a.constant * by, terms=tuple(t.scaled(by) for t in a.terms)) for a in self.alternatives
        )
        terms = tuple(t.scaled(by) for t in self.terms)
        # curvatures are relative to the value of the model, so they do not change
        curved = len(self.parameters) if len(self.covariance) > len(terms) + 1 else 0
        factors = [by] * (len(self.covariance) - curved) + [1.0] * curved
        covariance = tuple(
            tuple(value * one * other for value, other in zip(row, factors, strict=True))
            for row, one in zip(self.covariance, factors, strict=True)
        )
        if not all(isfinite(value) for row in covariance for value in row):
            covariance = ()
        return replace(self, constant=self.constant * by, terms=terms, covariance=covariance, alternatives=alternatives)

    def __str__(self) -> str:
        """Return the model as text, with numbers to four digits."""
        return text.plain(self.constant, self.terms)

    @property
    def python(self) -> str:
        """Return the model as a Python expression with all digits; `text.python` lists the functions that it uses."""
        return text.python(self.constant, self.terms)

    @property
    def latex(self) -> str:
        """Return the model as LaTeX mathematics."""
        return text.latex(self.constant, self.terms)

    def _repr_latex_(self) -> str:
        return f"${self.latex}$"


def evaluate(
    parameters: Sequence[str], constant: float, terms: Iterable[Term], points: FloatArray | Sequence[Sequence[float]]
) -> FloatArray:
    """Return constant + Σ terms (C,) at points (C, m). Raises ModelingError for other shapes and infinite values."""
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != len(parameters):
        raise ModelingError(f"points must have shape (points, {len(parameters)}) for {', '.join(parameters)}")
    columns = {name: array[:, index] for index, name in enumerate(parameters)}
    result = np.full(array.shape[0], float(constant))
    with np.errstate(all="ignore"):
        for term in terms:
            result = result + term.evaluate(columns, result.shape)
    if not bool(np.all(np.isfinite(result))):
        bad = array[~np.isfinite(result)][0]
        where = ", ".join(f"{name}={value:g}" for name, value in zip(parameters, bad, strict=True))
        raise ModelingError(f"model {text.plain(constant, list(terms))} has no finite value at {where}")
    return result


def add(models: Sequence[Model]) -> Model:
    """Return the sum of models as a function of all their parameters, with like terms collected.

    The covariances of the models are added, as if their errors were independent. The sum has no alternatives: for an
    interval that includes them, add the predictions of the models instead.
    """
    names = merge_names(models)
    constant, terms = collect(sum(m.constant for m in models), [t for m in models for t in m.terms])
    whole = Model(names, constant, terms, ranges=_merge_ranges(names, models))
    size = len(terms) + 1
    total = size * (1 + len(names)) + len(names)
    covariance = np.zeros((total, total))
    for model, part in zip(models, _parts(models), strict=True):
        covariance += covariance_in(model, whole, part)
    if not covariance[size:].any():
        covariance = covariance[:size, :size]
    notes = tuple(dict.fromkeys(note for m in models for note in m.notes))
    rows_of_sum = tuple(tuple(row) for row in covariance.tolist()) if covariance.any() else ()
    return replace(whole, covariance=rows_of_sum, notes=notes)


def covariance_in(model: Model, whole: Model, part: float) -> FloatArray:
    """Return the contribution of `model` to the covariance of a sum of models, `whole`.

    part: the share of the model in the value of the sum (`_parts`). The result has the rows of `Model.covariance` of
    the sum. Rows of coefficients and exponents come from the like terms of the model.

    The curvature of the model in a parameter x is a change of its value by q·(ln x)². In the sum it becomes the
    curvature part·q of the whole. This is exact only for the shape around the middle c of the measured values,
    (ln x - c)². The rows of the coefficients and exponents take the remaining 2·c·ln x - c².
    """
    size, parameters = len(whole.terms) + 1, len(whole.parameters)
    total = size * (1 + parameters) + parameters
    if not model.covariance:
        return np.zeros((total, total))
    place = {term.shape: row for row, term in enumerate(whole.terms, 1)}
    own = [(row, place[term.shape]) for row, term in enumerate(model.terms, 1) if term.shape in place]
    rows = len(model.terms) + 1
    coefficients = np.zeros((size, rows))
    for row, target in [(0, 0), *own]:
        coefficients[target, row] = 1.0
    beside = coefficients @ [model.constant, *(term.coefficient for term in model.terms)]
    beside -= part * np.array([whole.constant, *(term.coefficient for term in whole.terms)])
    mapping = np.zeros((total, len(model.covariance)))
    mapping[:size, :rows] = coefficients
    several = len(model.covariance) > rows
    for number, name in enumerate(model.parameters if several else ()):
        block = size * (1 + whole.parameters.index(name))
        first = rows * (1 + number)
        mapping[block : block + size, first : first + rows] = coefficients
        curved = rows * (1 + len(model.parameters)) + number
        mapping[total - parameters + whole.parameters.index(name), curved] = part
        low, high = model.ranges[number] if model.ranges else (1.0, 1.0)
        middle = 0.5 * (log(low) + log(high)) if low > 0.0 else 0.0
        mapping[block : block + size, curved] += 2.0 * middle * beside
        mapping[:size, curved] -= middle**2 * beside
    return np.asarray(mapping @ np.asarray(model.covariance) @ mapping.T, dtype=np.float64)


def alternatives_with(model: Model, rest: Model) -> tuple[Alternative, ...]:
    """Return the alternatives of a sum of two models: the alternatives of `model`, each plus `rest`.

    rest: a model without alternatives.
    """
    sums = [collect(a.constant + rest.constant, [*a.terms, *rest.terms]) for a in model.alternatives]
    return tuple(
        replace(a, constant=constant, terms=terms)
        for a, (constant, terms) in zip(model.alternatives, sums, strict=True)
    )


def _parts(models: Sequence[Model]) -> list[float]:
    """Return the share of each model in the sum of their magnitudes at the largest measured values."""
    sizes = [abs(float(one.evaluate([[high for _, high in one.ranges]])[0])) if one.ranges else 0.0 for one in models]
    total = sum(sizes)
    return [size / total if total else 0.0 for size in sizes]


def _product(one: Model | Alternative, other: Model | Alternative) -> dict[str, Any]:
    """Return the constant and the terms of the product of two sums, by the names of the fields of Model."""
    left, right = ([Term(own.constant, ()), *own.terms] for own in (one, other))
    constant, terms = collect(0.0, [a.times(b) for a in left if a.coefficient for b in right if b.coefficient])
    return {"constant": constant, "terms": terms}


def collect(constant: float, terms: Iterable[Term]) -> tuple[float, tuple[Term, ...]]:
    """Return the constant and the terms of a sum, sorted, with like terms added.

    Terms without factors are added to the constant. Terms whose coefficients cancel up to rounding are left out.
    """
    sums: dict[tuple[Factor, ...], float] = {}
    sizes: dict[tuple[Factor, ...], float] = {}
    for term in (own if own.is_short else own.times(Term(1.0, ())) for own in terms):
        sums[term.shape] = sums.get(term.shape, 0.0) + term.coefficient
        sizes[term.shape] = sizes.get(term.shape, 0.0) + abs(term.coefficient)
    constant += sums.pop((), 0.0)
    kept = [
        Term(coefficient, shape) for shape, coefficient in sums.items() if abs(coefficient) > _ROUNDED * sizes[shape]
    ]
    return constant, tuple(sorted(kept, key=sort_key))


def merge_names(models: Sequence[Model]) -> tuple[str, ...]:
    """Return the parameters of all models, in order of first appearance."""
    return tuple(dict.fromkeys(name for m in models for name in m.parameters))


def _merge_ranges(names: Sequence[str], models: Sequence[Model]) -> tuple[tuple[float, float], ...]:
    merged: dict[str, tuple[float, float]] = {}
    for model in models:
        for name, (low, high) in zip(model.parameters, model.ranges, strict=False):
            old = merged.get(name, (low, high))
            merged[name] = (max(low, old[0]), min(high, old[1]))
    if any(name not in merged for name in names):
        return ()
    return tuple(merged[name] for name in names)
