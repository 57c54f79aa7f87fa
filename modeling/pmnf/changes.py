"""Changes of behaviour: ranges of a parameter with different models, as when an MPI library switches its algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, log

import numpy as np

from ..experiment import FloatArray, Metric
from .model import Model
from .modeler import DEFAULT, NoModel, Options, fit_models
from .noise import combine
from .selector import COEFFICIENT_PRICE

# A model of a range needs so many values of the parameter that is divided.
LEAST_VALUES = 3
# Twice the logarithm of the likelihood ratio that a change must have beyond the price of its coefficients.
LEAST_EVIDENCE = 8.0
# Relative deviations below this are no deviations.
_EXACT = 1e-6


@dataclass(frozen=True)
class Change:
    """Two models with the change between them: up to `last` of the parameter holds `below`, from `first` on `above`.

    evidence: by how much twice the logarithm of the likelihood is larger than that of one model, prices deducted.
    """

    parameter: str
    last: float
    first: float
    below: Model
    above: Model
    evidence: float

    def __str__(self) -> str:
        """Say where the behaviour changes, and how."""
        return (
            f"changes between {self.parameter}={self.last:g} and {self.parameter}={self.first:g}: "
            f"{self.below} below, {self.above} above"
        )


def find_changes(
    points: FloatArray,
    values: FloatArray,
    metric: Metric,
    parameters: Sequence[str],
    options: Options = DEFAULT,
) -> list[Change | None]:
    """Return for each of N call paths the change of behaviour that the values show; None if one model explains them.

    points: (C, m); values: (N, C, R), as in fit_models, which makes the models of all ranges. A division leaves at
    least LEAST_VALUES values of the parameter on both sides. Raises ModelingError as fit_models does.
    """
    points = np.asarray(points, dtype=np.float64)
    values = np.asarray(values, dtype=np.float64)
    whole = fit_models(points, values, metric, parameters, options)
    repetitions = combine(np.where(np.isinf(values), np.nan, values), options.aggregation)
    noise = repetitions.scatter / np.sqrt(np.maximum(repetitions.count, 1.0))
    freedom = np.minimum(repetitions.freedom, points.shape[0])
    best: list[Change | None] = [None] * len(whole)
    for column, name in enumerate(parameters):
        places = np.unique(points[:, column])
        divisions = range(LEAST_VALUES, places.size - LEAST_VALUES + 1)
        for division in divisions:
            lower = points[:, column] < places[division]
            below = fit_models(points[lower], values[:, lower], metric, parameters, options)
            above = fit_models(points[~lower], values[:, ~lower], metric, parameters, options)
            price = COEFFICIENT_PRICE + 2.0 * log(len(divisions) * len(parameters))
            for path, (one, low, high) in enumerate(zip(whole, below, above, strict=True)):
                if isinstance(one, NoModel) or isinstance(low, NoModel) or isinstance(high, NoModel):
                    continue
                known = float(freedom[path]), float(noise[path])
                gain = _score([one], *known) - _score([low, high], *known) - price
                old = best[path]
                if gain >= LEAST_EVIDENCE and (old is None or gain > old.evidence):
                    first = float(places[division])
                    best[path] = Change(name, float(places[division - 1]), first, low, high, gain)
    return best


def _score(models: Sequence[Model], freedom: float, noise: float) -> float:
    """Return -2 log of the likelihood of models of disjoint ranges, plus the price of their coefficients.

    As in selector.score: the geometric mean of errors in sample and left out, and what repetitions say of the noise.
    """
    number, squares, price = 0, 0.0, 0.0
    for model in models:
        quality = model.quality
        if quality is None:  # zero or a single point
            continue
        left_out = quality.cross_validated
        squares += quality.points * quality.rms_relative * (left_out if isfinite(left_out) else quality.rms_relative)
        number += quality.points
        price += COEFFICIENT_PRICE * (len(model.terms) + (model.constant != 0.0))
    if not number:
        return inf
    variance = (squares + freedom * noise**2) / (number + freedom)
    return (number + freedom) * log(max(variance, _EXACT**2)) + price
