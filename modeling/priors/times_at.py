# SPDX-License-Identifier: Apache-2.0
"""Which configurations the times of call paths rest on, where others follow another formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..experiment import Experiment, Region, RegionKind
from ..pmnf.model import Model
from .path_model import PathModel
from .prior import Prior
from .rank_parameters import rank_parameters
from .table import row_of

# So many numbers of processes beside 1 must be there, and times per visit at 1 be less than this part of all others.
_LEAST_LARGER, _LOCAL = 3, 0.5
# Values beyond 1 that a model of time under priors needs: its growth is that of effort.
_LEAST_BEYOND_ONE = 2


@dataclass(frozen=True, eq=False)
class TimesAt:
    """Call paths whose models of time rest on some configurations (C,) only, and the note that says so."""

    paths: tuple[int, ...]
    where: NDArray[np.bool_]
    note: str

    def only(self, experiment: Experiment) -> Experiment:
        """Return the experiment without the times of these call paths at other configurations."""
        values = dict(experiment.values)
        for name in ("time", "wait_time"):
            if name in values:
                values[name] = values[name].copy()
                values[name][np.array(self.paths)[:, None], np.flatnonzero(~self.where)] = np.nan
        return replace(experiment, values=values)

    def noted(self, models: Mapping[int, PathModel]) -> dict[int, PathModel]:
        """Return the models of call paths, with a note on these."""
        return {
            path: replace(entry, model=replace(entry.model, notes=(*entry.model.notes, self.note)))
            if path in self.paths and isinstance(entry.model, Model)
            else entry
            for path, entry in models.items()
        }


def of_several_processes(experiment: Experiment) -> TimesAt | None:
    """Return the operations of MPI that take hardly any time where there is one process; None if there are none.

    It has nobody to wait for, and what it sends goes to itself or to nobody: such an operation returns at once. As one
    of the points that a function of the number of processes goes through, this is far from all others, relative to its
    value. Exchanges of messages in a process grid of several dimensions are those of `whole_grids`.
    """
    ranks = [experiment.parameters.index(name) for name in rank_parameters(experiment)]
    if len(ranks) != 1:
        return None
    processes = experiment.points[:, ranks[0]]
    several = np.asarray(processes > 1.0, dtype=bool)
    tree, times = experiment.tree, experiment.values["time"]
    visits = experiment.values.get("visits", np.ones_like(times))
    per_visit = np.nansum(times, axis=2) / np.maximum(np.nansum(visits, axis=2), 1e-300)
    there = np.nansum(times, axis=2) > 0
    in_grid = any(grid.source and grid.dimensions > 1 for grid in experiment.grids)
    paths = [
        path
        for path in np.flatnonzero(there[:, ~several].any(axis=1)).tolist()
        if tree.region_of(path).kind is RegionKind.MPI
        and not (in_grid and exchanges(tree.region_of(path)))
        and np.unique(processes[there[path] & several]).size >= _LEAST_LARGER
        and per_visit[path][there[path] & ~several].max() < _LOCAL * per_visit[path][there[path] & several].min()
    ]
    name = experiment.parameters[ranks[0]]
    return TimesAt(tuple(paths), several, f"without {name}=1, where nobody else takes part") if paths else None


def of_effort_beyond_one(experiment: Experiment, choices: Sequence[Sequence[Prior]]) -> list[TimesAt]:
    """Return for each parameter the call paths whose effort follows another formula at its value 1, as priors say.

    So does their time there: it is of another branch of the program. Two larger values must have been measured.
    """
    there = np.asarray((np.nan_to_num(experiment.values["time"]) > 0).any(axis=2), dtype=bool)
    result = []
    for name, values in zip(experiment.parameters, experiment.points.T, strict=True):
        larger = np.asarray(values > 1.0, dtype=bool)
        paths = tuple(
            path
            for path, priors in enumerate(choices)
            if any(name in prior.beyond_one for prior in priors)
            and there[path, ~larger].any()
            and np.unique(values[there[path] & larger]).size >= _LEAST_BEYOND_ONE
        )
        if paths:
            result.append(TimesAt(paths, larger, f"without {name}=1, where its effort follows another formula"))
    return result


def exchanges(region: Region) -> bool:
    """Whether an operation of MPI exchanges messages with single other ranks, or completes that."""
    row = row_of(region.name)
    return row is not None and row.exchanges


def values_left(experiment: Experiment, where: NDArray[np.bool_]) -> str:
    """Return the values of parameters that none of these configurations (C,) has, as text."""
    return ", ".join(
        f"{name}={value:g}"
        for name, values in zip(experiment.parameters, experiment.points.T, strict=True)
        for value in np.setdiff1d(values, values[where]).tolist()
    )
