"""Annotated source lines, and call paths by the functions that were inlined into them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..source_view import ListedFunction, SourceView
from .text import Layout, clean, elide, measured, percent

_GAP = 2
_HOT = 0.1  # share of the run from which a line is marked
_NARROWEST = 16


def source_listing(view: SourceView, layout: Layout) -> list[RenderableType]:
    """Return one listing per function: line numbers, metrics, share of the run (of the first metric), source text."""
    return [_listing(view, function, layout) for function in view.functions]


def _listing(view: SourceView, function: ListedFunction, layout: Layout) -> RenderableType:
    place = f"{function.file}: " if function.file else ""
    sums = ", ".join(
        f"{metric.name} {measured(value, metric, layout.glyphs)}"
        for metric, value in zip(view.metrics, function.values, strict=True)
    )
    title = Text(elide(clean(f"{place}{function.function}", layout.glyphs), layout.width, layout.glyphs), style="bold")
    rows = []
    for line in function.lines:
        if line.number == 0 and line.values is None:
            rows.append((layout.glyphs.ellipsis, *("" for _ in view.metrics), "", ""))
            continue
        numbers = ("",) * (len(view.metrics) + 1)
        if line.values is not None:
            texts = [
                measured(value, metric, layout.glyphs) for value, metric in zip(line.values, view.metrics, strict=True)
            ]
            numbers = (*texts, percent(line.share))
        text = clean(line.text.expandtabs(4), layout.glyphs)
        rows.append((str(line.number) if line.number else "?", *numbers, text))
    headings = ("line", *(metric.name for metric in view.metrics), "share", "source")
    hot = [line.share >= _HOT for line in function.lines]
    total = Text(f"{sums}, {percent(function.share)} of the run", style="dim")
    return Group(title, total, _table(headings, rows, hot, layout))


def inlined_table(view: SourceView, layout: Layout) -> Table:
    """Return call paths, each with the source functions that its own effort came from."""
    rows = []
    above: tuple[str, ...] = ()
    for row in view.inlined:
        texts = [measured(value, metric, layout.glyphs) for value, metric in zip(row.values, view.metrics, strict=True)]
        path = "" if row.path == above else "->".join(row.path)
        rows.append((path, *texts, percent(row.share), row.function))
        above = row.path
    headings = ("call path", *(f"{metric.name} excl" for metric in view.metrics), "share", "came from")
    cleaned = [tuple(clean(text, layout.glyphs) for text in row) for row in rows]
    widest = max((cell_len(row[0]) for row in cleaned), default=0)
    numbers = sum(_width(headings, cleaned, at) + _GAP for at in range(1, len(headings) - 1))
    room = max(_NARROWEST, min(widest, (layout.width - numbers) // 2 - _GAP))
    cut = [(elide(row[0], room, layout.glyphs), *row[1:]) for row in cleaned]
    return _table(headings, cut, [False] * len(cut), layout, left=(0,))


def _table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    hot: Sequence[bool],
    layout: Layout,
    left: tuple[int, ...] = (),
) -> Table:
    """Return a table whose last column takes the room that is left; what does not fit is cut off at its end."""
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_edge=False)
    last = len(headings) - 1
    used = 0
    for at, heading in enumerate(headings[:-1]):
        width = _width(headings, rows, at)
        used += width + _GAP
        table.add_column(heading, justify="left" if at in left else "right", no_wrap=True, width=width)
    room = max(_NARROWEST, layout.width - used)
    table.add_column(headings[last], no_wrap=True, width=room)
    for row, is_hot in zip(rows, hot, strict=True):
        text = row[last] if cell_len(row[last]) <= room else row[last][: room - 1] + layout.glyphs.ellipsis[:1]
        table.add_row(*(Text(cell) for cell in row[:last]), Text(text), style="bold red" if is_hot else None)
    return table


def _width(headings: Sequence[str], rows: Sequence[Sequence[str]], at: int) -> int:
    return max([cell_len(headings[at]), *(cell_len(row[at]) for row in rows)])
