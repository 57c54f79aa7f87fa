# SPDX-License-Identifier: Apache-2.0
"""Model counts that grow in steps, for call paths that no sum of powers and logarithms reproduces.

Steps of several units may be at the same measured values, and at different values beyond: these are alternatives of the
model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..build import qualities
from ..criterion.one_process import reproduces
from ..data.noise import Repetitions
from ..data.preparation import ranges, take
from ..model import Alternative, Model, Term, evaluate
from ..proposers.steps import SteppedSum, SteppedSums, likeliest_of_alike
from .deviating_steps import DeviatingSteps

_Flags = NDArray[np.bool_]


def by_steps(
    models: Sequence[Model | None],
    points: FloatArray,
    values: FloatArray,
    used: _Flags,
    repetitions: Repetitions,
    names: tuple[str, ...],
) -> dict[int, Model]:
    """Return models with steps for call paths whose counts they explain far better than `models`.

    values: (N, C) of one configuration each; used: (N, C), where a call path was measured and executed. repetitions: of
    the values; counts with different repetitions have no exact function. There are no such models if several parameters
    vary.
    """
    result: dict[int, Model] = {}
    varying = [index for index in range(points.shape[1]) if np.unique(points[:, index]).size > 1]
    if len(varying) != 1 or points[:, varying[0]].min() < 1.0:
        return result
    name = names[varying[0]]
    former = {
        path: model
        for path, model in enumerate(models)
        if model is not None and not reproduces(model) and not model.is_constant
    }
    if not former:
        return result
    open_paths = np.array(list(former))
    patterns, group = np.unique(used[open_paths], axis=0, return_inverse=True)
    for index, at in enumerate(patterns):
        paths = open_paths[group.reshape(-1) == index]
        counts = values[paths][:, at]
        whole = (counts == np.round(counts)).all(axis=1) & ~repetitions.differ[paths]
        proposer = SteppedSums(points[at, varying[0]])
        for path, sums in zip(paths[whole].tolist(), proposer.propose(counts[whole]), strict=True):
            if sums:
                result[path] = _model(sums, points[at], values[path][at], names, name, former[path].notes)
        rest = np.array([path not in result for path in paths.tolist()]) & (counts > 0).all(axis=1)
        # a model without x=1, which follows another formula, is compared where it holds
        least = np.array([former[path].ranges[varying[0]][0] for path in paths.tolist()])
        for low in np.unique(least[rest]).tolist():
            own_paths, own_at = paths[rest & (least == low)], at & (points[:, varying[0]] >= low)
            part = take(repetitions, own_paths, own_at)
            own_counts = values[own_paths][:, own_at]
            deviating = DeviatingSteps(points[own_at], names, name, own_counts, part)
            found = deviating.models([former[path] for path in own_paths.tolist()])
            result |= {path: own for path, own in zip(own_paths.tolist(), found, strict=True) if own is not None}
    return result


def _model(
    sums: Sequence[SteppedSum],
    points: FloatArray,
    values: FloatArray,
    names: tuple[str, ...],
    parameter: str,
    notes: tuple[str, ...],
) -> Model:
    """Return one of the `sums` as a model."""
    return likeliest_model(
        [(own.score, own.constant, own.terms(parameter)) for own in sums], points, values, names, notes
    )


def likeliest_model(
    forms: Sequence[tuple[float, float, tuple[Term, ...]]],
    points: FloatArray,
    values: FloatArray,
    names: tuple[str, ...],
    notes: tuple[str, ...],
) -> Model:
    """Return a model of counts (C,) at points (C, m): the likeliest of exact forms, and others as its alternatives.

    forms: -2 log of their probability, constants, terms. Alternatives differ beyond the points.
    """
    beyond = _beyond(points)
    ahead = [np.round(evaluate(names, constant, terms, beyond)).tobytes() for _, constant, terms in forms]
    (_, first), *rest = likeliest_of_alike([(own[0], key, own) for key, own in zip(ahead, forms, strict=True)])
    others = tuple(Alternative(weight, *own[1:]) for weight, own in rest)
    fitted = evaluate(names, *first[1:], points)[None]
    width = np.array([len(first[2]) + bool(first[1])])
    quality = qualities(values[None], fitted, np.zeros(1), width)[0]
    return Model(names, *first[1:], quality, ranges(points), (), others, notes)


def _beyond(points: FloatArray) -> FloatArray:
    """Return points beyond the measured points: in each parameter that varies, and in all of them together."""
    times, largest = np.arange(2.0, 33.0)[:, None], points.max(axis=0)
    varies = np.ptp(points, axis=0) > 0.0
    directions = [np.eye(len(varies))[place] for place in np.flatnonzero(varies)]
    directions += [varies.astype(np.float64)] if len(directions) > 1 else []
    return np.concatenate([largest * (1.0 + (times - 1.0) * along) for along in directions])
