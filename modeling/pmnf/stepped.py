"""Exact models of counts that rise in steps, of call paths that no sum of powers and logarithms reproduces.

Steps of several units may be at the same measured values, and at others beyond: these are alternatives of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from .build import qualities
from .calibration import LEAST_WEIGHT
from .criterion.one_process import reproduces
from .data.preparation import ranges
from .model import Alternative, Model
from .proposers.steps import SteppedSum, SteppedSums

_Flags = NDArray[np.bool_]


def by_steps(
    models: Sequence[Model | None],
    points: FloatArray,
    values: FloatArray,
    used: _Flags,
    differ: _Flags,
    names: tuple[str, ...],
) -> dict[int, Model]:
    """Return models of counts with steps, of those call paths whose `models` do not reproduce them.

    values: (N, C) of one configuration each; used: (N, C), where a call path was measured and executed. differ: (N,)
    where repetitions do, so that counts are no exact function. Nothing where several parameters vary.
    """
    result: dict[int, Model] = {}
    varying = [index for index in range(points.shape[1]) if np.unique(points[:, index]).size > 1]
    if len(varying) != 1 or points[:, varying[0]].min() < 1.0:
        return result
    open_paths = [
        path
        for path, model in enumerate(models)
        if model is not None and not differ[path] and not reproduces(model) and not model.is_constant
    ]
    if not open_paths:
        return result
    patterns, group = np.unique(used[open_paths], axis=0, return_inverse=True)
    for index, at in enumerate(patterns):
        paths = np.array(open_paths)[group.reshape(-1) == index]
        counts = values[paths][:, at]
        whole = (counts == np.round(counts)).all(axis=1)
        proposer = SteppedSums(points[at, varying[0]])
        for path, sums in zip(paths[whole].tolist(), proposer.propose(counts[whole]), strict=True):
            former = models[path]
            if sums and former is not None:
                result[path] = _model(sums, points[at], values[path][at], names, names[varying[0]], former.notes)
    return result


def _model(
    sums: Sequence[SteppedSum],
    points: FloatArray,
    values: FloatArray,
    names: tuple[str, ...],
    parameter: str,
    notes: tuple[str, ...],
) -> Model:
    """Return one of the `sums` as a model: the likeliest, and as alternatives others that differ beyond the values."""
    far = (points[:, names.index(parameter)].max() * np.arange(2.0, 33.0))[:, None]
    apart: dict[bytes, tuple[float, SteppedSum]] = {}
    for own in sums:
        ahead = np.round(Model((parameter,), own.constant, own.terms(parameter)).evaluate(far))
        weight, likeliest = apart.get(ahead.tobytes(), (0.0, own))
        apart[ahead.tobytes()] = weight + exp(0.5 * (sums[0].score - own.score)), likeliest
    kept = sorted(apart.values(), key=lambda found: -found[0])
    kept = [found for found in kept if found[0] >= LEAST_WEIGHT * kept[0][0]]
    first, total = kept[0][1], sum(weight for weight, _ in kept)
    others = tuple(Alternative(weight / total, own.constant, own.terms(parameter)) for weight, own in kept[1:])
    model = Model(names, first.constant, first.terms(parameter), None, ranges(points), (), others, notes)
    width = np.array([len(first.parts) + bool(first.constant)])
    fitted = model.evaluate(points)[None]
    return Model(
        names,
        first.constant,
        model.terms,
        qualities(values[None], fitted, np.zeros(1), width)[0],
        model.ranges,
        (),
        others,
        notes,
    )
