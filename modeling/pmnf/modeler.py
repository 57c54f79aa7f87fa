# SPDX-License-Identifier: Apache-2.0
"""Fit one model to the measurements of each of many call paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelingError
from ..experiment import FloatArray, Metric, mean_over_repetitions
from ..parallel import batches_of, workers_for
from ..progress import steps
from .batch import Batch
from .calibration import LARGEST_VALUE
from .crossing.exact import by_crossing
from .data.neighbours import noise_of
from .data.noise import Repetitions, combine
from .data.preparation import (
    check,
    extreme_exponents,
    join_duplicates,
    not_executed,
    ranges,
    take,
)
from .grids.exact import Grids
from .grids.replacing import with_grids
from .many_parameters import MOST_PARAMETERS, in_all, influential
from .memory import keep_freed_memory
from .model import Model
from .options import DEFAULT, NoModel, Options
from .uncertainty.doubt import far_off

_Flags = NDArray[np.bool_]
_Rows = NDArray[np.int64]


def fit_models(
    points: FloatArray,
    values: FloatArray,
    metric: Metric,
    parameters: Sequence[str],
    options: Options = DEFAULT,
    executed: _Flags | None = None,
) -> list[Model | NoModel]:
    """Return a model, or the reason why there is none, for each of N call paths.

    points: (C, m) configurations, columns as `parameters`; values: (N, C, R) repetitions, NaN where not measured.
    executed: (N, C) where the call path was executed; without it, a value of 0 in all repetitions counts as not
    executed. Models are fitted to the configurations at which a call path was measured and executed. Effort is modeled
    exactly if possible, cost by relative least squares. Raises ModelingError if the shapes do not match or parameter
    values cannot be used.
    """
    return fit_with_doubt(points, values, metric, parameters, options, executed).models


def fit_counts(
    points: FloatArray,
    counts: Sequence[FloatArray],
    parameters: Sequence[str],
    options: Options = DEFAULT,
    executed: Sequence[_Flags] | None = None,
    what: str = "",
) -> list[list[Model | NoModel]]:
    """Return the models of the counts of several metrics, as `fit_models` does for each, but faster.

    counts: of each metric (N, C, R), where N may differ; executed: of each (N, C), None as in `fit_models`. what: title
    of the progress, if it is printed. Equal counts are modeled once, also in different metrics. Process grids are
    searched per metric, because the grid that most of its call paths follow is preferred. Raises ModelingError as
    `fit_models` does.
    """
    points, names = np.asarray(points, dtype=np.float64), tuple(parameters)
    for number, own in enumerate(counts):
        check(points, own, names, None if executed is None else executed[number])
    if not counts:
        return []
    if len({own.shape[2] for own in counts}) > 1:
        raise ModelingError("the counts of all metrics must have as many repetitions, NaN where there are fewer")
    sizes = [len(own) for own in counts]
    flags = None if executed is None else np.concatenate(executed)
    models = _fit(points, np.concatenate(counts, dtype=np.float64), True, names, options, flags, sizes, what).models
    ends = np.cumsum(sizes).tolist()
    return [models[end - size : end] for size, end in zip(sizes, ends, strict=True)]


@dataclass(frozen=True, eq=False)
class Fits:
    """Models of N call paths, and data about models that do not fit well.

    - noise: relative standard deviation of central values, (N,) (data.neighbours.noise_of; for effort, from
      repetitions).
    - nearest: by call path, the model with coefficients fitted to the largest values (Options.at_largest). Only for
      call paths whose model misses the values by more than the noise.
    """

    models: list[Model | NoModel]
    noise: FloatArray
    nearest: dict[int, Model]


def fit_with_doubt(
    points: FloatArray,
    values: FloatArray,
    metric: Metric,
    parameters: Sequence[str],
    options: Options = DEFAULT,
    executed: _Flags | None = None,
) -> Fits:
    """Return the models of `fit_models`, their noise, and models near the largest values."""
    points, values = np.asarray(points, dtype=np.float64), np.asarray(values, dtype=np.float64)
    names = tuple(parameters)
    check(points, values, names, executed)
    return _fit(points, values, metric.is_effort, names, options, executed, [values.shape[0]])


def _fit(
    points: FloatArray,
    values: FloatArray,
    effort: bool,
    names: tuple[str, ...],
    options: Options,
    executed: _Flags | None,
    sizes: Sequence[int],
    what: str = "",
) -> Fits:
    """Return the results of `fit_with_doubt` for metrics with these numbers of call paths, one after the other."""
    workers = workers_for(len(values))
    parts = batches_of(sizes, workers.count, values[:1].size)
    rows = [slice(part[0].start, part[-1].stop) for part in parts]
    tasks = [
        _Task(
            points,
            values[own],
            effort,
            names,
            options,
            None if executed is None else executed[own],
            [one.stop - one.start for one in part],
        )
        for own, part in zip(rows, parts, strict=True)
    ]
    done = steps(what, range(len(tasks))) if what else range(len(tasks))
    found = [fits for _, fits in zip(done, workers.map(_fit_task, tasks), strict=True)]
    return Fits(
        [model for own in found for model in own.models],
        np.concatenate([np.empty(0), *(own.noise for own in found)]),
        {own.start + path: one for own, fits in zip(rows, found, strict=True) for path, one in fits.nearest.items()},
    )


@dataclass(frozen=True, eq=False)
class _Task:
    """The task of a worker. sizes: how many of the N call paths belong to each metric."""

    points: FloatArray
    values: FloatArray
    effort: bool
    names: tuple[str, ...]
    options: Options
    executed: _Flags | None
    sizes: Sequence[int]


def _fit_task(task: _Task) -> Fits:
    keep_freed_memory()
    count = len(task.values)
    if not task.points.shape[0] or not count:
        return Fits([NoModel()] * count, np.full(count, np.nan), {})
    if len(task.names) > MOST_PARAMETERS:
        return _fit_many_parameters(task)
    points, values, executed = join_duplicates(task.points, task.values, task.executed)
    row_of = np.arange(count)
    if task.effort:
        first, row_of = _distinct(values, executed)
        values, executed = values[first], None if executed is None else executed[first]
    size = np.abs(values)
    infinite = np.asarray((size > LARGEST_VALUE).any(axis=(1, 2)), dtype=bool)
    usable = np.where(size < 1.0 / LARGEST_VALUE, 0.0, values)
    usable[infinite] = np.nan
    repetitions = combine(usable, task.options.aggregation, task.effort)
    metrics = np.split(row_of, np.cumsum(task.sizes)[:-1])
    models, nearest = _fit_combined(task, points, repetitions, infinite, executed, metrics)
    return Fits(models, repetitions.known_noise[row_of] if task.effort else noise_of(repetitions, points), nearest)


def _fit_many_parameters(task: _Task) -> Fits:
    """Return the fits of a task with too many parameters for a common search. Each call path uses some of them."""
    paths_of: dict[tuple[int, ...], list[int]] = {}
    for path, own in enumerate(mean_over_repetitions(task.values)):
        paths_of.setdefault(influential(task.points, own), []).append(path)
    ends = np.cumsum(task.sizes)
    models: list[Model | NoModel] = [NoModel()] * len(task.values)
    noise = np.full(len(task.values), np.nan)
    nearest: dict[int, Model] = {}
    whole = ranges(task.points)
    for columns, paths in paths_of.items():
        names = tuple(task.names[at] for at in columns)
        counted = np.bincount(np.searchsorted(ends, paths, side="right"), minlength=len(ends))
        part = _Task(
            task.points[:, list(columns)],
            task.values[paths],
            task.effort,
            names,
            replace(task.options, grids=tuple(grid for grid in task.options.grids if grid.parameter in names)),
            None if task.executed is None else task.executed[paths],
            counted.tolist(),
        )
        found = _fit_task(part)
        noise[paths] = found.noise
        for path, model in zip(paths, found.models, strict=True):
            models[path] = in_all(model, task.names, whole) if isinstance(model, Model) else model
        nearest |= {paths[row]: in_all(model, task.names, whole) for row, model in found.nearest.items()}
    return Fits(models, noise, nearest)


def _distinct(values: FloatArray, executed: _Flags | None) -> tuple[_Rows, _Rows]:
    """Return the rows with distinct values (N, C, R) and executions (N, C), and the place of each of N among them."""
    first: list[int] = []
    known: dict[bytes, int] = {}
    row_of = np.empty(len(values), dtype=np.int64)
    for path, own in enumerate(values):
        key = own.tobytes() + (b"" if executed is None else executed[path].tobytes())
        row_of[path] = known.setdefault(key, len(first))
        if row_of[path] == len(first):
            first.append(path)
    return np.array(first, dtype=np.int64), row_of


def _fit_combined(
    task: _Task,
    points: FloatArray,
    repetitions: Repetitions,
    infinite: _Flags,
    executed: _Flags | None,
    metrics: Sequence[_Rows],
) -> tuple[list[Model | NoModel], dict[int, Model]]:
    """Return models and `nearest` of Fits from repetitions.

    infinite: (N,) which have values that are too large; metrics: the rows of the call paths of each metric, one after
    the other; equal counts share a row.
    """
    names, options = task.names, task.options
    result: list[Model | NoModel] = [NoModel()] * len(infinite)
    nearest: dict[int, Model] = {}
    exponent = extreme_exponents(repetitions.centre)
    repetitions = replace(repetitions, centre=np.ldexp(repetitions.centre, -exponent[:, None]))
    measured = ~np.isnan(repetitions.centre)
    centre = np.where(measured, repetitions.centre, 0.0)
    for number in np.flatnonzero(infinite):
        result[number] = NoModel(f"a measured value is beyond {LARGEST_VALUE:g}")
    happened = np.asarray(np.abs(centre) > 0.0, dtype=bool)
    pattern = measured & (happened if executed is None else executed)
    zero = np.asarray(measured.any(axis=1) & ~happened.any(axis=1), dtype=bool)
    for number in np.flatnonzero(zero):
        result[number] = Model(names, ranges=ranges(points[measured[number]]))
    open_paths = np.flatnonzero(measured.any(axis=1) & ~zero)
    if not open_paths.size:
        return [result[row] for rows in metrics for row in rows.tolist()], nearest
    kinds = np.asarray((centre < 0.0).any(axis=1), dtype=bool)
    keys = np.concatenate([pattern, kinds[:, None]], axis=1)[open_paths]
    for key, alike in _same_rows(keys):
        paths = open_paths[alike]
        where = key[:-1]
        if not where.any():
            for path in paths.tolist():
                result[path] = NoModel("measured, but executed in no configuration")
            continue
        notes = not_executed(names, points, measured[paths[0]] & ~where)
        nonnegative = options.nonnegative and not key[-1]
        part = take(repetitions, paths, where)
        batch = Batch(points[where], part, task.effort, names, options, nonnegative, notes)
        models, near = batch.fits()
        unit = np.ldexp(1.0, exponent[paths]).tolist()
        for path, model, by in zip(paths.tolist(), models, unit, strict=True):
            result[path] = model if by == 1.0 else model.scaled(by)
        for place, model in near.items():
            nearest[int(paths[place])] = model if unit[place] == 1.0 else model.scaled(unit[place])
    if not task.effort:
        return result, nearest

    counts = np.ldexp(centre, exponent[:, None])
    grids = Grids(options.grids, options.ranked, options.library) if options.grids else None
    found = [model if isinstance(model, Model) else None for model in result]
    crossing = by_crossing(found, points, pattern, names)
    found = [crossing.get(path, model) for path, model in enumerate(found)]
    others: list[Model | None] = []
    for rows in metrics:
        own = [found[row] for row in rows.tolist()]
        others += with_grids(own, grids, points, counts[rows], measured[rows], names)
    numbers = [row for rows in metrics for row in rows.tolist()]
    return [
        result[row] if model is None else far_off(model) for row, model in zip(numbers, others, strict=True)
    ], nearest


def _same_rows(flags: _Flags) -> list[tuple[_Flags, NDArray[np.int64]]]:
    """Return the distinct rows of `flags` (N, F), each with the indices of the equal rows."""
    if (flags == flags[:1]).all():
        return [(flags[0], np.arange(len(flags)))]
    found: dict[bytes, list[int]] = {}
    for number, row in enumerate(np.packbits(flags, axis=1)):
        found.setdefault(row.tobytes(), []).append(number)
    return [(flags[alike[0]], np.array(alike)) for alike in found.values()]
