"""Noise and changes of behaviour as rows of tables, and as data of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from quipu.modeling.behaviour import Behaviour, noise_levels
from quipu.modeling.experiment import Experiment
from quipu.modeling.pmnf.changes import Change
from quipu.modeling.pmnf.data.deviation import QUANTILES, Deviation

from .terminal.text import number, percent, point_text
from .views import ChangeRow, NoiseRow

Places = Mapping[tuple[tuple[str, ...], str], int]


def change_rows(places: Places, observed: Mapping[str, Sequence[Behaviour]]) -> list[ChangeRow]:
    """Return the changes of behaviour of the (path, metric) pairs of `places`, which maps them to call paths."""
    rows = []
    for (path, metric), node in places.items():
        change = observed[metric][node].change if metric in observed else None
        if change is not None:
            rows.append(ChangeRow(path, metric, _between(change), str(change.below), str(change.above)))
    return rows


def _between(change: Change) -> str:
    return f"from {change.parameter}={number(change.last)} to {number(change.first)}"


def noise_rows(places: Places, observed: Mapping[str, Sequence[Behaviour]], experiment: Experiment) -> list[NoiseRow]:
    """Return the noise of the (path, metric) pairs of `places`; effort has none."""
    rows = []
    for (path, metric), node in places.items():
        own = observed[metric][node].deviation if metric in observed else None
        if own is not None:
            few, many = own.repetitions
            count = str(few) if few == many else f"{few} to {many}"
            low, high = own.quantiles[0], own.quantiles[-1]
            rows.append(
                NoiseRow(path, metric, count, own.range, low, high, own.worst, _place(own, experiment), own.warning)
            )
    return rows


def _place(own: Deviation, experiment: Experiment) -> str:
    if own.worst_point < 0:
        return ""
    return point_text(experiment.parameters, tuple(map(float, experiment.points[own.worst_point])))


def noise_facts(experiment: Experiment) -> list[tuple[str, str]]:
    """Return one line per cost metric on the noise levels of the program."""
    facts = []
    for name, metric in experiment.metrics.items():
        levels = noise_levels(experiment, name) if name in experiment.values and not metric.is_effort else []
        if levels:
            low, middle, high = np.quantile(levels, (0.0, 0.5, 1.0)).tolist()
            mean = float(np.mean(levels))
            facts.append(
                (
                    f"noise of {name}",
                    f"ranges of {percent(low)} to {percent(high)} of the mean, {percent(middle)} median, "
                    f"{percent(mean)} mean ({len(levels)} call paths × configurations with at least 1 % of the total)",
                )
            )
    return facts


def unrepeated(observed: Mapping[str, Sequence[Behaviour]]) -> list[str]:
    """Return a note on each cost metric that was measured without repetitions."""
    return [
        f"no repetitions: the noise of {name} is unknown"
        for name, entries in observed.items()
        if any(own.deviation for own in entries) and not any(own.is_repeated for own in entries)
    ]


def behaviour_data(experiment: Experiment, observed: Mapping[str, Sequence[Behaviour]]) -> dict[str, Any]:
    """Return the data of the report: "noise" and "changes".

    noise: per cost metric "levels" (quantiles 0, 5, 25, 50, 75, 95 and 100 % of the noise levels of the program, empty
    without repetitions), "mean" of them, "count", and "paths": [path, range, quantiles of the deviations at 5 and 95 %,
    worst, the point of the worst as text, warning]. changes: "path", "metric", "parameter", "last", "first", models.
    """
    noise: dict[str, Any] = {}
    changes: list[tuple[int, str, Change]] = []
    for name, entries in observed.items():
        changes += [(path, name, own.change) for path, own in enumerate(entries) if own.change is not None]
        if experiment.metrics[name].is_effort:
            continue
        levels = noise_levels(experiment, name)
        noise[name] = {
            "levels": np.quantile(levels, (0.0, *QUANTILES, 1.0)).tolist() if levels else [],
            "mean": float(np.mean(levels)) if levels else None,
            "count": len(levels),
            "paths": [
                _path_noise(path, own.deviation, experiment) for path, own in enumerate(entries) if own.deviation
            ],
        }
    return {"noise": noise, "changes": changes}


def _path_noise(path: int, own: Deviation, experiment: Experiment) -> list[Any]:
    numbers = (own.range, own.quantiles[0], own.quantiles[-1], own.worst)
    return [
        path,
        *(float(f"{x:.4g}") if np.isfinite(x) else None for x in numbers),
        _place(own, experiment),
        own.warning,
    ]
