"""Annotated source lines, and call paths by the functions that were inlined into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..source_view import ListedFunction, SourceView
from ..text import path_text, percent, quantity
from .glyphs import Glyphs, Layout, clean
from .names import shorten

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
    title = _title(view, place, function.function, function.values, function.share, layout)
    return Group(*title, _listing_of(headings, rows, hot, _beginning, layout))


def inlined_listing(view: SourceView, layout: Layout) -> list[RenderableType]:
    """Return one table per call path: metrics, share of the call path, source function and where it is."""
    headings = (*(f"{metric.name} excl" for metric in view.metrics), "share", "came from")
    listings: list[RenderableType] = []
    for path in view.inlined:
        rows = [
            (*_numbers(view, row.values, row.share, layout), f"{row.function}  {row.place}".rstrip())
            for row in path.rows
        ]
        title = _title(view, "", path_text(path.path), path.values, path.share, layout)
        listings.append(Group(*title, _listing_of(headings, rows, [False] * len(rows), _function_and_place, layout)))
    return listings


def _title(
    view: SourceView, place: str, name: str, values: Sequence[float], share: float, layout: Layout
) -> tuple[Text, Text]:
    sums = (
        clean(f"{metric.name} {quantity(value, metric.unit)}", layout.glyphs)
        for metric, value in zip(view.metrics, values, strict=True)
    )
    place, name = clean(place, layout.glyphs), clean(name, layout.glyphs)
    room = max(layout.width // 2, layout.width - cell_len(place))
    place = shorten(place, layout.width - min(room, cell_len(name)), layout.glyphs)
    return (
        Text(place + shorten(name, layout.width - cell_len(place), layout.glyphs), style="bold"),
        Text(f"{', '.join(sums)}, {percent(share)} of the run", style="dim", overflow="fold"),
    )


def _numbers(view: SourceView, values: Sequence[float], share: float, layout: Layout) -> tuple[str, ...]:
    texts = [clean(quantity(x, metric.unit), layout.glyphs) for x, metric in zip(values, view.metrics, strict=True)]
    return (*texts, percent(share))


def _beginning(text: str, width: int, glyphs: Glyphs) -> str:
    """Return as much of a source line as fits."""
    if cell_len(text) <= width:
        return text
    cut = Text(text)
    cut.truncate(width - len(glyphs.ellipsis))
    return cut.plain + glyphs.ellipsis


def _function_and_place(text: str, width: int, glyphs: Glyphs) -> str:
    """Return `solve(double*)  (solve.cpp)` with a shorter name of the function."""
    name, gap, place = text.rpartition("  ")
    return shorten(name, max(_NARROWEST, width - cell_len(gap + place)), glyphs) + gap + place if name else text


def _listing_of(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    hot: Sequence[bool],
    cut: Callable[[str, int, Glyphs], str],
    layout: Layout,
) -> Table:
    """Return a table whose last column takes the room that is left; `cut` makes it fit."""
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
        text = _beginning(cut(clean(row[last], layout.glyphs), room, layout.glyphs), room, layout.glyphs)
        table.add_row(*(Text(cell) for cell in row[:last]), Text(text), style="bold red" if is_hot else None)
    return table
