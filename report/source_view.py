"""What the views of source lines show: effort of lines and of inlined functions, made from one run."""

from __future__ import annotations

from dataclasses import dataclass

from quipu.modeling.experiment import Metric


@dataclass(frozen=True)
class ListedLine:
    """A line of a listing. number 0: lines were left out here. values: one per metric; None: no effort, for context."""

    number: int
    text: str
    values: tuple[float, ...] | None = None
    share: float = 0.0


@dataclass(frozen=True)
class ListedFunction:
    """A source function with its lines. values: sums over its lines; share: of the whole run, of the first metric."""

    function: str
    file: str
    values: tuple[float, ...]
    share: float
    lines: tuple[ListedLine, ...]


@dataclass(frozen=True)
class InlinedRow:
    """Effort of a call path that came from one source function. share: of the call path, of the first metric."""

    function: str
    place: str
    values: tuple[float, ...]
    share: float


@dataclass(frozen=True)
class InlinedPath:
    """A call path with the source functions that its own effort came from.

    path: displayed region names from the root. values: altogether; share: of the whole run, of the first metric.
    """

    path: tuple[str, ...]
    values: tuple[float, ...]
    share: float
    rows: tuple[InlinedRow, ...]


@dataclass(frozen=True)
class SourceView:
    """Effort of a run by source lines, or by call paths and source functions; `metrics` are the columns."""

    metrics: tuple[Metric, ...]
    functions: tuple[ListedFunction, ...] = ()
    inlined: tuple[InlinedPath, ...] = ()
