# SPDX-License-Identifier: Apache-2.0
"""Show source lines with their effort, and call paths with the source functions that cause their effort."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..source_view import ListedRow, Listing, SourceView
from ..text import percent, quantity
from .glyphs import Glyphs, Layout, clean
from .names import shorten

_GAP = 2
_HOT = 0.1  # lines with at least this share of the run are highlighted
_NARROWEST = 16  # smallest width of the column of sources


def source_listing(view: SourceView, layout: Layout) -> list[RenderableType]:
    """Return one table per source function: line number, metrics, share of the first metric in the run, source text."""
    headings = ("line", *(metric.name for metric in view.metrics), "share", "source")
    listings: list[RenderableType] = []
    for function in view.listings:
        rows = [
            (line.name or layout.glyphs.ellipsis, *_numbers(view, line, layout), line.text.expandtabs(4))
            for line in function.rows
        ]
        hot = [line.share >= _HOT for line in function.rows]
        listings.append(Group(*_title(view, function, layout), _table(headings, rows, hot, _beginning, layout)))
    return listings


def inlined_listing(view: SourceView, layout: Layout) -> list[RenderableType]:
    """Return one table per call path: metrics, share of the first metric in the call path, source function, file."""
    headings = (*(f"{metric.name} excl" for metric in view.metrics), "share", "came from")
    listings: list[RenderableType] = []
    for path in view.listings:
        rows = [(*_numbers(view, row, layout), f"{row.name}  {row.text}".rstrip()) for row in path.rows]
        table = _table(headings, rows, [False] * len(rows), _function_and_place, layout)
        listings.append(Group(*_title(view, path, layout), table))
    return listings


def _title(view: SourceView, listing: Listing, layout: Layout) -> tuple[Text, Text]:
    place = clean(f"{listing.place}: " if listing.place else "", layout.glyphs)
    name = clean(listing.name, layout.glyphs)
    room = max(layout.width // 2, layout.width - cell_len(place))
    place = shorten(place, layout.width - min(room, cell_len(name)), layout.glyphs)
    sums = zip(view.metrics, _quantities(view, listing.values, layout), strict=True)
    values = ", ".join(f"{clean(metric.name, layout.glyphs)} {text}" for metric, text in sums)
    return (
        Text(place + shorten(name, layout.width - cell_len(place), layout.glyphs), style="bold"),
        Text(f"{values}, {percent(listing.share)} of the run", style="dim", overflow="fold"),
    )


def _quantities(view: SourceView, values: Sequence[float], layout: Layout) -> list[str]:
    return [clean(quantity(x, metric.unit), layout.glyphs) for x, metric in zip(values, view.metrics, strict=True)]


def _numbers(view: SourceView, row: ListedRow, layout: Layout) -> list[str]:
    if row.values is None:
        return [""] * (len(view.metrics) + 1)
    return [*_quantities(view, row.values, layout), percent(row.share)]


def _beginning(text: str, width: int, glyphs: Glyphs) -> str:
    """Return the beginning of a source line in at most `width` columns."""
    if cell_len(text) <= width:
        return text
    cut = Text(text)
    cut.truncate(width - len(glyphs.ellipsis))
    return cut.plain + glyphs.ellipsis


def _function_and_place(text: str, width: int, glyphs: Glyphs) -> str:
    """Return a text such as `solve(double*)  (solve.cpp)` in at most `width` columns, with a shorter function name."""
    name, gap, place = text.rpartition("  ")
    return shorten(name, max(_NARROWEST, width - cell_len(gap + place)), glyphs) + gap + place if name else text


def _table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    hot: Sequence[bool],
    cut: Callable[[str, int, Glyphs], str],
    layout: Layout,
) -> Table:
    """Return a table whose last column uses the remaining width.

    hot: whether to highlight each row. cut: shortens a text of the last column to a width.
    """
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_edge=False)
    room = layout.width
    for at, heading in enumerate(headings[:-1]):
        width = max([cell_len(heading), *(cell_len(row[at]) for row in rows)])
        room -= width + _GAP
        table.add_column(heading, justify="right", no_wrap=True, width=width)
    room = max(_NARROWEST, room)
    table.add_column(headings[-1], no_wrap=True, width=room)
    for row, is_hot in zip(rows, hot, strict=True):
        text = _beginning(cut(clean(row[-1], layout.glyphs), room, layout.glyphs), room, layout.glyphs)
        table.add_row(*map(Text, row[:-1]), Text(text), style="bold red" if is_hot else None)
    return table
