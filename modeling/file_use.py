# SPDX-License-Identifier: Apache-2.0
"""Find uses of files that do not scale: small writes, one rank that writes for all ranks, a file per rank.

A group of files contains all files whose names differ only in numbers, such as out.#. It is a region of the kind FILE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .analysis import Analysis
from .evaluation import evaluate
from .experiment import Experiment, FloatArray, RegionKind

SMALL_WRITE = 4096
"""Writes with a smaller mean size (bytes) are small. It is the size of a page of memory: an operating system writes at
least one page, and a parallel file system locks at least one page."""
MANY_WRITES = 100
"""Small writes are reported if a rank has at least this number of them."""
_ONE_RANK = 0.9  # one rank writes for all ranks if it writes at least this share of all bytes …
_LEAST_BYTES = 1e5  # … and at least this number of bytes
_PER_RANK = 0.5  # ranks have separate files if each opens at least this number on average


class FileUse(Enum):
    """A use of a group of files that does not scale."""

    SMALL_WRITES = "small writes"
    ONE_WRITER = "one rank writes for all"
    FILE_PER_RANK = "files per rank"


@dataclass(frozen=True)
class FileFinding:
    """A use of a group of files from one call path that does not scale.

    - path, label: number and text of the call path. group: name of the group of files.
    - at_target: predicted number at the target in `unit`: writes of a rank, bytes of all ranks, or files that all ranks
      open; NaN without a prediction.
    - measured: the same number at the largest measured configuration.
    - size: mean bytes of a write at this configuration; NaN for files per rank.
    """

    path: int
    label: str
    group: str
    use: FileUse
    measured: float
    at_target: float
    unit: str
    size: float


def file_uses(
    experiment: Experiment, largest: Experiment, analysis: Analysis, ranks: str | None, point: Mapping[str, float]
) -> tuple[FileFinding, ...]:
    """Return the uses of files that do not scale, the largest predicted numbers first; () if files were not counted.

    - experiment, largest: the experiment with means over the ranks, and with maxima over the ranks.
    - analysis: the models of `experiment`.
    - ranks: the parameter that is the number of ranks; with None, only small writes are found.
    - point: the target, values by parameter.
    """
    if "file_writes" not in experiment.values or not experiment.configurations:
        return ()
    # The largest configuration: with most ranks, then with the largest values of the parameters in their order.
    names = sorted(experiment.parameters, key=lambda name: name != ranks)
    columns = [experiment.points[:, experiment.parameters.index(name)] for name in names]
    where = int(np.lexsort(columns[::-1])[-1])
    place = _Place(experiment, largest, where, ranks)
    found = []
    for path in range(len(experiment.tree)):
        region = experiment.tree.region_of(path)
        if region.kind is RegionKind.FILE and not experiment.tree.start_and_end[path]:
            found += [_finding(place, analysis, path, use, point) for use in FileUse if place.shows(path, use)]
    return tuple(sorted(found, key=lambda one: (-one.at_target if np.isfinite(one.at_target) else 0.0, one.label)))


@dataclass(frozen=True)
class _Place:
    """The values at one configuration: means and maxima over the ranks, medians over repetitions."""

    experiment: Experiment
    other: Experiment
    where: int
    parameter: str | None

    @property
    def ranks(self) -> float:
        if self.parameter is None:
            return 1.0
        return float(self.experiment.points[self.where, self.experiment.parameters.index(self.parameter)])

    def mean(self, metric: str, path: int) -> float:
        return _value(self.experiment.values[metric], path, self.where)

    def largest(self, metric: str, path: int) -> float:
        return _value(self.other.values[metric], path, self.where)

    def size(self, path: int) -> float:
        """Return the mean bytes of a write; NaN without writes."""
        writes = self.mean("file_writes", path)
        return self.mean("file_bytes_written", path) / writes if writes > 0 else np.nan

    def shows(self, path: int, use: FileUse) -> bool:
        """Return whether a call path uses a group of files in this way."""
        if use is FileUse.SMALL_WRITES:
            return self.largest("file_writes", path) >= MANY_WRITES and self.size(path) < SMALL_WRITE
        if self.ranks < 2:
            return False
        if use is FileUse.ONE_WRITER:
            one, all_ranks = (
                self.largest("file_bytes_written", path),
                self.mean("file_bytes_written", path) * self.ranks,
            )
            return one >= max(_LEAST_BYTES, _ONE_RANK * all_ranks)
        in_files_of_ranks = "#" in self.experiment.tree.region_of(path).display
        return in_files_of_ranks and self.mean("files_opened", path) >= _PER_RANK


def _value(values: FloatArray, path: int, where: int) -> float:
    known = values[path, where][np.isfinite(values[path, where])]
    return float(np.median(known)) if known.size else 0.0


def _finding(place: _Place, analysis: Analysis, path: int, use: FileUse, point: Mapping[str, float]) -> FileFinding:
    tree = place.experiment.tree
    metric, unit = {
        FileUse.SMALL_WRITES: ("file_writes", "writes of a rank"),
        FileUse.ONE_WRITER: ("file_bytes_written", "B"),
        FileUse.FILE_PER_RANK: ("files_opened", "files"),
    }[use]
    there = float(evaluate(analysis, point, metric).exclusive[path].value)
    all_ranks = 1.0 if use is FileUse.SMALL_WRITES else point.get(place.parameter or "", 1.0)
    measured = place.mean(metric, path) * (1.0 if use is FileUse.SMALL_WRITES else place.ranks)
    size = np.nan if use is FileUse.FILE_PER_RANK else place.size(path)
    return FileFinding(
        path, tree.label(path), tree.region_of(path).display, use, measured, there * all_ranks, unit, float(size)
    )
