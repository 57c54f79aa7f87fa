# SPDX-License-Identifier: Apache-2.0
"""Find counts that are exact at all configurations except one.

A loop to a tolerance may take one iteration less at one configuration, or a grid may have fewer rows than ranks. Then
no function reproduces all counts, and the nearest function is far off where the exact one holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...catalogue import LEFT_OUT_COUNT, LEFT_OUT_POINT, NOT_EXECUTED
from ...experiment import FloatArray, Metric
from ..build import qualities
from ..calibration import EXCEPTION_DOUBT, EXCEPTION_FREE, EXCEPTION_LEAST, EXCEPTION_LEAST_POINTS
from ..criterion.one_process import is_exact
from ..model import Model, evaluate
from ..modeler import fit_models
from ..options import NoModel, Options

_Flags = NDArray[np.bool_]


def but_for_one(
    models: Sequence[Model | NoModel],
    points: FloatArray,
    values: FloatArray,
    executed: _Flags | None,
    metric: Metric,
    parameters: Sequence[str],
    options: Options,
    places: Sequence[int] | None = None,
) -> dict[int, tuple[int, Model]]:
    """Return the exception and the model of each call path that is exact at all other configurations.

    The alternatives contain the former model. models: of all call paths, values: (N, C, R), equal in all repetitions.
    places: possible exceptions; None: all configurations except the largest, which predictions follow. There must be
    EXCEPTION_FREE more configurations than coefficients.
    """
    there = np.asarray((~np.isnan(values)).any(axis=2), dtype=bool)
    centre = np.where(there, np.nanmedian(np.where(there[:, :, None], values, 0.0), axis=2), np.nan)
    alike = (np.isnan(values) | (values == centre[:, :, None])).all(axis=(1, 2))
    open_paths = [
        path for path, model in enumerate(models) if isinstance(model, Model) and alike[path] and not is_exact(model)
    ]
    if len(points) < EXCEPTION_LEAST_POINTS or not open_paths:
        return {}
    counts = np.where(np.isnan(centre), -1.0, centre)[open_paths]
    keys = counts if executed is None else np.concatenate([counts, executed[open_paths]], axis=1)
    _, first, row_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    largest = (points == points.max(axis=0)).all(axis=1)
    wanted = np.flatnonzero(~largest) if places is None else np.array(places, dtype=np.int64)
    tried = np.repeat(centre[open_paths][first], len(wanted), axis=0)
    left_out = np.tile(wanted, len(first))
    flags = None if executed is None else np.repeat(executed[open_paths][first], len(wanted), axis=0)
    used = ~np.isnan(tried[np.arange(len(tried)), left_out])
    if flags is not None:
        used &= flags[np.arange(len(tried)), left_out]
    tried[np.arange(len(tried)), left_out] = np.nan
    tried, left_out, owner = tried[used], left_out[used], np.repeat(np.arange(len(first)), len(wanted))[used]
    flags = None if flags is None else flags[used]
    found = fit_models(points, tried[:, :, None], metric, parameters, replace(options, exact_only=True), flags)
    best: dict[int, tuple[int, Model]] = {}
    for place, own, model in zip(left_out.tolist(), owner.tolist(), found, strict=True):
        if not isinstance(model, Model) or model.quality is None or not is_exact(model):
            continue
        size, number = _size(model), open_paths[int(first[own])]
        measured = ~np.isnan(centre[number])
        known = measured if executed is None else measured & executed[number]
        # no other points are left out, except those without execution
        whole = model.quality.points + 1 in (np.count_nonzero(known), np.count_nonzero(measured))
        missed = abs(float(model.evaluate(points[place][None])[0]) - centre[number, place])
        if not whole or missed <= EXCEPTION_LEAST * np.abs(centre[number, known]).max():
            continue
        if model.quality.points - size >= EXCEPTION_FREE and (own not in best or size < _size(best[own][1])):
            best[own] = (place, model)
    result = {}
    for path, own in zip(open_paths, row_of.reshape(-1).tolist(), strict=True):
        if own in best:
            before = models[path]
            assert isinstance(before, Model)
            place = best[own][0]
            result[path] = place, _with_exception(best[own][1], before, points, centre[path], place)
    return result


def _size(model: Model) -> int:
    return len(model.terms) + bool(model.constant)


def without_counts(notes: Sequence[str]) -> tuple[str, ...]:
    """Return the notes of a model, without notes on the counts at the exception."""
    return LEFT_OUT_COUNT.without(notes)


def _with_exception(model: Model, before: Model, points: FloatArray, counts: FloatArray, place: int) -> Model:
    """Return an exact model with its exception as a note, and with the former model as an alternative."""
    at = ", ".join(f"{name}={value:g}" for name, value in zip(model.parameters, points[place].tolist(), strict=True))
    expected = float(evaluate(model.parameters, model.constant, model.terms, points[place][None])[0])
    said = LEFT_OUT_POINT(point=at), LEFT_OUT_COUNT(counted=counts[place], expected=expected)
    known = ~np.isnan(counts)
    fitted = model.evaluate(points[known])
    known_counts, width = counts[known], np.array([_size(model)])
    (quality,) = qualities(known_counts[None], fitted[None], np.array([np.nan]), width)
    doubted = model.doubted(EXCEPTION_DOUBT, before.constant, before.terms)
    notes = (*NOT_EXECUTED.without(model.notes), *said)
    return replace(doubted, quality=quality, ranges=before.ranges, notes=notes)
