# SPDX-License-Identifier: Apache-2.0
"""Show the results of a check in a terminal: the expectations that do not hold, with their causes."""

from __future__ import annotations

from collections.abc import Sequence

from quipu.modeling.expectations import State
from rich.console import RenderableType
from rich.text import Text

from ..check_views import Cause, CheckResult, summary
from .glyphs import Layout, clean
from .names import shorten

_STYLES = {State.HELD: "green", State.FAILED: "bold red", State.UNDECIDED: "yellow"}
_LEAST_NAME = 30
_WIDTH = max(len(state.value) for state in State)


def check_lines(results: Sequence[CheckResult], layout: Layout, every: bool) -> list[RenderableType]:
    """Return a paragraph for each result that does not hold, and a summary of all results.

    every: also return a paragraph for each result that holds.
    """
    shown: list[RenderableType] = []
    said: set[Cause] = set()
    for one in results:
        if one.held and not every:
            continue
        text = Text(overflow="fold")
        text.append(f"{one.state.value:<{_WIDTH}}", style=_STYLES[one.state])
        rule = clean(one.rule + (f" ({one.name})" if one.name else ""), layout.glyphs)
        room = max(_LEAST_NAME, layout.width - _WIDTH - len(rule) - 4)
        text.append(f"  {shorten(clean(one.path, layout.glyphs), room, layout.glyphs)}", style="bold")
        text.append(f"  {rule}")
        text.append(f"\n{'':<{_WIDTH}}  {clean(one.message, layout.glyphs)}")
        for cause in one.causes:
            if cause not in said:
                text.append(f"\n{'':<{_WIDTH}}    {clean(cause.text, layout.glyphs)}", style="dim")
        if repeated := sum(cause in said for cause in one.causes):
            text.append(
                f"\n{'':<{_WIDTH}}    and {repeated} {'lines' if repeated > 1 else 'line'} as above", style="dim"
            )
        said |= set(one.causes)
        shown.append(text)
    good = all(one.held for one in results)
    shown.append(Text(summary(results), style="green" if good else "bold red"))
    return shown
