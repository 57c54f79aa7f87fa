# SPDX-License-Identifier: Apache-2.0
"""Compute facts about measurements in addition to models: noise of repetitions, and changes of behaviour.

At a change of behaviour, the values follow one formula below a value of a parameter, and another formula above it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .analysis import Analysis
from .experiment import Experiment, FloatArray
from .pmnf.changes.ranges import Change, find_changes
from .pmnf.data.deviation import Deviation, deviations
from .pmnf.model import Model
from .pmnf.options import DEFAULT, NoModel, Options
from .priors.built import LEAST_DEVIATION
from .process_grid import ProcessGrid

# Call paths with a smaller part of the total do not count for the noise of a program (Ritter et al., Cost-Effective
# Empirical Performance Modeling, section VI.C).
LEAST_SHARE = 0.01
# No change is searched if the relative error of the model is below this number (models of counts) or LEAST_DEVIATION
# (models of costs). Otherwise, two models would fit the rounding errors better than one model.
_EXACT = 1e-9


@dataclass(frozen=True)
class Behaviour:
    """Noise and change of behaviour of one metric of one call path.

    deviation: the noise of the repetitions; None for effort, and without values. change: None if one model explains the
    values.
    """

    deviation: Deviation | None = None
    change: Change | None = None

    @property
    def warning(self) -> str:
        """Return the reason why the noise permits no model but a constant; "" if there is none."""
        return self.deviation.warning if self.deviation is not None and self.is_repeated else ""

    @property
    def is_repeated(self) -> bool:
        """Return whether some configuration has two or more repetitions."""
        return self.deviation is not None and self.deviation.repetitions[1] > 1


def behaviour(
    experiment: Experiment, analysis: Analysis, metrics: Collection[str] | None = None, options: Options = DEFAULT
) -> dict[str, list[Behaviour]]:
    """Return noise and changes of the measured exclusive values: for each metric, one entry per call path.

    A change is searched if the model in `analysis` does not reproduce the values. Costs of oversubscribed
    configurations are not used, because they contain waiting for a processor. If a model contains extents of the
    process grid, no change along the number of ranks is returned, because the extents already describe the change.

    metrics: names of metrics; None: all metrics with models.
    """
    result: dict[str, list[Behaviour]] = {}
    for name, entries in analysis.exclusive.items():
        if metrics is not None and name not in metrics:
            continue
        metric, values = experiment.metrics[name], experiment.values[name]
        found: list[Change | None] = [None] * len(entries)
        at = np.asarray(np.isfinite(values).any(axis=2), dtype=bool)
        least = _EXACT if metric.is_effort else LEAST_DEVIATION
        open_paths = [
            path for path, entry in enumerate(entries) if _is_open(entry.model, experiment.points[at[path]], least)
        ]
        where = slice(None) if metric.is_effort else experiment.dedicated & at.any(axis=0)
        measured, points = values[open_paths][:, where], experiment.points[where]
        changes = find_changes(points, measured, metric, experiment.parameters, options)
        for path, change in zip(open_paths, changes, strict=True):
            found[path] = _with_both_grids(change, entries[path].model, experiment.grids)
        noise: list[Deviation | None] = [None] * len(entries)
        if not metric.is_effort:
            happened: list[bool] = list(np.any(np.nan_to_num(values), axis=(1, 2)))
            noise = [one if happened[path] else None for path, one in enumerate(deviations(values))]
        result[name] = [Behaviour(*pair) for pair in zip(noise, found, strict=True)]
    return result


def noise_levels(experiment: Experiment, metric: str) -> list[float]:
    """Return the noise levels of a program: (largest - smallest)/mean of repetitions.

    The result has one number for each call path and configuration with two or more repetitions. Call paths whose mean
    is below LEAST_SHARE of the program are left out. The start and the end of MPI do not count. Source: Ritter et al.,
    Cost-Effective Empirical Performance Modeling, figure 8.
    """
    values = experiment.values[metric]
    known = np.isfinite(values)
    count = known.sum(axis=2)
    mean = np.where(known, values, 0.0).sum(axis=2) / np.maximum(count, 1)
    total = experiment.tree.program_total(np.abs(mean))
    program = ~experiment.tree.start_and_end[:, None]
    use = (count > 1) & (np.abs(mean) >= LEAST_SHARE * total) & (mean != 0) & program
    high = np.where(known, values, -np.inf).max(axis=2, initial=-np.inf)
    low = np.where(known, values, np.inf).min(axis=2, initial=np.inf)
    levels: list[float] = ((high[use] - low[use]) / np.abs(mean[use])).tolist()
    return levels


def _with_both_grids(change: Change | None, model: Model | NoModel, grids: Sequence[ProcessGrid]) -> Change | None:
    """Return a change along the number of ranks with a text of the process grids below and above, if the grids differ.

    Returns None for such a change if the model contains extents of the grid. Other changes are returned unchanged.
    """
    for grid in grids:
        if change is not None and grid.source and grid.dimensions > 1 and grid.parameter == change.parameter:
            factors = [factor for term in model.terms for factor in term.factors] if isinstance(model, Model) else []
            if any(factor.axis is not None and factor.parameter == grid.parameter for factor in factors):
                return None
            below, above = (np.array(grid.at(ranks)) for ranks in (change.last, change.first))
            if not change.grids and not np.allclose(above / below, above[0] / below[0]):
                shown = [" × ".join(f"{extent:g}" for extent in own.tolist()) for own in (below, above)]
                change = replace(change, grids=f"{shown[0]}, then {shown[1]}")
    return change


def _is_open(model: object, points: FloatArray, least: float) -> bool:
    """Return whether a change may be found: the model has errors above `least`, or does not use all points (C, m).

    Points below the range of the model do not count, because the model contains a separate formula for them.
    """
    if not isinstance(model, Model) or model.quality is None:
        return False
    lowest = np.array([low for low, _ in model.ranges])
    inside = int((points >= lowest).all(axis=1).sum()) if model.ranges else len(points)
    return model.quality.rms_relative > least or model.quality.points < inside
