# SPDX-License-Identifier: Apache-2.0
"""Views of the differences between two runs or experiments, for every kind of output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quipu.modeling.differences import EffortDifference, TimeDifference
from quipu.modeling.experiment import CallTree, Metric

from .json_views import SCHEMA, json_number, metric_json, path_json
from .views import steps


@dataclass(frozen=True)
class LineRow:
    """A source line whose effort differs.

    line: number of the line after the change; 0 if removed. old_line: number before; 0 if added. before, after: the
    effort, mean over ranks.
    """

    function: str
    file: str
    line: int
    old_line: int
    metric: str
    before: float
    after: float


@dataclass(frozen=True)
class EffortRow:
    """An effort metric of a call path that differs, with the source lines that cause the difference.

    point: the configuration with the largest difference. weight: the difference divided by the total of the program, on
    the side where this ratio is larger. growth_before, growth_after: models of both sides as text; empty if the models
    are equal, or if there are too few configurations. lines: the source lines that differ.
    """

    difference: EffortDifference
    point: Mapping[str, float]
    weight: float
    growth_before: str = ""
    growth_after: str = ""
    lines: tuple[LineRow, ...] = ()


@dataclass(frozen=True, eq=False)
class DifferenceView:
    """A comparison of two runs or experiments, the sides.

    before, after: names of the sides. configurations: number of configurations of both sides. compared: names of the
    compared effort metrics. effort: exact differences. times: statistically tested differences of time. facts: titles
    and texts. quality: a line about the quality of each measurement.
    """

    before: str
    after: str
    tree: CallTree
    metrics: Mapping[str, Metric]
    configurations: int
    compared: tuple[str, ...]
    effort: tuple[EffortRow, ...]
    times: tuple[TimeDifference, ...]
    facts: tuple[tuple[str, str], ...] = field(default=())
    notes: tuple[str, ...] = field(default=())
    quality: tuple[str, str] = ("", "")

    @property
    def program(self) -> TimeDifference | None:
        """Return the difference of the time of the whole program; None if one side has no time."""
        return next((one for one in self.times if one.path < 0), None)

    def is_start_or_end(self, path: int) -> bool:
        """Return whether a call path belongs to the start or the end of MPI, which is not part of the program."""
        return path >= 0 and bool(self.tree.start_and_end[path])

    def label(self, path: int) -> tuple[str, ...]:
        """Return the region names of a call path from the root."""
        return ("program",) if path < 0 else steps(self.tree, path)


def difference_json(view: DifferenceView) -> dict[str, Any]:
    """Return the differences as a JSON document.

    Keys: "before", "after", "configurations" (number), "quality" (one line for each side), "notes", "metrics",
    "same_effort" (whether no effort differs), "effort", "times".

    Each of "effort": "id", "parent", "depth", "path", "region", "start_and_end" as in `quipu show --json`; "metric",
    "configurations" (indices of those that differ), "of" (number of compared configurations), "point" (configuration
    with the largest difference) and there "before", "after", "ratio" (null if the call path is new); "weight",
    "certain" (whether all repetitions of a side are equal), "growth_before", "growth_after", "lines" (see `LineRow`).

    Each of "times": "path", "metric", "before", "after" (means in seconds), "ratio", "chance" (p-value), "corrected"
    (p-value, corrected for all tests), "significant", "testable", "repetitions", "start_and_end".
    """
    return {
        "format": "quipu-diff",
        "schema": SCHEMA,
        "before": view.before,
        "after": view.after,
        "configurations": view.configurations,
        "quality": list(view.quality),
        "notes": list(view.notes),
        "metrics": [metric_json(metric) for metric in view.metrics.values()],
        "same_effort": not view.effort,
        "effort": [_effort(view, row) for row in view.effort],
        "times": [_time(view, one) for one in view.times],
    }


def _effort(view: DifferenceView, row: EffortRow) -> dict[str, Any]:
    one = row.difference
    return {
        **path_json(view.tree, one.path),
        "metric": one.metric,
        "configurations": list(one.configurations),
        "of": one.of,
        "point": {name: json_number(value) for name, value in row.point.items()},
        "before": json_number(one.before),
        "after": json_number(one.after),
        "ratio": json_number(one.ratio),
        "weight": json_number(row.weight),
        "certain": one.certain,
        "growth_before": row.growth_before,
        "growth_after": row.growth_after,
        "lines": [
            {key: getattr(line, key) for key in ("function", "file", "line", "old_line", "metric")}
            | {"before": json_number(line.before), "after": json_number(line.after)}
            for line in row.lines
        ],
    }


def _time(view: DifferenceView, one: TimeDifference) -> dict[str, Any]:
    numbers = ("before", "after", "ratio", "chance", "corrected")
    return {
        "path": list(view.label(one.path)),
        "metric": one.metric,
        **{name: json_number(getattr(one, name)) for name in numbers},
        "significant": one.significant,
        "testable": one.testable,
        "repetitions": list(one.repetitions),
        "start_and_end": view.is_start_or_end(one.path),
    }


def by_path(rows: Sequence[EffortRow]) -> list[list[EffortRow]]:
    """Return the rows grouped by call path. The group with the largest `weight` is first."""
    groups: dict[int, list[EffortRow]] = {}
    for row in rows:
        groups.setdefault(row.difference.path, []).append(row)
    return sorted(groups.values(), key=lambda group: -max(row.weight for row in group))
