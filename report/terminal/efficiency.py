# SPDX-License-Identifier: Apache-2.0
"""Show efficiencies as tables: coloured factors of each configuration, and the call paths with the largest losses."""

from __future__ import annotations

import math
from collections.abc import Sequence

from quipu.modeling.experiment import CallTree
from quipu.modeling.printable import counted
from quipu.modeling.root_causes import RootCauses
from quipu.modeling.run_times import RunTimes
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..efficiency_views import GOOD, POOR, EfficiencyColumn, EfficiencyView, FactorRow
from ..text import path_text, percent, point_text, quantity
from ..views import steps
from ..waiting_views import place_of, waiting_rows
from .columns import elastic
from .glyphs import Layout, clean
from .headings import CALL_PATH
from .names import shorten

_GAP = 2
_INDENT = "  "
_APART = 5e-4  # smaller differences and shares are not shown


def factor_table(columns: Sequence[EfficiencyColumn], rows: Sequence[FactorRow], layout: Layout) -> RenderableType:
    """Return a table with a row for each factor and a column for each configuration.

    If not all configurations fit, the first ones are left out, and a line below the table gives their number.
    """
    titles = [_INDENT * row.depth + row.title for row in rows]
    cells = [[_cell(value) for value in row.values] for row in rows]
    headings = [[*column.heading.split(", "), _size(column), _time(column)] for column in columns]
    room = layout.width - max([len("processors"), *map(cell_len, titles)])
    shown: list[int] = []
    for at in reversed(range(len(columns))):
        width = max([*map(cell_len, headings[at]), *(cell_len(row[at]) for row in cells)])
        if shown and room < width + _GAP:
            break
        room -= width + _GAP
        shown.insert(0, at)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_edge=False)
    table.add_column("", no_wrap=True)
    for at in shown:
        heading = "\n".join(clean(line, layout.glyphs) for line in headings[at])
        table.add_column(heading, justify="right", no_wrap=True)
    for title, row, texts in zip(titles, rows, cells, strict=True):
        values = [Text(clean(texts[at], layout.glyphs), style=style_of(row.values[at][0])) for at in shown]
        table.add_row(Text(title, style="bold" if row.depth < 2 else ""), *values)
    if len(shown) == len(columns):
        return table
    left = len(columns) - len(shown)
    line = f"hidden: {left} configuration{'s' if left > 1 else ''} (a wider terminal or --json shows them)"
    return Group(table, Text(line, style="dim"))


def loss_tables(view: EfficiencyView, top: int, layout: Layout) -> list[RenderableType]:
    """Return a line with the lost share of the elapsed time, and a table of call paths, the largest loss first.

    top: largest number of call paths. The result is empty if the losses are unknown or negligible.
    """
    losses = view.losses
    if losses is None or losses.lost < _APART:
        return []
    rows: list[tuple[str, ...]] = []
    shown = [path for path in losses.largest[:top] if losses.total[path] >= _APART * losses.elapsed]
    for path in shown:
        parts = (losses.load_balance, losses.communication, losses.threads, losses.computation)
        shares = [_share(float(part[path]) / losses.elapsed) for part in parts]
        lost = percent(float(losses.total[path]) / losses.elapsed)
        rows.append((path_text(steps(view.tree, path)), lost, *shares, place_of(view.tree, path)))
    slowest = f", rank {losses.rank} has the most time outside of MPI" if view.last.ranks > 1 else ""
    line = f"lost at {view.last.heading}: {percent(losses.lost)} of {quantity(losses.elapsed, 's')}{slowest}"
    headings = (CALL_PATH, "lost", "load balance", "communication", "threads", "computation", "at")
    table = elastic(headings, rows, (0,), (1, 2, 3, 4, 5), layout, (6,))
    return [Text(clean(line, layout.glyphs), style="bold"), table]


def waiting_text(
    tree: CallTree, found: RootCauses | None, top: int, layout: Layout, run: RunTimes | None = None
) -> list[RenderableType]:
    """Return a table of the operations in which ranks wait, and the causes; empty if the waiting is negligible.

    run: the run that the title names; None: the title names no run.
    """
    rows = [] if found is None else waiting_rows(tree, found, top)
    if not rows:
        return []
    place = "" if run is None else f" at {point_text(tuple(run.point), run.point.values())}, as measured"
    title = Text(
        clean(
            f"operations in which ranks wait{place}, and below each the late rank that causes the waiting",
            layout.glyphs,
        )
    )
    title.stylize("bold")
    table = elastic((CALL_PATH, "time", "share", "rank", "why", "at"), rows, (0,), (1, 2, 3), layout, (5,))
    return [Group(title, table)]


def scope_heading(tree: CallTree, scope: int, layout: Layout) -> RenderableType:
    """Return a call path as the heading of a table. scope: index of the call path."""
    return Text(shorten(clean(path_text(steps(tree, scope)), layout.glyphs), layout.width, layout.glyphs), style="bold")


def style_of(value: float) -> str:
    """Return the colour of an efficiency: good, medium or poor."""
    if math.isnan(value):
        return "dim"
    return "green" if value >= GOOD else "yellow" if value >= POOR else "red"


def _cell(value: tuple[float, float, float]) -> str:
    middle, low, high = value
    if math.isnan(middle) or high - low < _APART or math.isnan(high - low):
        return percent(middle)
    return f"{percent(middle)} ({percent(low)} .. {percent(high)})"


def _size(column: EfficiencyColumn) -> str:
    ranks = counted(column.ranks, "rank", "ranks")
    return f"{ranks} × {column.threads}" if column.threads > 1 else ranks


def _time(column: EfficiencyColumn) -> str:
    return f"{quantity(column.elapsed, 's')}{' predicted' if column.run is None else ''}"


def _share(value: float) -> str:
    return percent(value) if abs(value) >= _APART else ""
