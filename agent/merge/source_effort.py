# SPDX-License-Identifier: Apache-2.0
"""Effort of source lines per call path: counters of all ranks added up, times what the pass says of each line.

effort(call path, line) = visits × effort(line, row 0) + sum over i of counters[i] × effort(line, row i + 1), for each
region that counted on the call path, modulo 2^64. Programs and libraries are read once, ranks are added up before
lines come in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import CallTree, IntArray
from quipu.modeling.metrics import WEIGHTED

from ..archive.run import SourceEffort, SourceLine
from ..archive.tables import concatenated
from ..profile.effort import signed
from ..profile.reader import ProcessProfile
from ..source.lines import CountedFunction, SourcePrograms
from .shard import OUTSIDE

if TYPE_CHECKING:
    from ..archive.run import RunArchive

_COMPACT = 1 << 21  # entries held before they are added up
_CELLS = 1 << 21


class SourceSums:
    """Adds up the counters of the profiles of a run whose programs describe source lines."""

    def __init__(self, tree: CallTree, programs: SourcePrograms) -> None:
        """tree: the call paths of the run."""
        self._programs = programs
        self._paths = {
            (int(parent), tree.regions[region].name): path
            for path, (parent, region) in enumerate(zip(tree.parent.tolist(), tree.region.tolist(), strict=True))
        }
        self._functions: list[CountedFunction] = []
        self._numbers: dict[int, int] = {}
        self._entries: list[tuple[IntArray, NDArray[np.uint64]]] = []
        self._names: tuple[str, ...] = ()

    def add(self, profile: ProcessProfile) -> None:
        """Take in one process; does nothing if its counters were not kept."""
        kept = profile.counters
        if kept is None or len(kept.names) != WEIGHTED or (self._names and kept.names != self._names):
            return
        self._names = kept.names
        function = np.full(len(kept.regions), -1, dtype=np.int64)
        for index, (region, weights) in enumerate(zip(kept.regions, kept.weights, strict=True)):
            named = (region.name, region.file, region.line)
            found = self._programs.find(profile.attributes, profile.started_epoch_ns, named, weights)
            if found is not None:
                function[index] = self._numbers.setdefault(id(found), len(self._functions))
                if function[index] == len(self._functions):
                    self._functions.append(found)
        path = self._path_of_nodes(profile)
        use = (function[kept.region] >= 0) & (path[kept.node] >= 0)
        key = np.stack((function[kept.region[use]], path[kept.node[use]], kept.row[use]))
        self._entries.append((key, kept.value[use]))
        if sum(values.size for _, values in self._entries) > _COMPACT:
            self._entries = [self._added_up()]

    def result(self) -> SourceEffort | None:
        """Return the effort of source lines; None if no program describes any."""
        if not self._functions:
            return None
        key, values = self._added_up()
        numbers: dict[SourceLine, int] = {}
        paths, lines, efforts = [], [], []
        for index, function in enumerate(self._functions):
            begin, end = np.searchsorted(key[0], [index, index + 1])
            path, where = np.unique(key[1, begin:end], return_inverse=True)
            counts = np.zeros((path.size, function.counters + 1), dtype=np.uint64)
            fits = key[2, begin:end] <= function.counters
            counts[where[fits], key[2, begin:end][fits]] = values[begin:end][fits]
            of_line = np.array([numbers.setdefault(line, len(numbers)) for line in function.lines], dtype=np.int64)
            present, effort = _by_line(function, counts)
            paths.append(np.repeat(path, present.size))
            lines.append(np.tile(of_line[present], path.size))
            efforts.append(effort.reshape(-1, WEIGHTED))
        return _combined(paths, lines, efforts, tuple(numbers), self._names)

    def _path_of_nodes(self, profile: ProcessProfile) -> IntArray:
        """Return the call path of each node, -1 for those that the tree does not have."""
        path: list[int] = []
        for parent, region in zip(profile.parent.tolist(), profile.region.tolist(), strict=True):
            above = path[parent] if parent >= 0 and profile.region[parent] != 0 else -1
            name = profile.regions[region].name if region else OUTSIDE.name
            path.append(self._paths.get((above, name), -1))
        return np.array(path, dtype=np.int64)

    def _added_up(self) -> tuple[IntArray, NDArray[np.uint64]]:
        """Return all entries, each key (function, path, row) once, in order."""
        key = np.concatenate([key for key, _ in self._entries], axis=1)
        values = np.concatenate([values for _, values in self._entries])
        order = np.lexsort((key[2], key[1], key[0]))
        key, values = key[:, order], values[order]
        first = np.flatnonzero(np.append(True, np.any(key[:, 1:] != key[:, :-1], axis=0))[: values.size])
        return key[:, first], np.add.reduceat(values, first) if first.size else values


def _by_line(function: CountedFunction, counts: NDArray[np.uint64]) -> tuple[IntArray, NDArray[np.uint64]]:
    """Return the lines of a function that have terms, and effort of shape (paths, lines, WEIGHTED)."""
    present, first = np.unique(function.line, return_index=True)
    step = max(1, _CELLS // max(1, function.row.size))
    pieces = [np.zeros((0, present.size, WEIGHTED), dtype=np.uint64)]
    for begin in range(0, counts.shape[0] if present.size else 0, step):
        terms = counts[begin : begin + step][:, function.row, None] * function.effort[None]
        pieces.append(np.add.reduceat(terms, first, axis=1))
    return present, np.concatenate(pieces)


def _combined(
    paths: list[IntArray],
    lines: list[IntArray],
    efforts: list[NDArray[np.uint64]],
    names: tuple[SourceLine, ...],
    metrics: tuple[str, ...],
) -> SourceEffort:
    """Return one row per call path and line that has effort."""
    path, line = concatenated(paths, np.int64), concatenated(lines, np.int64)
    effort = np.concatenate([np.zeros((0, WEIGHTED), dtype=np.uint64), *efforts])
    some = effort.any(axis=1)
    order = np.flatnonzero(some)[np.lexsort((line[some], path[some]))]
    path, line, effort = path[order], line[order], effort[order]
    first = np.flatnonzero(np.append(True, (path[1:] != path[:-1]) | (line[1:] != line[:-1]))[: path.size])
    if first.size:
        effort = np.add.reduceat(effort, first, axis=0)
    counts = signed(effort, np.ones(WEIGHTED, dtype=bool), [])
    return SourceEffort(path[first], line[first], names, dict(zip(metrics, counts.T, strict=True)))


def with_source(archive: RunArchive, profiles: Iterable[ProcessProfile], programs: SourcePrograms) -> RunArchive:
    """Return a run that is about to be written with the effort of its source lines, if its programs describe them.

    profiles: those that the run is made of, read with their counters. What is missing is among its problems.
    """
    sums = SourceSums(archive.tree, programs)
    for profile in profiles:
        sums.add(profile)
    metadata = replace(archive.metadata, problems=(*archive.metadata.problems, *programs.problems))
    return replace(archive, source=sums.result(), metadata=metadata)
