# SPDX-License-Identifier: Apache-2.0
"""Show noise and changes of behaviour as rows of tables, and as data of the report.

A change of behaviour is a value of a parameter from which on a call path follows another model.
"""

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
"""The index of a call path, by pair of its text (names of its regions) and a metric."""


def change_rows(places: Places, observed: Mapping[str, Sequence[Behaviour]]) -> list[ChangeRow]:
    """Return a row for each pair of call path and metric in `places` that has a change of behaviour.

    observed: for each metric, the behaviour of each call path.
    """
    rows = []
    for (path, metric), node in places.items():
        change = observed[metric][node].change if metric in observed else None
        if change is not None:
            between = f"from {change.parameter}={number(change.last)} to {number(change.first)}"
            between += f", process grid {change.grids}" if change.grids else ""
            rows.append(ChangeRow(path, metric, between, str(change.below), str(change.above)))
    return rows


def noise_rows(places: Places, observed: Mapping[str, Sequence[Behaviour]], experiment: Experiment) -> list[NoiseRow]:
    """Return a row with the noise of each pair of call path and metric in `places`; none for effort.

    observed: for each metric, the behaviour of each call path.
    """
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
    """Return the median range, the 5 and 95 % quantiles, and the largest absolute value of the relative deviations."""
    return deviation.range, deviation.quantiles[0], deviation.quantiles[-1], deviation.worst


def _place(deviation: Deviation, experiment: Experiment) -> str:
    """Return the configuration with the largest deviation as text; empty if there are no deviations."""
    if deviation.worst_point < 0:
        return ""
    return point_text(experiment.parameters, experiment.points[deviation.worst_point])


def noise_facts(experiment: Experiment) -> list[tuple[str, str]]:
    """Return a title and a text about the noise levels of the program, for each cost metric."""
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
    """Return a note for each cost metric that was measured without repetitions, so that its noise is unknown."""
    return [
        f"no repetitions: the noise of {name} is unknown"
        for name, entries in observed.items()
        if any(entry.deviation for entry in entries) and not any(entry.is_repeated for entry in entries)
    ]


def behaviour_data(experiment: Experiment, observed: Mapping[str, Sequence[Behaviour]]) -> dict[str, Any]:
    """Return "noise" and "changes" of the data of the report.

    - noise: for each cost metric: "levels" (quantiles 0, 5, 25, 50, 75, 95 and 100 % of the noise levels of the
      program; empty without repetitions), "mean" and "count" of the noise levels, and "paths". Each of "paths" is a
      list: index of the call path; range, 5 and 95 % quantiles and largest absolute value of the relative deviations
      (null: unknown); configuration of the largest one as text; warning.
    - changes: for each change of behaviour: index of the call path, metric, and the change.

    observed: for each metric, the behaviour of each call path.
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
    # rounded to 0.1 %, as `percent` prints them
    numbers = (float(f"{100 * x:.1f}e-2") if np.isfinite(x) else None for x in _numbers(deviation))
    return [path, *numbers, _place(deviation, experiment), deviation.warning]
