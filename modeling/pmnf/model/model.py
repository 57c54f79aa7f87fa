# SPDX-License-Identifier: Apache-2.0
"""Models in performance model normal form: f(x) = c0 + Σ c_k Π_l x_l^i log2^j(x_l) (Calotoiu et al., SC 2013)."""

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

# Sums below this part of the sizes of their terms are rounding.
_ROUNDED = 1e-14


@dataclass(frozen=True, slots=True)
class Quality:
    """How well a model fits the points that it was made from. NaN where a number is not defined.

    smape: symmetric mean absolute percentage error, in %.
    rms_relative: root mean square of (value - model)/value.
    r2, adjusted_r2: coefficient of determination, of the values themselves.
    cross_validated: root mean square of the relative error of each point when it was left out.
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
    """A predicted value with a 90 % interval; `extrapolates`: whether the point is outside the measured range."""

    value: float
    lower: float
    upper: float
    extrapolates: bool


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another hypothesis that explains the measurements nearly as well, with its posterior weight.

    hidden: the model with an additional term that the noise may hide.
    """

    weight: Real
    constant: Real
    terms: tuple[Term, ...]
    hidden: bool = False


@dataclass(frozen=True)
class Model:
    """A function of named parameters in normal form.

    ranges: per parameter (lowest, highest) measured value; empty without measurements. covariance: of the coefficients,
    the constant first, from the noise of the measurements; empty if exact. Further rows are all coefficients times the
    deviations of their exponents of the first parameter, of the second, and so on, and at last the curvature in each
    parameter: the uncertainty of growth. alternatives: nearly as likely hypotheses, without this one; the weights of
    all, including this one, add up to 1. Both may be computed at their first use (`Deferred`). notes: notes for the
    user, such as repetitions that differ. absent: values of parameters at which nothing is executed, with prediction 0.
    The function holds at other values.
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
        """Return the model at `points`, shape (points, parameters); result shape (points,)."""
        return evaluate(self.parameters, self.constant, self.terms, points)

    def at(self, **values: float) -> float:
        """Return the model at one point given by parameter names."""
        return float(self.evaluate([self.point(values)])[0])

    def point(self, values: Mapping[str, float]) -> tuple[float, ...]:
        """Return `values` in the order of the parameters; ModelingError if names do not match."""
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
        """Return whether nothing is executed at a point, according to `absent`."""
        return any(dict(zip(self.parameters, point, strict=True))[name] == value for name, value in self.absent)

    def predict(self, point: Sequence[float]) -> Prediction:
        """Return the value of the model and the 90 % interval of the function at a point.

        The interval comes from the posterior, a mixture of the nearly as likely hypotheses with their weights. Each has
        the relative standard error of this model. The interval always contains the value.
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
        """Return the standard error of the model at a point, from its covariance."""
        if not self.covariance:
            return 0.0
        vector = self.sensitivities([point])[0]
        with np.errstate(over="ignore", invalid="ignore"):
            variance = float(vector @ np.asarray(self.covariance) @ vector)
        return sqrt(variance) if 0.0 < variance < inf else 0.0

    def sensitivities(self, points: FloatArray | Sequence[Sequence[float]]) -> FloatArray:
        """Return the change of the model at points (C, m) for each row of its covariance, (C, rows)."""
        places = np.asarray(points, dtype=np.float64)
        terms = [evaluate(self.parameters, 0.0, (Term(1.0, term.factors),), places) for term in self.terms]
        basis = np.stack([np.ones(len(places)), *terms], axis=1)
        if len(self.covariance) <= basis.shape[1]:
            return basis
        logs = np.log(np.where(places > 0.0, places, 1.0))
        changes = [basis * column[:, None] for column in logs.T]
        return np.concatenate([basis, *changes, self.evaluate(places)[:, None] * logs**2], axis=1)

    def lead(self, parameter: str) -> Exponents:
        """Return (i, j): the model grows like x^i log2^j(x) in this parameter, with constant other parameters."""
        if parameter not in self.parameters:
            raise ModelingError(f"model has no parameter {parameter!r}; it has: {', '.join(self.parameters) or 'none'}")
        return lead_exponents(self.terms, self.constant, parameter)

    def depends_on(self, parameter: str) -> bool:
        """Return whether a term depends on a parameter."""
        return any(parameter in factor.parameters for term in self.terms for factor in term.factors)

    @property
    def leading(self) -> dict[str, Exponents]:
        """Return the leading exponents of every parameter."""
        return {name: self.lead(name) for name in self.parameters}

    @property
    def is_constant(self) -> bool:
        """Return whether no parameter has an effect."""
        return not self.terms

    def times(self, factor: Model) -> Model:
        """Return the product with another model, without quality and covariance.

        Alternatives of either model are alternatives of the product.
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
        """Return the model with another sum as an alternative of this posterior weight; the others share the rest."""
        others = [replace(own, weight=(1.0 - weight) * own.weight) for own in self.alternatives]
        return replace(self, alternatives=(*others, Alternative(weight, constant, tuple(terms))))

    def scaled(self, by: float) -> Model:
        """Return the model with all coefficients multiplied by `by`; quality and posterior weights stay."""
        if by == 1.0:
            return self
        alternatives = tuple(
            replace(a, constant=a.constant * by, terms=tuple(t.scaled(by) for t in a.terms)) for a in self.alternatives
        )
        terms = tuple(t.scaled(by) for t in self.terms)
        curved = len(self.parameters) if len(self.covariance) > len(terms) + 1 else 0  # as parts of the whole
        factors = [by] * (len(self.covariance) - curved) + [1.0] * curved
        covariance = tuple(
            tuple(value * one * other for value, other in zip(row, factors, strict=True))
            for row, one in zip(self.covariance, factors, strict=True)
        )
        if not all(isfinite(value) for row in covariance for value in row):
            covariance = ()
        return replace(self, constant=self.constant * by, terms=terms, covariance=covariance, alternatives=alternatives)

    def __str__(self) -> str:
        """Return the model as text."""
        return text.plain(self.constant, self.terms)

    @property
    def python(self) -> str:
        """Return the model as a Python expression with `log2`."""
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
    """Return constant + Σ terms at `points` (points, parameters). Raises ModelingError where it is not defined."""
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
    """Return the sum of models over all their parameters, with like terms collected.

    The models count as independent. Their alternatives are not combined: to include them, add the predictions of the
    parts.
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
    """Return the covariance of a model in the rows of a sum of which it is a `part` (covariance of `Model`).

    The curvature of a model in a parameter x is relative to its value; the row of the sum is relative to the total. So
    it is a part of the latter around the middle c of the measured values, (ln x - c)². The rest of (ln x)² cancels with
    the other rows of the model: 2·c·ln x - c² of its coefficients.
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
    """Return the alternatives of a model as alternatives of its sum with another model of certain form."""
    sums = [collect(a.constant + rest.constant, [*a.terms, *rest.terms]) for a in model.alternatives]
    return tuple(
        replace(a, constant=constant, terms=terms)
        for a, (constant, terms) in zip(model.alternatives, sums, strict=True)
    )


def _parts(models: Sequence[Model]) -> list[float]:
    """Return the part of each model in their sum, at the largest measured values."""
    sizes = [abs(float(one.evaluate([[high for _, high in one.ranges]])[0])) if one.ranges else 0.0 for one in models]
    total = sum(sizes)
    return [size / total if total else 0.0 for size in sizes]


def _product(one: Model | Alternative, other: Model | Alternative) -> dict[str, Any]:
    """Return the constant and the terms of the product of two sums."""
    left, right = ([Term(own.constant, ()), *own.terms] for own in (one, other))
    constant, terms = collect(0.0, [a.times(b) for a in left if a.coefficient for b in right if b.coefficient])
    return {"constant": constant, "terms": terms}


def collect(constant: float, terms: Iterable[Term]) -> tuple[float, tuple[Term, ...]]:
    """Collect like terms; terms without factors are added to the constant, and rounding errors are removed."""
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
