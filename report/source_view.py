# SPDX-License-Identifier: Apache-2.0
"""What the views of source lines show: effort of lines and of inlined functions, made from one run."""

from __future__ import annotations

from dataclasses import dataclass

from quipu.modeling.experiment import Metric


@dataclass(frozen=True)
class ListedRow:
    """A line of a source function, or a source function in a call path.

    name: of the line its number, "?" if it has none, empty where lines were left out. text: the source, or where the
    function is. values: one per metric; None: no effort, for context. share: of the first metric, of the whole run for
    a line, of the call path for a function.
    """

    name: str
    text: str = ""
    values: tuple[float, ...] | None = None
    share: float = 0.0


@dataclass(frozen=True)
class Listing:
    """A source function with its lines, or a call path with the source functions that its own effort came from.

    place: the file of the function. values: altogether; share: of the whole run, of the first metric.
    """

    name: str
    place: str
    values: tuple[float, ...]
    share: float
    rows: tuple[ListedRow, ...]


@dataclass(frozen=True)
class SourceView:
    """Effort of a run by source lines, or by call paths and source functions; `metrics` are the columns."""

    metrics: tuple[Metric, ...]
    listings: tuple[Listing, ...]
