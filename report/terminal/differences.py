# SPDX-License-Identifier: Apache-2.0
"""Show the differences between two runs or experiments as tables in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quipu.modeling.differences import TimeDifference
from rich.console import Group, RenderableType
from rich.text import Text

from ..difference_views import DifferenceView, EffortRow, LineRow, by_path
from ..text import factor, path_text, percent, point_text, quantity
from .columns import elastic
from .glyphs import Layout, clean
from .headings import CALL_PATH
from .names import shorten

_LINES = 3
_NAME = 48


def difference_tables(view: DifferenceView, top: int, layout: Layout) -> list[RenderableType]:
    """Return the differences of effort by call path, with source lines, the largest first; then differences of time.

    top: largest number of call paths.
    """
    shown: list[RenderableType] = []
    groups = by_path(view.effort)
    for group in groups[:top]:
        shown.append(Group(*_paragraph(view, group, layout)))
    if len(groups) > top:
        shown.append(Text(f"{len(groups) - top} further call paths of other effort are not shown (--top)"))
    if not groups:
        compared = ", ".join(view.compared)
        shown.append(Text(f"no effort differs: {compared}" if compared else "no effort was measured on both sides"))
    if view.times:
        shown.append(_times(view, top, layout))
    return shown


def _paragraph(view: DifferenceView, group: Sequence[EffortRow], layout: Layout) -> list[RenderableType]:
    """Return the name of a call path, its metrics that differ, and the source lines of the first metric with lines."""
    path = group[0].difference.path
    region = view.tree.region_of(path)
    place = f"  {Path(region.file).name}:{region.line}" if region.file else ""
    name = clean(path_text(view.label(path)), layout.glyphs)
    heading = Text(shorten(name, max(30, layout.width - len(place)), layout.glyphs), style="bold")
    heading.append(clean(place, layout.glyphs), style="dim")
    texts = [_effort_text(view, row) for row in group]
    table = elastic(
        ("", "metric", "before", "after", "", "at", "grew as", "grows as"), texts, (5, 6, 7), (2, 3, 4), layout
    )
    lines = next((row.lines for row in group if row.lines), ())
    said = [f"    {_line(view, line)}" for line in lines[:_LINES]]
    return [heading, table, *(Text(clean(text, layout.glyphs), style="dim", overflow="fold") for text in said)]


def _effort_text(view: DifferenceView, row: EffortRow) -> tuple[str, ...]:
    one = row.difference
    before, after, change = _numbers(one.before, one.after, view.metrics[one.metric].unit)
    place = point_text(tuple(row.point), row.point.values())
    mark = "" if one.certain else "~"
    return " ", one.metric, before, after, mark + change, place, row.growth_before, row.growth_after


def _line(view: DifferenceView, line: LineRow) -> str:
    before, after, change = _numbers(line.before, line.after, view.metrics[line.metric].unit)
    where = f"{Path(line.file).name}:{line.line or line.old_line}"
    name = shorten(line.function, _NAME)
    return f"{where} {name}: {line.metric} {before} → {after} ({change})"


def _numbers(before: float, after: float, unit: str) -> tuple[str, str, str]:
    """Return both values as texts with enough digits to distinguish them, and the change as text."""
    texts = quantity(before, unit), quantity(after, unit)
    if texts[0] == texts[1]:
        texts = f"{before:.15g}", f"{after:.15g}"
    if before == 0 or after == 0:
        return *texts, "new" if before == 0 else "gone"
    ratio = after / before
    near = 0.9 < ratio < 1.1
    return (
        *texts,
        f"{'+' if ratio > 1 else ''}{percent(ratio - 1, 3 if abs(ratio - 1) < 1e-3 else 1)}" if near else factor(ratio),
    )


def _times(view: DifferenceView, top: int, layout: Layout) -> RenderableType:
    times = sorted(
        view.times,
        key=lambda one: (
            one.path >= 0,
            view.is_start_or_end(one.path),
            not one.significant,
            -abs(one.after - one.before),
        ),
    )
    texts = [
        (
            path_text(view.label(one.path)) + (" (start and end)" if view.is_start_or_end(one.path) else ""),
            quantity(one.before, "s"),
            quantity(one.after, "s"),
            factor(one.ratio),
            _sure(one),
        )
        for one in times[: top + 1]
    ]
    return elastic((CALL_PATH, "time before", "after", "ratio", "significance"), texts, (0,), (1, 2, 3), layout)


def _sure(one: TimeDifference) -> str:
    if not one.testable:
        return "too few repetitions"
    return f"{'yes' if one.significant else 'no'}, p = {one.corrected:.2g}"


def significance_note(times: Sequence[TimeDifference]) -> list[str]:
    """Return a note that names the statistical test of times; empty without times."""
    if not times:
        return []
    return [
        "times: exact Mann-Whitney test stratified by configuration, false discovery rate 5 % (Benjamini-Hochberg); "
        "ratio: Hodges-Lehmann"
    ]
