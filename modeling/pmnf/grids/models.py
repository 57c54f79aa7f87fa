# SPDX-License-Identifier: Apache-2.0
"""Models of counts by process grids, at the measured points and beyond."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...experiment import FloatArray
from ..build import qualities
from ..criterion.exactness import exact_weights, rounding_of
from ..data.preparation import ranges
from ..model import Alternative, Model, evaluate
from .calibration import FURTHER
from .terms import limited


def checked(
    model: Model, points: FloatArray, values: FloatArray, names: tuple[str, ...], parameter: str
) -> Model | None:
    """Return the model of all parameters `names` with its quality; None if it is no count of the values (C,).

    points: (C, m). parameter: the number of processes. The model must reproduce the values and stay nonnegative;
    alternatives that become negative are removed.
    """
    full = replace(model, parameters=names, ranges=ranges(points))
    further, least = beyond(full, parameter), -1e-6 * np.abs(values).max()
    if full.evaluate(further).min() < least:
        return None
    others = [own for own in full.alternatives if evaluate(names, own.constant, own.terms, further).min() >= least]
    possible = 1.0 - sum(own.weight for own in full.alternatives) + sum(own.weight for own in others)
    others = [replace(own, weight=own.weight / possible) for own in others]
    fitted = full.evaluate(points)
    weights = exact_weights(values[None])
    limit = np.maximum(rounding_of(values[None], weights)[0], 1e-9)
    if (np.abs(fitted - values) * weights[0]).max() > limit:
        return None
    width = np.array([len(full.terms) + bool(full.constant)])
    quality = qualities(values[None], fitted[None], np.zeros(1), width)[0]
    return replace(full, quality=quality, alternatives=tuple(others))


def beyond(model: Model, parameter: str) -> FloatArray:
    """Return points with more processes than measured, and the largest values of the other parameters."""
    top = np.array([high for _, high in model.ranges])
    further = np.repeat(top[None], len(FURTHER), axis=0)
    further[:, model.parameters.index(parameter)] *= np.array(FURTHER)
    return further


def with_others(models: Sequence[Model], parameter: str) -> Model:
    """Return the first of the models by different grids, with the other models as alternatives."""
    best = models[0]
    place = best.parameters.index(parameter)
    further = beyond(best, parameter)
    kept, values = [best], [best.evaluate(further)]
    for model in models[1:]:
        own = model.evaluate(further)
        if not any(np.allclose(own, known, rtol=1e-6) for known in values):
            kept.append(model)
            values.append(own)
    if len(kept) == 1:
        return best
    own_weight = 1.0 - sum(a.weight for a in best.alternatives)
    others = [*best.alternatives, *(Alternative(own_weight, model.constant, model.terms) for model in kept[1:])]
    note = f"other grids explain the counts as well: measure {parameter} = {2 * best.ranges[place][1]:g}"
    return replace(best, alternatives=limited(others, own_weight), notes=tuple(dict.fromkeys((*best.notes, note))))


def each(model: Model) -> list[Model]:
    """Return a model and its alternatives, each as a model without alternatives."""
    forms = [(model.constant, model.terms), *((own.constant, own.terms) for own in model.alternatives)]
    return [replace(model, constant=constant, terms=terms, alternatives=()) for constant, terms in forms]
