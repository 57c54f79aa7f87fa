# SPDX-License-Identifier: Apache-2.0
"""Data types of a run archive: one repetition of one configuration."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.catalogue import NOT_MEASURED
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import CallTree, FloatArray, IntArray, Metric
from quipu.modeling.notebook import data_frame, summary_html

from .metadata import RunMetadata
from .sketch import Sketches

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class RunValues:
    """Exclusive values per call path, rank and thread: one row per combination that occurs.

    callpath, rank, thread: int64 of shape (rows,); metrics: name → (rows,), float64 seconds or int64.
    """

    callpath: IntArray
    rank: IntArray
    thread: IntArray
    metrics: Mapping[str, NDArray[np.int64] | NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class RankStatistics:
    """One metric over the ranks of a run, per call path; every array has shape (call paths,).

    The threads of a rank are combined first. A rank without the call path counts as 0. A rank with an unknown value
    (NaN) is left out.

    - ranks: the number of ranks with the call path.
    - std: standard deviation of the population.
    - min_rank, max_rank: the lowest ranks with the smallest and the largest value; -1 if no value is known.
    - sketches: the distribution over the ranks; None if the archive contains the values of all ranks.
    """

    ranks: IntArray
    sum: FloatArray
    min: FloatArray
    max: FloatArray
    mean: FloatArray
    std: FloatArray
    min_rank: IntArray
    max_rank: IntArray
    sketches: Sketches | None = None

    def quantile(self, q: float) -> FloatArray:
        """Return the q-quantile over the ranks, shape (call paths,); NaN where no value is known.

        The relative error is at most 2^(level - 5), with the level of the sketch. Raises ModelingError if there are no
        sketches.
        """
        if self.sketches is None:
            raise ModelingError(
                "this run contains the values of all ranks and no sketches: compute the quantile from the values"
            )
        return self.sketches.quantile(q, self.min, self.max)


@dataclass(frozen=True)
class SourceLine:
    """A source line and the function that contains it in the source, even if it was inlined into another function.

    function: display name. name: linker name. line: 0 if unknown.
    """

    function: str
    name: str
    file: str
    line: int


@dataclass(frozen=True, eq=False)
class SourceEffort:
    """Exclusive effort of source lines by call path, summed over ranks and threads.

    callpath, line (index into `lines`): int64 of shape (rows,), sorted, each pair once. metrics: name → int64 (rows,).
    """

    callpath: IntArray
    line: IntArray
    lines: tuple[SourceLine, ...]
    metrics: Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class CountClass:
    """Blocks of one function that are always executed equally often, such as the body of a loop or a side of a branch.

    within: index of the enclosing class, -1: none. depth: number of enclosing loops in the function. calls: linker
    names of the functions that the blocks call, in order.
    """

    within: int
    depth: int
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """Execution counts of each class on each call path, and the effort of one execution.

    - callpath, number (index into `classes`), total (sum over ranks and threads), lowest and highest (over ranks):
      int64 of shape (rows,), sorted by call path and class, each pair once. A rank without the call path counts as 0.
    - place_class (index into `classes`), place_line (index into `lines`): int64 of shape (places,), sorted by class.
    - effort: name of a metric → int64 (places,): the effort of one execution of the class at this line.

    The effort of a call path is the sum of total × effort, modulo 2^64.
    """

    callpath: IntArray
    number: IntArray
    total: IntArray
    lowest: IntArray
    highest: IntArray
    classes: tuple[CountClass, ...]
    place_class: IntArray
    place_line: IntArray
    lines: tuple[SourceLine, ...]
    effort: Mapping[str, NDArray[np.int64]]

    def source(self) -> SourceEffort:
        """Return the effort of source lines."""
        first = np.searchsorted(self.place_class, self.number)
        length = np.searchsorted(self.place_class, self.number + 1) - first
        row = np.repeat(np.arange(length.size), length)
        place = np.arange(row.size) - np.repeat(np.cumsum(length) - length, length) + np.repeat(first, length)
        path, line = self.callpath[row], self.place_line[place]
        order = np.lexsort((line, path))
        path, line, row, place = path[order], line[order], row[order], place[order]
        begin = np.flatnonzero(np.append(True, (path[1:] != path[:-1]) | (line[1:] != line[:-1]))[: path.size])
        with np.errstate(over="ignore"):
            products = {name: self.total[row] * values[place] for name, values in self.effort.items()}
            sums = {
                name: np.add.reduceat(values, begin) if begin.size else values[:0] for name, values in products.items()
            }
        some = np.zeros(begin.size, dtype=bool)
        for values in sums.values():
            some |= values != 0
        metrics = {name: np.maximum(values[some], 0) for name, values in sums.items()}
        return SourceEffort(path[begin][some], line[begin][some], self.lines, metrics)


@dataclass(frozen=True, eq=False)
class CommunicationMatrix:
    """Messages and one-sided transfers between ranks, without collective operations.

    sender, receiver, bytes, messages: int64 of shape (pairs,), sorted by sender and receiver, each pair once. A sender
    or receiver of -1 is a rank of another MPI_COMM_WORLD, or one of the partners beyond the limit that a rank records
    separately.
    """

    sender: IntArray
    receiver: IntArray
    bytes: IntArray
    messages: IntArray


@dataclass(frozen=True, eq=False)
class IterationTable:
    """Iterations of phases that the program marked: one row per phase, span of iterations and metric.

    All arrays have shape (rows,); the spans of a phase are in the order of the run.

    - first, last: numbers of the first and the last iteration of the span, as given by the program.
    - iterations: the largest number of iterations of a rank in the span.
    - ranks: the number of ranks with iterations in the span.
    - mean, max: inclusive value of one iteration, over the ranks (seconds, or the unit of the metric).
    """

    phase: list[str]
    first: IntArray
    last: IntArray
    iterations: IntArray
    ranks: IntArray
    metric: list[str]
    mean: FloatArray
    max: FloatArray


@dataclass(frozen=True, eq=False)
class DelayTable:
    """Waiting time in an operation that a call path of a late rank or thread caused, summed over all that waited.

    Ranks wait in MPI operations; threads of a rank wait in OpenMP barriers. All arrays have shape (rows,) and are
    sorted; each combination of operation, cause, rank and thread occurs once. Waiting without an attributed cause is
    not contained.

    - operation: the call path in which others waited. cause: the call path of the late thread, -1 if none was found.
    - rank, thread: the late thread.
    - seconds: waiting time.
    """

    operation: IntArray
    cause: IntArray
    rank: IntArray
    thread: IntArray
    seconds: FloatArray


@dataclass(frozen=True)
class RankRecord:
    """One rank of a run. state: "ended", "flushed" (unfinished), "running" (killed before its end) or "no profile"."""

    rank: int
    host: str = ""
    pid: int = 0
    affinity: str = ""
    max_rss_bytes: int = 0
    voluntary_switches: int = 0
    involuntary_switches: int = 0
    state: str = "ended"


@dataclass(frozen=True, eq=False)
class RunArchive:
    """One run, either read from an archive or to be written.

    values: None if only the statistics were read, or if the archive contains no values (`metadata.rank_columns`).
    classes, communication, iterations, delays: only for writing; `read_classes`, `read_communication`,
    `read_iterations` and `read_delays` read these tables.
    """

    metadata: RunMetadata
    tree: CallTree
    values: RunValues | None
    statistics: Mapping[str, RankStatistics]
    ranks: tuple[RankRecord, ...]
    path: Path = Path()
    classes: ClassCounts | None = None
    communication: CommunicationMatrix | None = None
    iterations: IterationTable | None = None
    delays: DelayTable | None = None

    @property
    def metrics(self) -> dict[str, Metric]:
        """Return the metrics of the run by name."""
        return {metric.name: metric for metric in self.metadata.metrics}

    def frame(self, *metrics: str) -> pandas.DataFrame:
        """Return a table of exclusive values with one column per metric (default: all metrics).

        The index is call path, rank and thread, with the call paths from `tree.unique_labels`. Raises ModelingError for
        an unknown metric and for a run with statistics only, EnvironmentProblem without pandas.
        """
        if self.values is None:
            raise ModelingError(f"{self.path} has statistics over ranks only: use statistics_frame(METRIC)")
        chosen = [self._known(name) for name in metrics] or list(self.metrics)
        paths = np.array(self.tree.unique_labels, dtype=object)[self.values.callpath]
        index = [("callpath", paths), ("rank", self.values.rank), ("thread", self.values.thread)]
        return data_frame(index, {name: self.values.metrics[name] for name in chosen})

    def statistics_frame(self, metric: str) -> pandas.DataFrame:
        """Return the statistics of a metric over ranks (`RankStatistics`) as columns, indexed by call path.

        Raises ModelingError for an unknown metric, EnvironmentProblem without pandas.
        """
        found = self.statistics[self._known(metric)]
        columns = ("ranks", "sum", "min", "max", "mean", "std", "min_rank", "max_rank")
        paths = np.array(self.tree.unique_labels, dtype=object)
        return data_frame([("callpath", paths)], {name: getattr(found, name) for name in columns})

    def _known(self, metric: str) -> str:
        if metric not in self.metrics:
            known = ", ".join(self.metrics) or "none"
            raise ModelingError(NOT_MEASURED(subject=self.path, metric=metric, known=known))
        return metric

    def __repr__(self) -> str:
        paths = f"{len(self.tree)} call paths on {self.metadata.ranks} ranks"
        return f"<Run {self.path.name}: {paths}; metrics {', '.join(self.metrics)}>"

    def _repr_html_(self) -> str:
        metadata = self.metadata
        facts = [
            ("command", shlex.join(metadata.command)),
            *((name, f"{value:g}") for name, value in metadata.parameters.items()),
            ("repetition", str(metadata.repetition)),
            ("ranks", str(metadata.ranks)),
            ("call paths", str(len(self.tree))),
            *([] if metadata.seconds is None else [("wall time", f"{metadata.seconds:.3f} s")]),
            *([("exit code", str(metadata.exit_code))] if metadata.exit_code else []),
            *(("problem", problem) for problem in metadata.problems),
        ]
        return summary_html(f"Run {self.path.name}", facts, metadata.metrics)
