# SPDX-License-Identifier: Apache-2.0
"""Which times models rest on: those of ranks that had a processor each, where enough of them were measured.

With more ranks than processors, time contains waiting for one, which is no property of the program. Effort is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..experiment import Experiment, FloatArray, RegionKind
from .prior import Prior

_Flags = NDArray[np.bool_]
# Values of a parameter that must remain: to learn how time grows with it (of two values, models say that growth is a
# guess), and to learn the coefficients of a prior, whose growth is known from effort.
_LEAST_VALUES, _LEAST_VALUES_OF_PRIOR = 3, 2
# Configurations that must remain, so that there is a residual to tell noise from.
_LEAST_CONFIGURATIONS = 3


def dedicated_times(
    experiment: Experiment, metric: str, choices: Sequence[Sequence[Prior]] | None = None
) -> tuple[FloatArray, _Flags]:
    """Return the values of a cost metric for models, (paths, C, R), and which models rest on oversubscribed runs.

    Values of runs on a loaded machine are NaN where the configuration has other runs; a configuration that has none
    counts as oversubscribed. Values of oversubscribed configurations are NaN for the call paths of which enough others
    were measured; the flags, (paths,), are of those that need them. choices: priors per call path; a call path without
    any learns its growth from the values alone. Of one process the times of MPI say nothing.
    """
    values = _alone(experiment, experiment.values[metric])
    paths, dedicated = len(experiment.tree), experiment.dedicated
    if dedicated.all():
        return values, np.zeros(paths, dtype=bool)
    known = np.isfinite(values).any(axis=2)
    happened = (np.nan_to_num(values) > 0).any(axis=2) if experiment.executed is None else experiment.executed
    where = np.asarray(known & happened, dtype=bool)
    several = _processes(experiment) > 1
    enough = np.zeros(paths, dtype=bool)
    for path in range(paths):
        is_mpi = experiment.tree.region_of(path).kind is RegionKind.MPI
        priors = choices[path] if choices is not None else ()
        enough[path] = enough_dedicated(experiment, where[path] & several if is_mpi else where[path], priors, is_mpi)
    remaining = values.copy()
    remaining[np.ix_(enough, ~dedicated)] = np.nan
    return remaining, np.asarray(~enough & (where & ~dedicated).any(axis=1), dtype=bool)


def _alone(experiment: Experiment, values: FloatArray) -> FloatArray:
    """Return values without the runs on a loaded machine where another run of the configuration was not disturbed."""
    if experiment.loaded is None or not experiment.loaded.any():
        return values
    result = values.copy()
    result[:, experiment.loaded & ~experiment.disturbed[:, np.newaxis]] = np.nan
    return result


def _processes(experiment: Experiment) -> FloatArray:
    """Return the processes of each configuration, those of its largest communicator; infinite if none is known."""
    sizes = experiment.values.get("comm_size")
    if sizes is None or not np.nan_to_num(sizes).any():
        return np.full(experiment.configurations, np.inf)
    return np.asarray(np.nan_to_num(sizes).max(axis=(0, 2)))


def enough_dedicated(experiment: Experiment, where: _Flags, priors: Sequence[Prior] = (), is_mpi: bool = False) -> bool:
    """Whether the configurations with a processor for each rank make a model of a call path that counts at `where`.

    The growth of computation is that of its effort: so only parameters that its priors have need several values, and
    configurations count at which those are not zero. MPI needs several values of each.
    """
    parameters = set(experiment.parameters)
    if priors and not is_mpi:
        columns = [column for prior in priors for column in prior.columns]
        matters = np.zeros(experiment.configurations, dtype=bool)
        for column in columns:
            places = [experiment.parameters.index(name) for name in column.parameters]
            matters |= np.asarray(column.evaluate(experiment.points[:, places]) != 0, dtype=bool)
        where = where & matters
        parameters = {factor.parameter for column in columns for term in column.terms for factor in term.factors}
    least = _LEAST_VALUES_OF_PRIOR if priors else _LEAST_VALUES
    remaining = where & experiment.dedicated
    if not remaining.any() or int(remaining.sum()) < min(_LEAST_CONFIGURATIONS, int(where.sum())):
        return False
    for name, points in zip(experiment.parameters, experiment.points.T, strict=True):
        if name in parameters and np.unique(points[remaining]).size < min(least, np.unique(points[where]).size):
            return False
    return True
