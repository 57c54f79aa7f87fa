"""Models in performance model normal form: f(x) = c0 + Σ c_k Π_l x_l^i log2^j(x_l) (Calotoiu et al., SC 2013)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import erfc, inf, isfinite, sqrt

import numpy as np

from ...documents import Real
from ...errors import ModelingError
from ...experiment import FloatArray
from . import text
from .term import Exponents, Factor, Term, lead_exponents, sort_key

SQRT_2 = sqrt(2.0)


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
    """A predicted value with a 90 % interval; `extrapolates` if the point lies outside of the measured range."""

    value: float
    lower: float
    upper: float
    extrapolates: bool


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another hypothesis that explains the measurements nearly as well, with its posterior weight."""

    weight: Real
    constant: Real
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Model:
    """A function of named parameters in normal form.

    ranges: per parameter (lowest, highest) measured value; empty if the model was not made from measurements.
    covariance: of the coefficients, the constant first, from the noise of the measurements; empty if exact.
    alternatives: near-best hypotheses (this one excluded); weights of all, this one included, add up to 1.
    notes: what a reader must know, such as repetitions that disagree.
    """

    parameters: tuple[str, ...]
    constant: Real = 0.0
    terms: tuple[Term, ...] = ()
    quality: Quality | None = None
    ranges: tuple[tuple[Real, Real], ...] = ()
    covariance: tuple[tuple[Real, ...], ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    notes: tuple[str, ...] = field(default=())

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
        """Whether `point` lies outside of the measured range in any parameter."""
        return any(not low <= float(x) <= high for x, (low, high) in zip(point, self.ranges, strict=False))

    def predict(self, point: Sequence[float]) -> Prediction:
        """Return the median and the 90 % interval of the value of the function at a point.

        The posterior is a mixture: each near-best hypothesis with its weight, as a normal distribution around its
        own prediction with the relative standard error of this model.
        """
        values = [float(self.evaluate([point])[0])]
        weights = [1.0 - sum(a.weight for a in self.alternatives)]
        for other in self.alternatives:
            values.append(float(evaluate(self.parameters, other.constant, other.terms, [point])[0]))
            weights.append(other.weight)
        error = self.standard_error(point)
        relative = error / abs(values[0]) if values[0] else 0.0
        deviations = [max(abs(value) * relative, error if value == values[0] else 0.0) for value in values]
        size = max(map(abs, values)) or 1.0  # large numbers must not overflow on the way
        quantiles = mixture_quantiles(
            [value / size for value in values], [d / size for d in deviations], weights, (0.05, 0.5, 0.95)
        )
        lower, middle, upper = (quantile * size for quantile in quantiles)
        if min(values) >= 0.0:
            lower = max(lower, 0.0)
        return Prediction(middle, lower, upper, self.extrapolates(point))

    def standard_error(self, point: Sequence[float]) -> float:
        """Return the standard error of the model at a point, from the covariance of its coefficients."""
        if not self.covariance:
            return 0.0
        basis = [1.0]
        for term in self.terms:
            basis.append(float(evaluate(self.parameters, 0.0, (Term(1.0, term.factors),), [point])[0]))
        vector = np.asarray(basis)
        with np.errstate(over="ignore", invalid="ignore"):
            variance = float(vector @ np.asarray(self.covariance) @ vector)
        return sqrt(variance) if 0.0 < variance < inf else 0.0

    def lead(self, parameter: str) -> Exponents:
        """Return (i, j): the model grows like x^i log2^j(x) in this parameter, the others fixed."""
        if parameter not in self.parameters:
            raise ModelingError(f"model has no parameter {parameter!r}; it has: {', '.join(self.parameters) or 'none'}")
        return lead_exponents(self.terms, self.constant, parameter)

    @property
    def leading(self) -> dict[str, Exponents]:
        """Leading exponents of every parameter."""
        return {name: self.lead(name) for name in self.parameters}

    @property
    def lead_term(self) -> Term | None:
        """The term of the highest total order; None for constant models."""
        return max(self.terms, key=sort_key) if self.terms else None

    @property
    def is_constant(self) -> bool:
        """Whether no parameter has an effect."""
        return not self.terms

    def times(self, factor: Model) -> Model:
        """Return the product with another model, without quality."""
        mine = [Term(self.constant, ()), *self.terms]
        others = [Term(factor.constant, ()), *factor.terms]
        names = merge_names((self, factor))
        products = [a.times(b) for a in mine if a.coefficient for b in others if b.coefficient]
        constant, terms = collect(0.0, products)
        return Model(names, constant, terms, ranges=_merge_ranges(names, (self, factor)))

    def scaled(self, by: float) -> Model:
        """Return the model with all coefficients multiplied by `by`; quality and posterior weights stay."""
        alternatives = tuple(
            Alternative(a.weight, a.constant * by, tuple(t.scaled(by) for t in a.terms)) for a in self.alternatives
        )
        terms = tuple(t.scaled(by) for t in self.terms)
        covariance = tuple(tuple(value * by * by for value in row) for row in self.covariance)
        if not all(isfinite(value) for row in covariance for value in row):
            covariance = ()
        return replace(self, constant=self.constant * by, terms=terms, covariance=covariance, alternatives=alternatives)

    def __str__(self) -> str:
        """Return the model as a person writes it."""
        return text.plain(self.constant, self.terms)

    @property
    def python(self) -> str:
        """The model as a Python expression with `log2`."""
        return text.python(self.constant, self.terms)

    @property
    def latex(self) -> str:
        """The model as LaTeX mathematics."""
        return text.latex(self.constant, self.terms)


def evaluate(
    parameters: Sequence[str], constant: float, terms: Iterable[Term], points: FloatArray | Sequence[Sequence[float]]
) -> FloatArray:
    """Return constant + Σ terms at `points` (points, parameters). ModelingError where it is not defined."""
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
    """Return the sum of models over all their parameters, like terms collected.

    The models count as independent. Their alternatives do not carry over: predict the parts and add those
    predictions where the posterior over hypotheses matters.
    """
    names = merge_names(models)
    constant, terms = collect(sum(m.constant for m in models), [t for m in models for t in m.terms])
    place = {term.shape: index + 1 for index, term in enumerate(terms)} | {(): 0}
    covariance = np.zeros((len(terms) + 1, len(terms) + 1))
    for model in models:
        if not model.covariance:
            continue
        rows = [0, *(place.get(term.shape, -1) for term in model.terms)]
        known = [index for index, row in enumerate(rows) if row >= 0]
        target = [rows[index] for index in known]
        covariance[np.ix_(target, target)] += np.asarray(model.covariance)[np.ix_(known, known)]
    notes = tuple(dict.fromkeys(note for m in models for note in m.notes))
    matrix = tuple(tuple(row) for row in covariance.tolist()) if covariance.any() else ()
    return Model(names, constant, terms, ranges=_merge_ranges(names, models), covariance=matrix, notes=notes)


def collect(constant: float, terms: Iterable[Term]) -> tuple[float, tuple[Term, ...]]:
    """Collect like terms; terms without factors join the constant; sums of exactly 0 disappear."""
    sums: dict[tuple[Factor, ...], float] = {}
    for term in terms:
        sums[term.shape] = sums.get(term.shape, 0.0) + term.coefficient
    constant += sums.pop((), 0.0)
    kept = [Term(coefficient, shape) for shape, coefficient in sums.items() if coefficient != 0.0]
    return constant, tuple(sorted(kept, key=sort_key))


def mixture_quantiles(
    means: Sequence[float], deviations: Sequence[float], weights: Sequence[float], levels: Sequence[float]
) -> list[float]:
    """Return quantiles of a mixture of normal distributions; a deviation of 0 is a point mass."""
    total = sum(weights)
    lowest = min(m - 8.0 * d for m, d in zip(means, deviations, strict=True))
    highest = max(m + 8.0 * d for m, d in zip(means, deviations, strict=True))

    def below(x: float) -> float:
        parts = zip(means, deviations, weights, strict=True)
        return sum(w * (0.5 * erfc((m - x) / (d * SQRT_2)) if d > 0 else float(m <= x)) for m, d, w in parts) / total

    quantiles = []
    for level in levels:
        low, high = lowest, highest
        if below(low) >= level:
            high = low
        for _ in range(60):
            if high - low <= 1e-9 * max(abs(low), abs(high)):
                break
            middle = 0.5 * (low + high)
            low, high = (low, middle) if below(middle) >= level else (middle, high)
        quantiles.append(high)
    return quantiles


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
