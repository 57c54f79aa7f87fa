"""Data types of a run archive: one repetition of one configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import CallTree, FloatArray, IntArray, Metric

from .metadata import RunMetadata
from .sketch import Sketches


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
    source: about to be written; `read_source` reads it.
    """

    metadata: RunMetadata
    tree: CallTree
    values: RunValues | None
    statistics: Mapping[str, RankStatistics]
    ranks: tuple[RankRecord, ...]
    path: Path = Path()
    source: SourceEffort | None = None

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics of the run by name."""
        return {metric.name: metric for metric in self.metadata.metrics}
