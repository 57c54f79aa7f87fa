# SPDX-License-Identifier: Apache-2.0
"""Data of the views of source lines: effort of lines and of inlined functions of one run."""

from __future__ import annotations

from dataclasses import dataclass

from quipu.modeling.experiment import Metric


@dataclass(frozen=True)
class ListedRow:
    """A line of a source function, or a source function in a call path.

    - name: the number of a line ("?" if unknown, empty for a gap between lines), or the name of a function.
    - text: the source text of a line, or the file of a function.
    - values: one per metric; None for a line without effort, which is shown as context, and for a gap.
    - share: of the first metric, relative to the whole run (for a line) or to the call path (for a function).
    """

    name: str
    text: str = ""
    values: tuple[float, ...] | None = None
    share: float = 0.0


@dataclass(frozen=True)
class Listing:
    """A source function with its lines, or a call path with the source functions that cause its exclusive effort.

    name: the function or call path. place: the file of the function; empty for a call path. values: sums over the rows,
    one per metric. share: of the first metric, relative to the whole run.
    """

    name: str
    place: str
    values: tuple[float, ...]
    share: float
    rows: tuple[ListedRow, ...]


@dataclass(frozen=True)
class SourceView:
    """Effort of a run by source lines, or by call paths and source functions. metrics: the shown metrics."""

    metrics: tuple[Metric, ...]
    listings: tuple[Listing, ...]
