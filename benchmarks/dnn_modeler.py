# SPDX-License-Identifier: Apache-2.0
"""Model values with the adaptive, DNN-based modeler (Ritter et al., IPDPS 2021), after the paper and Extra-P.

For each parameter, a network classifies the exponents of the mean of all lines along this parameter. The terms a and b
of two parameters are combined as a·b, a + b, a + a·b and b + a·b. Least squares on relative errors determine the
coefficients. The combination with the smallest cross-validated error is selected. If repetitions hardly differ, the
regression modeler also takes part in this selection.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from dnn_network import CLASSES, Floats, Integers, inputs_of
from dnn_training import FOLDER, NOISE, adapted
from numpy.typing import NDArray
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import Model, Options, fit_models
from quipu.modeling.pmnf.build import qualities
from quipu.modeling.pmnf.data.lines import lines
from quipu.modeling.pmnf.fit.fitter import fit
from quipu.modeling.pmnf.fit.weights import relative_weights
from quipu.modeling.pmnf.model import Factor, Term

# The regression modeler takes part, too, below this range of repetitions: twice the threshold of Extra-P's adaptive
# modeler.
LITTLE_NOISE = 0.0639
_TIME = Metric("time", "s", "cost")
_MEDIAN = Options(aggregation="median")
_MOST_PARAMETERS = 2


def dnn_models(parameters: tuple[str, ...], points: Floats, times: Floats, folder: Path = FOLDER) -> list[Model]:
    """Return models of N functions from times (N, C, R) at points (C, m) of one or two parameters.

    Raises ValueError for more parameters.
    """
    if len(parameters) > _MOST_PARAMETERS:
        raise ValueError(f"the DNN-based modeler takes one or two parameters, not {len(parameters)}")
    centre = np.median(times, axis=2)
    classes, noise = [], []
    for index in range(len(parameters)):
        places = _lines(points, index)
        positions = tuple(points[places[0], index].tolist())
        line_noise = _range(times, places)
        noise.append(line_noise)
        classes.append(_classes(positions, centre[:, places].mean(axis=1), line_noise, folder))
    chosen = np.stack(classes, axis=1)
    models = [_best(parameters, points, values, own) for values, own in zip(centre, chosen, strict=True)]
    calm = np.flatnonzero(np.stack(noise, axis=1).max(axis=1) < LITTLE_NOISE)
    if calm.size:
        regression = fit_models(points, times[calm], _TIME, parameters, _MEDIAN)
        for place, other in zip(calm.tolist(), regression, strict=True):
            if isinstance(other, Model) and _error(other) < _error(models[place]):
                models[place] = other
    return models


def _lines(points: Floats, index: int) -> Integers:
    """Return the points of the longest lines along a parameter that have the positions of the first one, (lines, K)."""
    found = lines(points, index, most=len(points))
    longest = max(found, key=len)
    same = [line for line in found if np.array_equal(points[line, index], points[longest, index])]
    return np.stack(same)


def _range(times: Floats, places: Integers) -> Floats:
    """Return the noise (N,): range of repetitions relative to their mean (the rule of Extra-P)."""
    own = times[:, places]
    mean = own.mean(axis=3)
    mean = np.where(mean > 0, mean, 1.0)
    above, below = ((edge / mean).mean(axis=1) for edge in (own.max(axis=3), own.min(axis=3)))
    found: Floats = above.max(axis=1) - below.min(axis=1)
    return found


def _classes(positions: tuple[float, ...], values: Floats, noise: Floats, folder: Path) -> Integers:
    """Return the classes (N,) of lines (N, K), from the networks for their noise."""
    edges = [(a + b) / 2 for a, b in pairwise(NOISE)]
    category = np.searchsorted(edges, noise)
    inputs = inputs_of(np.broadcast_to(np.array(positions), values.shape), values)
    result = np.zeros(len(values), dtype=np.int64)
    for number in np.unique(category).tolist():
        members = category == number
        result[members] = adapted(positions, NOISE[number], folder).classes(inputs[members])
    return result


def _best(parameters: tuple[str, ...], points: Floats, values: Floats, classes: NDArray[np.int64]) -> Model:
    """Return the model of one function with the terms of these classes and the smallest cross-validated error."""
    factors = [
        Factor(name, *CLASSES[number]) for name, number in zip(parameters, classes.tolist(), strict=True) if number
    ]
    single = [Term(1.0, (factor,)) for factor in factors]
    forms: list[list[Term]] = [[]]
    if len(factors) == 1:
        forms = [single]
    elif factors:
        product = Term(1.0, tuple(factors))
        forms = [[product], single, *([own, product] for own in single)]
    return min((_fit(parameters, points, values, form) for form in forms), key=_error)


def _fit(parameters: tuple[str, ...], points: Floats, values: Floats, terms: Sequence[Term]) -> Model:
    columns = np.stack([np.ones(len(points)), *(Model(parameters, 0.0, (term,)).evaluate(points) for term in terms)])
    found = fit(columns[None], values[None], relative_weights(values[None]))
    coefficients = np.nan_to_num(found.coefficients[0, 0])
    quality = qualities(values[None], (coefficients @ columns)[None], found.left_out[:, 0], np.array([len(columns)]))[0]
    own = tuple(term.scaled(c) for term, c in zip(terms, coefficients[1:].tolist(), strict=True))
    return Model(parameters, float(coefficients[0]), own, quality)


def _error(model: Model) -> float:
    """Return the cross-validated error of a model; infinite if it has none."""
    error = model.quality.cross_validated if model.quality is not None else np.inf
    return error if np.isfinite(error) else np.inf
