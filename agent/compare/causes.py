# SPDX-License-Identifier: Apache-2.0
"""Find the functions and source lines that cause a difference between two measurements, or a growth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from quipu.modeling.analysis import Analysis
from quipu.modeling.expectations import Outcome, order_text
from quipu.modeling.experiment import CallTree, mean_over_repetitions
from quipu.modeling.line_changes import LineChange, largest, line_changes
from quipu.modeling.pmnf.model import Model
from quipu.modeling.short_names import shorten
from quipu.report.check_views import Cause
from quipu.report.text import factor, percent, quantity

from .sides import Function, Key, Lines, Pair, Side

_MOST_FUNCTIONS = 5
_MOST_LINES = 3
_LEAST_SHARE = 0.05
_NAME = 48


class PairLines:
    """The source lines of both sides of a pair at one configuration."""

    def __init__(self, pair: Pair, configuration: int) -> None:
        points = pair.points[configuration]
        sides = [side.run_lines(point) for side, point in zip(pair.sides, points, strict=True)]
        known = [None if side is None else side.lines() for side in sides]
        self._old_names = pair.old_names
        self._lines: tuple[Lines, Lines] | None = None
        if known[0] is not None and known[1] is not None and known[0].metrics == known[1].metrics:
            self._lines = known[0], known[1]

    def changes(self, key: Key, metric: str) -> list[tuple[Function, LineChange, float, float]]:
        """Return the lines of a call path whose value of a metric changed, the largest changes first.

        Each result is (function, line, value before, value after). At most `_MOST_LINES` are returned; none if lines
        are not known on both sides.
        """
        if self._lines is None or metric not in self._lines[0].metrics:
            return []
        old, new = self._lines
        at = new.metrics.index(metric)
        mine = {
            (function.name, Path(function.file).name): (function, lines)
            for function, lines in self._of(old, key, True).items()
        }
        theirs = {
            (function.name, Path(function.file).name): (function, lines)
            for function, lines in self._of(new, key, False).items()
        }
        found = []
        for name in {**mine, **theirs}:
            function = (theirs.get(name) or mine[name])[0]
            before = mine[name][1] if name in mine else {}
            after = theirs[name][1] if name in theirs else {}
            for change in largest(line_changes(before, after), at, _MOST_LINES):
                found.append((function, change, change.before[at], change.after[at]))
        return sorted(found, key=lambda one: -abs(one[3] - one[2]))[:_MOST_LINES]

    def _of(self, lines: Lines, key: Key, old: bool) -> dict[Function, dict[int, tuple[float, ...]]]:
        names = self._old_names if old else {}
        return {
            function: dict(values)
            for function, values in lines.functions.items()
            if tuple(names.get(step, step) for step in function.path) == key
        }


def changed(pair: Pair, outcome: Outcome, inclusive: bool) -> tuple[Cause, ...]:
    """Return the functions, and their lines, that differ most from the baseline.

    outcome: result of the check of one call path. inclusive: also consider all call paths below it. The comparison is
    made at the point of the outcome, or at the point with the largest difference.
    """
    metric = outcome.expectation.metric
    old, new = (mean_over_repetitions(side.values[metric]) for side in (pair.before, pair.after))
    nodes = _below(pair.after.tree, outcome.path) if inclusive else (outcome.path,)
    difference = np.nan_to_num(new - old)
    rows = {tuple(row): place for place, row in enumerate(pair.after.points.tolist())}
    at = rows.get(tuple(outcome.point.values()), -1)
    if at < 0:
        at = int(np.argmax(np.abs(difference[list(nodes)]).sum(axis=0)))
    ordered = sorted((node for node in nodes if difference[node, at]), key=lambda node: -abs(difference[node, at]))
    lines = PairLines(pair, at) if ordered else None
    unit, tree = pair.after.metric(metric).unit, pair.after.tree
    causes = []
    for node in ordered[:_MOST_FUNCTIONS]:
        region = tree.region_of(node)
        text = (
            f"{_place(region.display, region.file, region.line)}: {_step(old[node, at], new[node, at], unit)} {metric}"
        )
        causes.append(Cause(text, region.file, region.line))
        for function, change, before, after in [] if lines is None else lines.changes(tree.key(node), metric):
            text = f"  {_line(function, change)}: {_step(before, after, unit)}"
            causes.append(Cause(text, function.file, change.line or change.old_line))
    if len(ordered) > _MOST_FUNCTIONS:
        causes.append(Cause(f"and {len(ordered) - _MOST_FUNCTIONS} further call paths"))
    return tuple(causes)


def carried(outcome: Outcome, analysis: Analysis, side: Side, inclusive: bool) -> tuple[Cause, ...]:
    """Return the functions whose models grow faster than expected, and the lines with most of their effort.

    outcome: result of the check of one call path, whose expectation is a growth. inclusive: also consider all call
    paths below it.
    """
    metric = outcome.expectation.metric
    tree, entries = analysis.tree, analysis.models(metric)
    nodes = _below(tree, outcome.path) if inclusive else (outcome.path,)
    assert outcome.expectation.growth is not None
    causes = []
    for node in nodes:
        model = entries[node].model
        if not isinstance(model, Model) or model.is_constant:
            continue
        expected = outcome.expectation.growth.exponents
        if all(model.lead(name) <= order for name, order in expected.items()):
            continue
        region = tree.region_of(node)
        text = f"{_place(region.display, region.file, region.line)}: {metric} {order_text(model.leading)}: {model}"
        causes.append(Cause(text, region.file, region.line))
        if len(causes) >= _MOST_FUNCTIONS:
            break
        causes += _heaviest(side, tree.key(node), metric)
    return tuple(causes)


def _heaviest(side: Side, key: Key, metric: str) -> list[Cause]:
    """Return the lines of a call path with the largest shares of a metric at the last configuration."""
    kept = side.run_lines(tuple(side.experiment.points[-1].tolist()))
    lines = None if kept is None else kept.lines()
    if lines is None or metric not in lines.metrics:
        return []
    at = lines.metrics.index(metric)
    rows = [
        (values[at], function, line)
        for function, of_lines in lines.functions.items()
        if function.path == key
        for line, values in of_lines.items()
    ]
    total = sum(value for value, _, _ in rows)
    rows = sorted((row for row in rows if row[0] > _LEAST_SHARE * total), key=lambda row: -row[0])[:_MOST_LINES]
    return [
        Cause(f"  {_place(function.display, function.file, line)}: {percent(value / total)} of it", function.file, line)
        for value, function, line in rows
    ]


def _below(tree: CallTree, path: int) -> tuple[int, ...]:
    found, stack = [], [path]
    while stack:
        node = stack.pop()
        found.append(node)
        stack.extend(tree.children[node])
    return tuple(sorted(found))


def _place(name: str, file: str, line: int) -> str:
    """Return a function and its source location as text, with long names shortened."""
    name = shorten(name, _NAME)
    where = Path(file).name + (f":{line}" if line else "") if file else ""
    return f"{name} ({where})" if where else name


def _line(function: Function, change: LineChange) -> str:
    """Return the location of a changed line as text, with its old location if the line was removed or moved."""
    if not change.line:
        return f"{_place(function.display, function.file, change.old_line)}, which was removed"
    moved = f", line {change.old_line} before" if change.old_line not in (0, change.line) else ""
    return f"{_place(function.display, function.file, change.line)}{moved}{'' if change.old_line else ', new'}"


def _step(before: float, after: float, unit: str) -> str:
    """Return a change as text: `1024 → 65536 (64×)`, with enough digits to distinguish both values."""
    texts = [quantity(value, unit) for value in (before, after)]
    if texts[0] == texts[1]:
        texts = [f"{value:.15g}" for value in (before, after)]
    ratio = f" ({factor(after / before)})" if before > 0 and after > 0 else ""
    return f"{texts[0]} → {texts[1]}{ratio}"
