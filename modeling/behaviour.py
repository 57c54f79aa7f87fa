"""What measurements say beside their models: the noise of repetitions, and where behaviour changes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from .analysis import Analysis
from .experiment import Experiment
from .pmnf.changes import Change, find_changes
from .pmnf.data.deviation import Deviation, deviations
from .pmnf.model import Model
from .pmnf.modeler import DEFAULT, Options

# Call paths with less of the total at a configuration do not enter the noise of a program (GPR paper, section VI.C).
LEAST_SHARE = 0.01
# Models of counts with smaller errors explain everything.
_EXACT = 1e-9


@dataclass(frozen=True)
class Behaviour:
    """Noise and change of behaviour of one metric of one call path.

    deviation: None for effort, whose repetitions are the same. change: None where one model explains the values.
    """

    deviation: Deviation | None = None
    change: Change | None = None

    @property
    def warning(self) -> str:
        """Why the repetitions that there are cannot support the model, or nothing."""
        return self.deviation.warning if self.deviation is not None and self.is_repeated else ""

    @property
    def is_repeated(self) -> bool:
        """Whether there is a configuration with two repetitions."""
        return self.deviation is not None and self.deviation.repetitions[1] > 1


def behaviour(
    experiment: Experiment, analysis: Analysis, metrics: Collection[str] | None = None, options: Options = DEFAULT
) -> dict[str, list[Behaviour]]:
    """Return per metric what the measured exclusive values say of every call path, as in the tree of both.

    metrics: which of those with models; all of them by default. Changes are looked for where the model of `analysis`
    is no exact function; those of costs not at oversubscribed configurations, where waiting for a processor begins.
    """
    result: dict[str, list[Behaviour]] = {}
    for name, entries in analysis.exclusive.items():
        if metrics is not None and name not in metrics:
            continue
        metric, values = experiment.metrics[name], experiment.values[name]
        found: list[Change | None] = [None] * len(entries)
        measured_at = np.isfinite(values).any(axis=2).sum(axis=1).tolist()
        open_paths = [path for path, entry in enumerate(entries) if _is_open(entry.model, measured_at[path])]
        where = slice(None) if metric.is_effort else experiment.dedicated
        measured, points = values[open_paths][:, where], experiment.points[where]
        changes = find_changes(points, measured, metric, experiment.parameters, options)
        for path, change in zip(open_paths, changes, strict=True):
            found[path] = change
        noise: list[Deviation | None] = [None] * len(entries)
        if not metric.is_effort:
            happened: list[bool] = list(np.any(np.nan_to_num(values), axis=(1, 2)))
            noise = [one if happened[path] else None for path, one in enumerate(deviations(values))]
        result[name] = [Behaviour(*pair) for pair in zip(noise, found, strict=True)]
    return result


def noise_levels(experiment: Experiment, metric: str) -> list[float]:
    """Return the noise levels of a program: (largest - smallest)/mean of the repetitions of each configuration.

    One number for each call path and configuration where it has LEAST_SHARE of the program's total and two repetitions
    (GPR paper, figure 8); the start and the end of MPI are no part of the program.
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


def _is_open(model: object, configurations: int) -> bool:
    """Whether a model is not exact, or not of all configurations that were measured."""
    if not isinstance(model, Model) or model.quality is None:
        return False
    return model.quality.rms_relative > _EXACT or model.quality.points < configurations
