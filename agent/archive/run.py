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

    Threads of a rank are combined first. A rank without the call path counts as 0; `ranks` says how many have it.
    A rank whose value is unknown (NaN) is left out. std is that of the population. min_rank and max_rank are the
    lowest ranks that have the smallest and the largest value, -1 where nothing is known. sketches: the distribution
    over the ranks; None when an archive was read that has the values of all ranks instead.
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
        """Return the q-quantile over the ranks, shape (call paths,); NaN where nothing is known.

        Right to 2^(level - 5) of the value, level being that of the sketch. Raises ModelingError without sketches.
        """
        if self.sketches is None:
            raise ModelingError("this run has the values of all ranks: take the quantile of those")
        return self.sketches.quantile(q, self.min, self.max)


@dataclass(frozen=True)
class SourceLine:
    """A line of source text in the function that a person wrote it in, also where it was inlined into another.

    function: for people; name: its linker name; line: 0 if unknown.
    """

    function: str
    name: str
    file: str
    line: int


@dataclass(frozen=True, eq=False)
class SourceEffort:
    """Effort of source lines, exclusive per call path, ranks and threads added up.

    callpath, line (index into `lines`): int64 of shape (rows,), sorted, each pair once; metrics: name → int64 (rows,).
    """

    callpath: IntArray
    line: IntArray
    lines: tuple[SourceLine, ...]
    metrics: Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class CountClass:
    """Blocks of one function that its flow graph executes equally often: the body of a loop, a way of a branch.

    within: index of the class around it, -1: none; depth: loops of the function around it; calls: linker names of the
    functions that its blocks call, in order.
    """

    within: int
    depth: int
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """How often each class was executed on each call path, and what one execution does.

    callpath, number (index into `classes`), total (over ranks and threads), lowest and highest (of a rank): int64 of
    shape (rows,), sorted by call path and class, each pair once. A rank without the call path has executed it 0 times.
    place_class (index into `classes`), place_line (index into `lines`): int64 of shape (places,), sorted by class;
    effort: name of a metric → int64 (places,), what one execution of the class does at that line. A call path does
    total × effort, added up, modulo 2^64.
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
    """What ranks sent to each other in messages, and put to and got from each other in one-sided operations.

    sender, receiver (ranks, or -1: a rank of another MPI_COMM_WORLD, or one beyond those that a rank keeps apart),
    bytes, messages: int64 of shape (pairs,), sorted by sender and receiver, each pair once. Collective operations are
    left out.
    """

    sender: IntArray
    receiver: IntArray
    bytes: IntArray
    messages: IntArray


@dataclass(frozen=True, eq=False)
class IterationTable:
    """Iterations of phases that the program marked: one row per phase, span of iterations and metric.

    first, last: the numbers of the first and the last iteration of the span, as the program gave them. iterations: how
    many of them a rank had at most. ranks: how many had any. mean, max: of one iteration, over the ranks (seconds, or
    the unit of the metric); inclusive. All have shape (rows,); spans of a phase are in the order of the run.
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
    """How long others waited in an operation because of a call path of a thread, summed over those that waited.

    The others are ranks in operations of MPI, and threads of the rank in barriers of OpenMP. operation, cause (call
    paths; cause -1: no cause was found), rank and thread (the late one), seconds: shape (rows,), sorted, each
    operation, cause, rank and thread once. Waiting that was not accounted is left out.
    """

    operation: IntArray
    cause: IntArray
    rank: IntArray
    thread: IntArray
    seconds: FloatArray


@dataclass(frozen=True)
class RankRecord:
    """One process of a run. state: "ended", "flushed", "running" (killed before its end) or "no profile"."""

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
    """One run, read or about to be written.

    values: None if only the statistics were asked for, or if the archive has no more (`metadata.rank_columns`).
    classes, communication, iterations, delays: about to be written; `read_classes`, `read_communication`,
    `read_iterations` and `read_delays` read them.
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
        """The metrics of the run by name."""
        return {metric.name: metric for metric in self.metadata.metrics}

    def frame(self, *metrics: str) -> pandas.DataFrame:
        """Return exclusive values of these metrics, or of all, as columns, indexed by call path, rank and thread.

        Call paths are `tree.unique_labels`; rows are the combinations that occur. Raises ModelingError for an unknown
        metric and for a run that has statistics only, EnvironmentProblem without pandas.
        """
        if self.values is None:
            raise ModelingError(f"{self.path} has statistics over ranks only: take statistics_frame(METRIC)")
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
