# SPDX-License-Identifier: Apache-2.0
"""Create tables that fit the width of a terminal.

Columns of texts are elastic: they become narrower if necessary. The kind of their heading (headings.py) determines how:
names are shortened but stay distinct, formulas lose their last terms, and remarks are wrapped.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Literal

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .glyphs import UNICODE, Glyphs, Layout, clean, elide, wrapped
from .headings import FormulaTitle, NameTitle, RemarkTitle
from .headings import least_width as title_width
from .names import shorten_apart

Rows = Sequence[Sequence[str]]

_GAP = 2  # columns of the terminal between two columns of a table
_INDENT = "  "
_MOST_LINES = 3  # a remark with this number of lines or more is printed below its row
_NEXT_TERM = re.compile(r" [+-] ")
_COEFFICIENT = re.compile(r"[\d.]+(e[+-]?\d+)?(?=[·*/])")
_LEAST_TEXT = 12  # least width of an elastic column with a plain heading


def elastic(
    headings: Sequence[str],
    rows: Rows,
    elastic: Collection[int],
    right: Collection[int],
    layout: Layout,
    optional: Sequence[int] = (),
) -> RenderableType:
    """Return a table that fits the width of the layout. Columns without any text are left out.

    elastic, right, optional: indices of the columns that may become narrower, are aligned to the right, and may be
    omitted.

    - A remark that would need three lines or more is printed below its row, over the whole width.
    - If the column of names would be too narrow, each name is in a separate line above the other columns.
    - If the table is still too wide, the optional columns are omitted one by one, and the last line names them.
    """
    cleaned = [[clean(text, layout.glyphs) for text in row] for row in rows]
    hidden = []
    for at in optional:
        if least_width(headings, cleaned, elastic, beside=False) + len(_INDENT) > layout.width:
            hidden += [headings[at]] if any(row[at] for row in cleaned) else []
            cleaned = [[*row[:at], "", *row[at + 1 :]] for row in cleaned]
    return with_left_out(_fitting(headings, cleaned, elastic, right, layout), hidden, layout)


def with_left_out(table: RenderableType, hidden: Sequence[str], layout: Layout) -> RenderableType:
    """Return a table with a line below it that names the omitted columns."""
    if not hidden:
        return table
    line = wrapped(f"hidden columns: {', '.join(hidden)} (a wider terminal or --json shows them)", layout.width)
    return Group(table, Text(line, style="dim"))


def _fitting(
    headings: Sequence[str], cleaned: Rows, elastic: Collection[int], right: Collection[int], layout: Layout
) -> RenderableType:
    """Return the table of `elastic` for rows in which all columns are shown."""
    shown = _shown(headings, cleaned)
    name = next((at for at in shown if at in elastic and isinstance(headings[at], NameTitle)), None)
    if name is not None and least_width(headings, cleaned, elastic) > layout.width:
        return _stacked(headings, cleaned, name, elastic, right, layout)
    widths = _widths(headings, cleaned, shown, elastic, layout.width)
    below = [[at for at in shown if _is_long_remark(headings[at], row[at], widths[at])] for row in cleaned]
    if not any(below):
        return _grid(headings, cleaned, widths, right, layout)
    beside = [
        ["" if at in left else text for at, text in enumerate(row)] for row, left in zip(cleaned, below, strict=True)
    ]
    widths = _widths(headings, beside, _shown(headings, beside), elastic, layout.width)
    parts: list[RenderableType] = []
    fitted, begin = _fitted_rows(headings, beside, widths, layout), 0
    for number, (row, left) in enumerate(zip(cleaned, below, strict=True), start=1):
        if left or number == len(cleaned):
            parts.append(_table(headings, fitted[begin:number], widths, right, header=begin == 0))
            parts += [_remark(headings[at], row[at], layout.width, _INDENT * 2) for at in left]
            begin = number
    return Group(*parts)


def _is_long_remark(heading: str, text: str, width: int) -> bool:
    return isinstance(heading, RemarkTitle) and wrapped(text, width).count("\n") >= _MOST_LINES


def _remark(heading: str, text: str, width: int, indent: str) -> Text:
    """Return a remark after its heading, wrapped to a width."""
    return Text(textwrap.indent(wrapped(f"{heading}: {text}", width - len(indent)), indent))


def least_width(headings: Sequence[str], rows: Rows, elastic: Collection[int], *, beside: bool = True) -> int:
    """Return the smallest width of a table. beside: whether names are in a column, and not in separate lines."""
    shown = [at for at in _shown(headings, rows) if beside or not isinstance(headings[at], NameTitle)]
    return sum(_needed(headings, rows, at, elastic) for at in shown) + _GAP * (len(shown) - 1)


def _shown(headings: Sequence[str], rows: Rows) -> list[int]:
    """Return the indices of the columns with any text."""
    every = range(len(headings))
    return [at for at in every if any(row[at] for row in rows)] or list(every)


def _natural(heading: str, rows: Rows, at: int) -> int:
    """Return the width that the texts of a column need."""
    return max([cell_len(heading), *(cell_len(row[at]) for row in rows)])


def _needed(headings: Sequence[str], rows: Rows, at: int, elastic: Collection[int]) -> int:
    """Return the smallest width of a column."""
    natural = _natural(headings[at], rows, at)
    return min(natural, title_width(headings[at], _LEAST_TEXT)) if at in elastic else natural


def _widths(
    headings: Sequence[str], rows: Rows, shown: Sequence[int], elastic: Collection[int], width: int
) -> dict[int, int]:
    """Return the width of each shown column. The narrowest elastic columns get the remaining width first."""
    widths = {at: _needed(headings, rows, at, elastic) for at in shown}
    natural = {at: _natural(headings[at], rows, at) for at in shown if at in elastic}
    room = width - sum(widths.values()) - _GAP * (len(shown) - 1)
    while room > 0 and (growing := [at for at in natural if widths[at] < natural[at]]):
        narrowest = min(growing, key=lambda at: widths[at])
        widths[narrowest] += 1
        room -= 1
    return widths


def _stacked(
    headings: Sequence[str],
    rows: Rows,
    name: int,
    elastic: Collection[int],
    right: Collection[int],
    layout: Layout,
) -> Group:
    """Return a table with a line for each name, followed by the other columns, indented.

    Equal names in successive rows are printed once. Columns without a heading before the names (numbers of rows) stay
    before them. If the other columns do not fit, remarks follow below, over the whole width. name: index of the column
    of names.
    """
    places = [at for at in range(name) if not headings[at]]
    rest = [at for at in _shown(headings, rows) if at != name and at not in places]
    lead = [max((cell_len(row[at]) for row in rows), default=0) for at in places]
    before = ["".join(f"{row[at]:>{wide}}  " for at, wide in zip(places, lead, strict=True)) for row in rows]
    indent = " " * (sum(lead) + 2 * len(lead)) or _INDENT
    names = shorten_apart([row[name] for row in rows], layout.width - len(before[0]) if rows else 0, layout.glyphs)
    room = layout.width - len(indent)
    natural = sum(_natural(headings[at], rows, at) for at in rest) + _GAP * (len(rest) - 1)
    below = [at for at in rest if isinstance(headings[at], RemarkTitle) and natural > room]
    rest = [at for at in rest if at not in below]
    widths = _widths(headings, rows, rest, elastic, room)
    shown: list[RenderableType] = [
        Text(("" if not places else indent) + headings[name], style="bold"),
        _grid(headings, (), widths, right, layout, indent),
    ]
    keyed = zip(before, names, rows, strict=True)
    for (first, title), group in groupby(keyed, key=lambda one: one[:2]):
        shown.append(Text(first + title))
        for *_, row in group:
            if any(row[at] for at in rest):
                shown.append(_grid(headings, [row], widths, right, layout, indent, header=False))
            shown += [_remark(headings[at], row[at], layout.width, indent + _INDENT) for at in below if row[at]]
    return Group(*shown)


def _grid(
    headings: Sequence[str],
    rows: Rows,
    widths: dict[int, int],
    right: Collection[int],
    layout: Layout,
    indent: str = "",
    *,
    header: bool = True,
) -> Table:
    """Return a table whose texts are shortened to the widths of the columns (by index)."""
    return _table(headings, _fitted_rows(headings, rows, widths, layout), widths, right, indent, header=header)


def _fitted_rows(headings: Sequence[str], rows: Rows, widths: dict[int, int], layout: Layout) -> list[tuple[str, ...]]:
    """Return the rows with the texts of the columns in `widths`, shortened to these widths."""
    columns = [_fitted(headings[at], [row[at] for row in rows], width, layout) for at, width in widths.items()]
    return list(zip(*columns, strict=True))


def _table(
    headings: Sequence[str],
    fitted: Rows,
    widths: dict[int, int],
    right: Collection[int],
    indent: str = "",
    *,
    header: bool = True,
) -> Table:
    """Return a table of texts that already fit the widths of the columns."""
    table = Table(
        box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_edge=False, show_header=header
    )
    if indent:
        table.add_column("", no_wrap=True, width=len(indent) - _GAP)
    for at, width in widths.items():
        side: Literal["right", "left"] = "right" if at in right else "left"
        table.add_column(headings[at], justify=side, no_wrap=not isinstance(headings[at], RemarkTitle), width=width)
    for texts in fitted:
        table.add_row(*([""] if indent else []), *map(Text, texts))
    return table


def _fitted(heading: str, texts: list[str], width: int, layout: Layout) -> list[str]:
    """Return the texts of a column, shortened to a width in the way that its heading determines."""
    if isinstance(heading, NameTitle):
        return shorten_apart(texts, width, layout.glyphs)
    if isinstance(heading, FormulaTitle):
        return [first_terms(text, width, layout.glyphs) for text in texts]
    if isinstance(heading, RemarkTitle):
        return [wrapped(text, width) for text in texts]
    return [elide(text, width, layout.glyphs) for text in texts]


def first_terms(formula: str, width: int, glyphs: Glyphs = UNICODE) -> str:
    """Return the first terms of a formula in at most `width` columns, such as `3·n³ + …`.

    The terms of a formula are in descending order of growth. If the first term does not fit, its coefficient is omitted
    (`…·n³ + …`); if this does not fit either, the text is shortened.
    """
    if cell_len(formula) <= width:
        return formula
    ends = [found.start() for found in _NEXT_TERM.finditer(formula)]
    rest = f" + {glyphs.ellipsis}" if ends else ""
    growth = _COEFFICIENT.sub(glyphs.ellipsis, formula[: ends[0] if ends else None], count=1)
    shorter = [*(f"{formula[:end]} + {glyphs.ellipsis}" for end in reversed(ends)), growth + rest, growth]
    fitting = (text for text in shorter if cell_len(text) <= width)
    return next(fitting, growth[: max(0, width - len(glyphs.ellipsis))] + glyphs.ellipsis)
