# SPDX-License-Identifier: Apache-2.0
"""The console of the command line: it determines the width, colours and characters that the output supports."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from typing import TextIO

from quipu.modeling.limits import whole_number
from quipu.modeling.printable import printable
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from .glyphs import ASCII, UNICODE, Layout

_NARROWEST = 60
_PLAIN_WIDTH, _LEAST_PLAIN_WIDTH = 120, 80


class _Console(Console):
    """A console that removes control sequences of terminals from all texts, and writes only its own colours."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


def console_for(stream: TextIO, environment: Mapping[str, str] = os.environ) -> Console:
    """Return a console of rich for a stream.

    A terminal determines the width itself. For a file or a pipe, the width is the variable COLUMNS, at least 80
    (default 120), and there are no colours. NO_COLOR (https://no-color.org) and TERM=dumb disable colours, too.
    """
    terminal = stream.isatty()
    columns = whole_number(environment.get("COLUMNS", ""), 5)
    width = None
    if not terminal:
        width = max(_LEAST_PLAIN_WIDTH, columns) if columns else _PLAIN_WIDTH
    return _Console(
        file=stream,
        width=width,
        no_color=True if environment.get("NO_COLOR") or not terminal else None,
        force_terminal=terminal,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
        legacy_windows=False,
    )


def layout_of(console: Console) -> Layout:
    """Return the width and the characters for views on a console: ASCII only, unless its encoding is Unicode."""
    encoding = (console.encoding or "").lower().replace("_", "-")
    return Layout(max(_NARROWEST, console.width), UNICODE if encoding.startswith("utf") else ASCII)


def plain_text(renderable: RenderableType, width: int = 200) -> str:
    """Return a view as plain text, without colours and without blanks at the ends of lines."""
    stream = io.StringIO()
    console = _Console(
        file=stream, width=width, no_color=True, force_terminal=False, highlight=False, markup=False, emoji=False
    )
    console.print(renderable)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())
