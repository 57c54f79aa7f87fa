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
    """Exclusive values per call path, rank and thread, with one row for each combination that occurs.

    callpath, rank, thread: int64 of shape (rows,). metrics: name → array of shape (rows,), float64 for metrics in
    seconds, otherwise int64.
    """

    callpath: IntArray
    rank: IntArray
    thread: IntArray
    metrics: Mapping[str, NDArray[np.int64] | NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class RankStatistics:
    """Statistics of one metric over the ranks of a run, per call path; every array has shape (call paths,).

    The threads of a rank are combined first. A rank without the call path has the value 0. A rank with an unknown value
    (NaN) is left out.

    - ranks: the number of ranks with the call path.
    - sum, min, max, mean, std: in the unit of the metric. std: standard deviation of the population (its divisor is
      the number of known values).
    - min_rank, max_rank: the ranks with the smallest and the largest value, the first of equal ones; -1 if no value is
      known.
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
        """Return the q-quantile (0 <= q <= 1) over the ranks, shape (call paths,); NaN where no value is known.

        The relative error is at most 2^(level - 5), where level is the level of the sketch (`Sketches`). Raises
        ModelingError if there are no sketches.
        """
        if self.sketches is None:
            raise ModelingError(
                "this run contains the values of all ranks and no sketches: compute the quantile from the values"
            )
        return self.sketches.quantile(q, self.min, self.max)


@dataclass(frozen=True)
class SourceLine:
    """A source line, and the function that contains this line in the source (not the function it was inlined into).

    function: display name of the function. name: its linker name. file: path. line: number from 1, 0 if unknown.
    """

    function: str
    name: str
    file: str
    line: int


@dataclass(frozen=True, eq=False)
class SourceEffort:
    """Exclusive effort of source lines by call path, summed over ranks and threads.

    - callpath, line (index into `lines`): int64 of shape (rows,), sorted by call path and line, each pair once.
    - metrics: name → int64 of shape (rows,).
    """

    callpath: IntArray
    line: IntArray
    lines: tuple[SourceLine, ...]
    metrics: Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class CountClass:
    """Basic blocks of one function that are always executed equally often, such as the body of a loop.

    within: index of the enclosing class (for example, of the enclosing loop), -1 if there is none. depth: number of
    enclosing loops in the function. calls: linker names of the functions that the blocks call, in order.
    """

    within: int
    depth: int
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """The number of executions of each class on each call path, and the effort of one execution.

    - callpath, number, total, lowest, highest: int64 of shape (rows,), sorted by call path and class, each pair once.
      number: index into `classes`. total: executions, summed over ranks and threads. lowest, highest: smallest and
      largest number of executions of a rank; a rank without the call path counts as 0.
    - place_class (index into `classes`), place_line (index into `lines`): int64 of shape (places,), sorted by class. A
      place is a source line with blocks of the class.
    - effort: name of a metric → int64 of shape (places,): the part of the effort of one execution of the class that
      belongs to this line.

    The effort of a call path is the sum of total × effort over its classes and their places, modulo 2^64.
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
        """Return the effort of source lines by call path; lines without effort are left out."""
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

    sender, receiver, bytes, messages: int64 of shape (pairs,), sorted by sender and receiver, each pair once. -1 as
    sender or receiver stands for ranks of another MPI_COMM_WORLD, and for the partners of a rank beyond the number that
    it records separately.
    """

    sender: IntArray
    receiver: IntArray
    bytes: IntArray
    messages: IntArray


@dataclass(frozen=True, eq=False)
class IterationTable:
    """Values of the iterations of phases (loops that the program marked, such as the time loop).

    Each row belongs to one phase, one span of consecutive iterations, and one metric. All arrays have shape (rows,).
    The spans of a phase are in the order of the run.

    - first, last: numbers of the first and the last iteration of the span, as given by the program.
    - iterations: largest number of iterations of a rank in the span.
    - ranks: number of ranks with iterations in the span.
    - mean, max: mean and maximum over the ranks of the inclusive value of one iteration, in the unit of the metric.
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
    """Waiting times, by the operation that waited and the late thread that caused the waiting.

    Ranks wait in MPI operations; threads of a rank wait in OpenMP barriers. All arrays have shape (rows,) and are
    sorted; each combination of operation, cause, rank and thread occurs once. The table does not contain waiting
    without a known late thread.

    - operation: the call path in which other ranks or threads waited.
    - cause: the call path in which the late thread was late; -1 if no call path was found.
    - rank, thread: the late thread.
    - seconds: waiting time, summed over all ranks or threads that waited.
    """

    operation: IntArray
    cause: IntArray
    rank: IntArray
    thread: IntArray
    seconds: FloatArray


@dataclass(frozen=True)
class RankRecord:
    """One rank of a run.

    affinity: the processors to which it was bound, as text. max_rss_bytes: peak memory. voluntary_switches,
    involuntary_switches: numbers of context switches. state: the state of its profile: "ended", "flushed" (written
    before the end of the process), "running" (the process was killed) or "no profile".
    """

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

    - values: None if only the statistics were read, or if the archive contains no values of single ranks
      (`metadata.rank_columns`).
    - statistics: by name of the metric.
    - classes, communication, iterations, delays: only set in an archive to be written. Of a stored archive, read them
      with `read_classes`, `read_communication`, `read_iterations` and `read_delays`.
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

        The index is call path (text, from `tree.unique_labels`), rank and thread. Raises ModelingError for an unknown
        metric and for an archive without values of single ranks, EnvironmentProblem without pandas.
        """
        if self.values is None:
            raise ModelingError(f"{self.path} has statistics over ranks only: use statistics_frame(METRIC)")
        chosen = [self._known(name) for name in metrics] or list(self.metrics)
        paths = np.array(self.tree.unique_labels, dtype=object)[self.values.callpath]
        index = [("callpath", paths), ("rank", self.values.rank), ("thread", self.values.thread)]
        return data_frame(index, {name: self.values.metrics[name] for name in chosen})

    def statistics_frame(self, metric: str) -> pandas.DataFrame:
        """Return the statistics of a metric over the ranks (`RankStatistics`) as columns, indexed by call path.

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
