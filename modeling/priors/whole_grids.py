# SPDX-License-Identifier: Apache-2.0
"""Which times of messages models rest on: those of process grids that extend in all of their dimensions.

Where a dimension has a single process there is nobody to exchange messages with, and so no latency in that direction.
With two processes in each, all directions have their latency, and further neighbours take no longer, although the bytes
of a rank go on growing. So where a grid has an extent of 1, times of messages may follow another formula.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..experiment import Experiment, FloatArray, RegionKind
from ..pmnf.calibration import NOISY
from ..pmnf.model import Model
from ..pmnf.options import DEFAULT, Options
from .dedicated import dedicated_times
from .fit import fit_where
from .measured import centred, one_by_one
from .prior import Prior
from .slowdown import LEAST_VALUES
from .times_at import TimesAt, exchanges, values_left

_Flags = NDArray[np.bool_]
# Residuals below this are no evidence: clocks scatter so much.
_LEAST = 0.01


def whole_grids(
    experiment: Experiment, choices: Sequence[Sequence[Prior]], options: Options = DEFAULT
) -> TimesAt | None:
    """Return the call paths whose times at whole grids are explained better without the others; None if there is none.

    experiment: waiting taken out of its times. choices: the priors of all call paths, those of Table I. There must be
    whole grids at four numbers of ranks at least, and their times fit better by more than a coefficient's penalty for
    each coefficient of the prior and one more.
    """
    known_grids = [grid for grid in experiment.grids if grid.source and grid.dimensions > 1]
    paths = [path for path, priors in enumerate(choices) if priors and _is_exchange(experiment, path)]
    if len(known_grids) != 1 or not paths:
        return None
    (grid,) = known_grids
    ranks = experiment.points[:, experiment.parameters.index(grid.parameter)]
    whole = np.asarray((grid.extents(ranks) > 1).all(axis=1), dtype=bool)
    if whole.all() or np.unique(ranks[whole]).size < LEAST_VALUES:
        return None
    times, oversubscribed = dedicated_times(experiment, "time", choices)
    repetitions = centred(times, options)
    known = repetitions.centre > 0
    singles = one_by_one(times, options)
    # of oversubscribed runs, few ranks are those that waited least for a processor
    priors = {path: choices[path] for path in paths if not oversubscribed[path]}
    given = priors, experiment.parameters, experiment.points, repetitions
    everywhere = fit_where(*given, known, singles=singles)
    apart = fit_where(*given, known & whole, singles=singles)
    better = []
    for path in priors:
        there = known[path] & whole
        if path in everywhere and path in apart and np.unique(ranks[there]).size >= LEAST_VALUES:
            place, centre = experiment.points[there], repetitions.centre[path, there]
            before, after = (_squares(found[path].model, place, centre) for found in (everywhere, apart))
            coefficients = 1 + max(len(prior.columns) for prior in choices[path])
            if there.sum() * np.log(before / after) > NOISY.coefficient * coefficients:
                better.append(path)
    note = f"without {values_left(experiment, whole)}, where the process grid has an extent of 1"
    return TimesAt(tuple(better), whole, note) if better else None


def _is_exchange(experiment: Experiment, path: int) -> bool:
    region = experiment.tree.region_of(path)
    return region.kind is RegionKind.MPI and exchanges(region)


def _squares(model: Model, points: FloatArray, values: FloatArray) -> float:
    """Return the mean squared relative error, at least that of clocks."""
    return float(((model.evaluate(points) / values - 1.0) ** 2).mean()) + _LEAST**2
