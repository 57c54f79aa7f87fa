# SPDX-License-Identifier: Apache-2.0
"""Differences between two runs or experiments, for every kind of output."""

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
    """A source line whose effort differs, mean over ranks. line: new number, 0 if removed; old_line: 0 if added."""

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

    growth_before, growth_after: models of both sides, if enough was measured; empty if they are equal. weight: the
    change divided by the total of the program, on the side where this is larger.
    """

    difference: EffortDifference
    point: Mapping[str, float]
    weight: float
    growth_before: str = ""
    growth_after: str = ""
    lines: tuple[LineRow, ...] = ()


@dataclass(frozen=True, eq=False)
class DifferenceView:
    """A comparison of two sides: names, common facts, exact differences of effort, and tested differences of time.

    quality: of both measurements, one line each. compared: effort metrics that were compared.
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
        """Return the time of the whole program, None if no time was measured on both sides."""
        return next((one for one in self.times if one.path < 0), None)

    def is_start_or_end(self, path: int) -> bool:
        """Return whether a call path belongs to the start or the end of MPI, which is not part of the program."""
        return path >= 0 and bool(self.tree.start_and_end[path])

    def label(self, path: int) -> tuple[str, ...]:
        """Return the region names of a call path from the root."""
        return ("program",) if path < 0 else steps(self.tree, path)


def difference_json(view: DifferenceView) -> dict[str, Any]:
    """Return the differences: "before", "after", "configurations" (number), "quality" (one line for each side),
    "metrics", "same_effort", "effort", "times".

    Each of "effort": "id", "parent", "depth", "path", "region", "start_and_end" as `quipu show --json` has them,
    "metric", "configurations" (indices), "of" (number of compared configurations), "point" (where they are the farthest
    apart), "before", "after", "ratio" (null if it is new), "weight", "certain" (all repetitions of a side are equal),
    "growth_before", "growth_after", "lines" (each "function", "file", "line", "old_line", "metric", "before", "after",
    mean over ranks). Each of "times": "path", "metric", "before", "after" (means in seconds), "ratio", "chance"
    (p-value), "corrected" (p-value, corrected for all tests), "significant", "testable", "repetitions",
    "start_and_end".
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
    """Return the rows of each call path; the call path with the largest change relative to the program is first."""
    groups: dict[int, list[EffortRow]] = {}
    for row in rows:
        groups.setdefault(row.difference.path, []).append(row)
    return sorted(groups.values(), key=lambda group: -max(row.weight for row in group))
