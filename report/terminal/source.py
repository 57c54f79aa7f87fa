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
    rows = []
    for line in function.lines:
        if line.number == 0 and line.values is None:
            rows.append((layout.glyphs.ellipsis, *("" for _ in view.metrics), "", ""))
            continue
        numbers = (
            ("",) * (len(view.metrics) + 1) if line.values is None else _numbers(view, line.values, line.share, layout)
        )
        rows.append((str(line.number) if line.number else "?", *numbers, line.text.expandtabs(4)))
    headings = ("line", *(metric.name for metric in view.metrics), "share", "source")
    hot = [line.share >= _HOT for line in function.lines]
    title = _title(view, f"{place}{function.function}", function.values, function.share, layout)
    return Group(*title, _table(headings, rows, hot, layout))


def inlined_listing(view: SourceView, layout: Layout) -> list[RenderableType]:
    """Return one table per call path: metrics, share of the call path, source function and where it is."""
    headings = (*(f"{metric.name} excl" for metric in view.metrics), "share", "came from")
    listings: list[RenderableType] = []
    for path in view.inlined:
        rows = [
            (*_numbers(view, row.values, row.share, layout), f"{row.function}  {row.place}".rstrip())
            for row in path.rows
        ]
        title = _title(view, "->".join(path.path), path.values, path.share, layout)
        listings.append(Group(*title, _table(headings, rows, [False] * len(rows), layout)))
    return listings


def _title(view: SourceView, name: str, values: Sequence[float], share: float, layout: Layout) -> tuple[Text, Text]:
    sums = (
        f"{metric.name} {measured(value, metric, layout.glyphs)}"
        for metric, value in zip(view.metrics, values, strict=True)
    )
    return (
        Text(elide(clean(name, layout.glyphs), layout.width, layout.glyphs), style="bold"),
        Text(f"{', '.join(sums)}, {percent(share)} of the run", style="dim", overflow="fold"),
    )


def _numbers(view: SourceView, values: Sequence[float], share: float, layout: Layout) -> tuple[str, ...]:
    texts = [measured(value, metric, layout.glyphs) for value, metric in zip(values, view.metrics, strict=True)]
    return (*texts, percent(share))


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], hot: Sequence[bool], layout: Layout) -> Table:
    """Return a table whose last column takes the room that is left; what does not fit there is cut off at its end."""
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_edge=False)
    last = len(headings) - 1
    used = 0
    for at, heading in enumerate(headings[:-1]):
        width = max([cell_len(heading), *(cell_len(row[at]) for row in rows)])
        used += width + _GAP
        table.add_column(heading, justify="right", no_wrap=True, width=width)
    room = max(_NARROWEST, layout.width - used)
    table.add_column(headings[last], no_wrap=True, width=room)
    for row, is_hot in zip(rows, hot, strict=True):
        text = Text(clean(row[last], layout.glyphs))
        if cell_len(text.plain) > room:
            text.truncate(room - len(layout.glyphs.ellipsis))
            text.append(layout.glyphs.ellipsis)
        table.add_row(*(Text(cell) for cell in row[:last]), text, style="bold red" if is_hot else None)
    return table
