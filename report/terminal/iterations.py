# SPDX-License-Identifier: Apache-2.0
"""Show the iterations of a phase as a table."""

from __future__ import annotations

import numpy as np
from quipu.modeling.metrics import metric_named
from rich.console import RenderableType

from ..iteration_views import MOST_ROWS, IterationsView
from ..text import factor, quantity
from .columns import elastic
from .glyphs import Layout

_MOST_COLUMNS = 6
_MOST_FACTS = 4


def iteration_facts(view: IterationsView) -> list[tuple[str, str]]:
    """Return (label, text) pairs for the head of the view."""
    facts = [("phase", f"{view.phase}, {int(view.iterations.sum())} iterations")]
    changes = [f"{name} {factor(times)}" for name, times in list(view.changes().items())[:_MOST_FACTS]]
    if changes and view.iterations.size > 1:
        facts.append(("change", f"from the first to the last quarter of the iterations: {', '.join(changes)}"))
    return facts


def iteration_table(view: IterationsView, layout: Layout) -> RenderableType:
    """Return a table with a row for each span of iterations: values of one iteration, mean over ranks.

    The last column is the time of one iteration on the slowest rank.
    """
    shown = view.grouped(MOST_ROWS)
    names = list(shown.mean)[:_MOST_COLUMNS]
    slowest = "time" in names and view.ranks > 1
    headings = ["iterations", *names, *(["slowest rank"] if slowest else [])]
    rows = []
    for at in range(shown.iterations.size):
        first, last = int(shown.first[at]), int(shown.last[at])
        cells = [_cell(shown.mean[name][at], name) for name in names]
        cells += [_cell(shown.max["time"][at], "time")] if slowest else []
        rows.append((str(first) if shown.iterations[at] == 1 else f"{first} .. {last}", *cells))
    return elastic(headings, rows, (), range(len(headings)), layout, tuple(range(len(names), 1, -1)))


def _cell(value: float, metric: str) -> str:
    return "" if np.isnan(value) else quantity(value, metric_named(metric).unit)
