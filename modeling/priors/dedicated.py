# SPDX-License-Identifier: Apache-2.0
"""Select the times for models: times of ranks with a processor each, if enough of them were measured.

With more ranks than processors, times contain waiting for a processor, which is not a property of the program. Effort
does not change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..experiment import Experiment, FloatArray, RegionKind
from .prior import Prior

_Flags = NDArray[np.bool_]
# Values of a parameter that must remain: several, to find how time grows with it; fewer, to find the coefficients of a
# prior, whose growth is known from effort.
_LEAST_VALUES, _LEAST_VALUES_OF_PRIOR = 3, 2
# Configurations that must remain, so that a residual shows the noise.
_LEAST_CONFIGURATIONS = 3


def dedicated_times(
    experiment: Experiment, metric: str, choices: Sequence[Sequence[Prior]] | None = None
) -> tuple[FloatArray, _Flags]:
    """Return the values of a cost metric for models, (paths, C, R), and whether they contain oversubscribed runs.

    - Values of runs on a loaded machine are NaN if the configuration has other runs. Otherwise, the configuration
      counts as oversubscribed.
    - Values of oversubscribed configurations are NaN if enough other configurations of the call path exist. The flags,
      (paths,), mark call paths that need these values.
    - choices: priors per call path. The growth of a call path without priors is fitted to the values alone. For MPI,
      runs of one process are not used.
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
    """Return values without runs on a loaded machine, if the configuration has an undisturbed run."""
    if experiment.loaded is None or not experiment.loaded.any():
        return values
    result = values.copy()
    result[:, experiment.loaded & ~experiment.disturbed[:, np.newaxis]] = np.nan
    return result


def _processes(experiment: Experiment) -> FloatArray:
    """Return the number of processes (largest communicator) of each configuration; infinite if unknown."""
    sizes = experiment.values.get("comm_size")
    if sizes is None or not np.nan_to_num(sizes).any():
        return np.full(experiment.configurations, np.inf)
    return np.asarray(np.nan_to_num(sizes).max(axis=(0, 2)))


def enough_dedicated(experiment: Experiment, where: _Flags, priors: Sequence[Prior] = (), is_mpi: bool = False) -> bool:
    """Return whether configurations with a processor for each rank suffice for a model at `where`.

    Computation grows like its effort. Only parameters in its priors therefore need several values, at configurations
    where the priors are not 0. MPI needs several values of each parameter.
    """
    parameters = set(experiment.parameters)
    if priors and not is_mpi:
        columns = [column for prior in priors for column in prior.columns]
        matters = np.zeros(experiment.configurations, dtype=bool)
        for column in columns:
            places = [experiment.parameters.index(name) for name in column.parameters]
            matters |= np.asarray(column.evaluate(experiment.points[:, places]) != 0, dtype=bool)
        where = where & matters
        terms = (term for column in columns for term in column.terms)
        parameters = {name for term in terms for factor in term.factors for name in factor.parameters}
    least = _LEAST_VALUES_OF_PRIOR if priors else _LEAST_VALUES
    remaining = where & experiment.dedicated
    if not remaining.any() or int(remaining.sum()) < min(_LEAST_CONFIGURATIONS, int(where.sum())):
        return False
    for name, points in zip(experiment.parameters, experiment.points.T, strict=True):
        if name in parameters and np.unique(points[remaining]).size < min(least, np.unique(points[where]).size):
            return False
    return True
