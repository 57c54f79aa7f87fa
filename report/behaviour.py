# SPDX-License-Identifier: Apache-2.0
"""Noise and changes of behaviour as rows of tables, and as data of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from quipu.modeling.behaviour import Behaviour, noise_levels
from quipu.modeling.experiment import Experiment
from quipu.modeling.pmnf.changes.ranges import Change
from quipu.modeling.pmnf.data.deviation import QUANTILES, Deviation

from .text import number, percent, point_text
from .views import ChangeRow, NoiseRow

Places = Mapping[tuple[tuple[str, ...], str], int]


def change_rows(places: Places, observed: Mapping[str, Sequence[Behaviour]]) -> list[ChangeRow]:
    """Return the changes of behaviour of the (path, metric) pairs in `places`, which maps them to call paths."""
    rows = []
    for (path, metric), node in places.items():
        change = observed[metric][node].change if metric in observed else None
        if change is not None:
            between = f"from {change.parameter}={number(change.last)} to {number(change.first)}"
            between += f", process grid {change.grids}" if change.grids else ""
            rows.append(ChangeRow(path, metric, between, str(change.below), str(change.above)))
    return rows


def noise_rows(places: Places, observed: Mapping[str, Sequence[Behaviour]], experiment: Experiment) -> list[NoiseRow]:
    """Return the noise of the (path, metric) pairs in `places`; effort has no noise."""
    rows = []
    for (path, metric), node in places.items():
        deviation = observed[metric][node].deviation if metric in observed else None
        if deviation is not None:
            few, many = deviation.repetitions
            count = str(few) if few == many else f"{few} to {many}"
            place = _place(deviation, experiment)
            rows.append(NoiseRow(path, metric, count, *_numbers(deviation), place, deviation.warning))
    return rows


def _numbers(deviation: Deviation) -> tuple[float, float, float, float]:
    """Return the range, the 5 and 95 % quantiles and the worst of the deviations."""
    return deviation.range, deviation.quantiles[0], deviation.quantiles[-1], deviation.worst


def _place(deviation: Deviation, experiment: Experiment) -> str:
    if deviation.worst_point < 0:
        return ""
    return point_text(experiment.parameters, experiment.points[deviation.worst_point])


def noise_facts(experiment: Experiment) -> list[tuple[str, str]]:
    """Return one line per cost metric on the noise levels of the program."""
    facts = []
    for name, metric in experiment.metrics.items():
        levels = noise_levels(experiment, name) if name in experiment.values and not metric.is_effort else []
        if levels:
            low, middle, high = np.quantile(levels, (0.0, 0.5, 1.0)).tolist()
            mean = float(np.mean(levels))
            text = (
                f"ranges of {percent(low)} to {percent(high)} of the mean, {percent(middle)} median, "
                f"{percent(mean)} mean ({len(levels)} call paths × configurations with at least 1 % of the total)"
            )
            facts.append((f"noise of {name}", text))
    return facts


def unrepeated(observed: Mapping[str, Sequence[Behaviour]]) -> list[str]:
    """Return a note on each cost metric that was measured without repetitions."""
    return [
        f"no repetitions: the noise of {name} is unknown"
        for name, entries in observed.items()
        if any(entry.deviation for entry in entries) and not any(entry.is_repeated for entry in entries)
    ]


def behaviour_data(experiment: Experiment, observed: Mapping[str, Sequence[Behaviour]]) -> dict[str, Any]:
    """Return "noise" and "changes" of the data of the report.

    - noise: by cost metric, "levels" (quantiles 0, 5, 25, 50, 75, 95 and 100 % of the noise levels of the program;
      empty without repetitions), their "mean" and "count", and "paths": [path, range, 5 and 95 % quantiles of the
      deviations, worst deviation, its point as text, warning].
    - changes: "path", "metric", "parameter", "last", "first", models.
    """
    noise: dict[str, Any] = {}
    changes: list[tuple[int, str, Change]] = []
    for name, entries in observed.items():
        changes += [(path, name, entry.change) for path, entry in enumerate(entries) if entry.change is not None]
        if experiment.metrics[name].is_effort:
            continue
        levels = noise_levels(experiment, name)
        noise[name] = {
            "levels": np.quantile(levels, (0.0, *QUANTILES, 1.0)).tolist() if levels else [],
            "mean": float(np.mean(levels)) if levels else None,
            "count": len(levels),
            "paths": [_path_noise(at, one.deviation, experiment) for at, one in enumerate(entries) if one.deviation],
        }
    return {"noise": noise, "changes": changes}


def _path_noise(path: int, deviation: Deviation, experiment: Experiment) -> list[Any]:
    numbers = (float(f"{100 * x:.1f}e-2") if np.isfinite(x) else None for x in _numbers(deviation))  # as in `percent`
    return [path, *numbers, _place(deviation, experiment), deviation.warning]
