# SPDX-License-Identifier: Apache-2.0
"""Executions of count classes per call path: counters of all ranks, added up by what the pass says of them.

executions(call path, class) = sum of share × row over the terms of the class, where row 0 is the visits and row i the
counter i of the function, modulo 2^64. Each program or library is read once; ranks that counted the same rows on the
same call paths share the work of finding out which class each belongs to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import CallTree, IntArray
from quipu.modeling.metrics import WEIGHTED

from ..archive.run import ClassCounts, CountClass, SourceLine
from ..profile.reader import ProcessProfile
from ..source.classes import CountedFunction, SourcePrograms
from .shard import OUTSIDE

if TYPE_CHECKING:
    from ..archive.run import RunArchive

Words = NDArray[np.uint64]
_LARGEST = np.uint64((1 << 63) - 1)
_MOST_PLANS = 64  # that are kept: ranks of a program are of few kinds


@dataclass(frozen=True, eq=False)
class _Plan:
    """How the entries of a process become executions of classes: gathered, times share, added up from `begin` on."""

    entry: IntArray
    share: Words
    begin: IntArray
    key: IntArray

    def executions(self, values: Words) -> Words:
        """Return the executions that belong to `key`."""
        return np.add.reduceat(values[self.entry] * self.share, self.begin) if self.begin.size else values[:0]


class ClassSums:
    """Adds up the executions of classes, rank by rank."""

    def __init__(self, tree: CallTree, programs: SourcePrograms) -> None:
        """tree: the call paths of the run."""
        self._programs = programs
        self._tree = tree
        self._paths = {
            (int(parent), tree.regions[region].name): path
            for path, (parent, region) in enumerate(zip(tree.parent.tolist(), tree.region.tolist(), strict=True))
        }
        self._functions: list[CountedFunction] = []
        self._numbers: dict[int, int] = {}
        self._first = [0]  # the number of the first class of each function, and how many there are
        self._plans: dict[bytes, _Plan] = {}
        self._names: tuple[str, ...] = ()
        self._key = np.zeros(0, dtype=np.int64)  # call path × 2^32 + class
        self._total, self._lowest, self._highest = (np.zeros(0, dtype=np.uint64) for _ in range(3))
        self._ranks = 0

    def add_rank(self, profiles: Iterable[ProcessProfile]) -> None:
        """Take in the processes of one rank; those whose counters were not kept say nothing."""
        pieces = [self._of_process(profile) for profile in profiles]
        known = [piece for piece in pieces if piece is not None]
        key, values = self._key[:0], self._total[:0]
        if len(known) == 1:
            ((key, values),) = known
        elif known:
            key = np.concatenate([piece[0] for piece in known])
            values = np.concatenate([piece[1] for piece in known])
            key, inverse = np.unique(key, return_inverse=True)
            values, parts = np.zeros(key.size, dtype=np.uint64), values
            np.add.at(values, inverse, parts)
        values = np.where(values > _LARGEST, np.uint64(0), values)  # a killed process may lack some of its counters
        if not np.array_equal(key, self._key):
            self._widen(key)
            place = np.searchsorted(self._key, key)
            values, parts = np.zeros(self._key.size, dtype=np.uint64), values
            values[place] = parts
        self._total += values
        self._lowest = np.minimum(self._lowest, values) if self._ranks else values
        self._highest = np.maximum(self._highest, values)
        self._ranks += 1

    def result(self) -> ClassCounts | None:
        """Return the executions of all classes; None if no program describes any."""
        if not self._key.size:
            return None
        self._key, number = self._key, self._key & 0xFFFFFFFF
        used, number = np.unique(number, return_inverse=True)
        renumbered = np.full(self._first[-1] + 1, -1, dtype=np.int64)  # the last one stands for -1
        renumbered[used] = np.arange(used.size)
        lines: dict[SourceLine, int] = {}
        classes: list[CountClass] = []
        place_class, place_line, effort = [], [], []
        for function, first in zip(self._functions, self._first, strict=False):
            for index, entry in enumerate(function.classes):
                if renumbered[first + index] >= 0:
                    within = entry.within + first if entry.within >= 0 else -1
                    classes.append(replace(entry, within=int(renumbered[within])))
            of_line = np.array([lines.setdefault(line, len(lines)) for line in function.lines], dtype=np.int64)
            here = renumbered[function.place_class + first]
            place_class.append(here[here >= 0])
            place_line.append(of_line[function.place_line[here >= 0]])
            effort.append(function.effort[here >= 0])
        table = np.concatenate([np.zeros((0, WEIGHTED), dtype=np.uint64), *effort]).view(np.int64)
        return ClassCounts(
            callpath=self._key >> 32,
            number=number,
            total=np.minimum(self._total, _LARGEST).astype(np.int64),
            lowest=self._lowest.astype(np.int64),
            highest=self._highest.astype(np.int64),
            classes=tuple(classes),
            place_class=np.concatenate(place_class),
            place_line=np.concatenate(place_line),
            lines=tuple(lines),
            effort=dict(zip(self._names, np.ascontiguousarray(table.T), strict=True)),
        )

    def _widen(self, key: IntArray) -> None:
        """Make room for classes that no rank before had executed."""
        wider = np.union1d(self._key, key)
        place = np.searchsorted(wider, self._key)
        for name in ("_total", "_lowest", "_highest"):
            values = np.zeros(wider.size, dtype=np.uint64)
            values[place] = getattr(self, name)
            setattr(self, name, values)
        self._key = wider

    def _of_process(self, profile: ProcessProfile) -> tuple[IntArray, Words] | None:
        """Return the keys, ascending, and executions of one process."""
        kept = profile.counters
        if kept is None or len(kept.names) != WEIGHTED or (self._names and kept.names != self._names):
            return None
        self._names = kept.names
        function = np.full(len(kept.regions), -1, dtype=np.int64)
        for index, (region, weights) in enumerate(zip(kept.regions, kept.weights, strict=True)):
            named = (region.name, region.file, region.line)
            found = self._programs.find(profile.attributes, profile.started_epoch_ns, named, weights)
            if found is not None:
                function[index] = self._number(found)
        path = self._path_of_nodes(profile)
        asked = (function[kept.region], path[kept.node], kept.row)
        known = sha256(np.concatenate(asked).tobytes()).digest()
        if known not in self._plans:
            if len(self._plans) == _MOST_PLANS:
                self._plans.pop(next(iter(self._plans)))
            self._plans[known] = self._planned(*asked)
        plan = self._plans[known]
        return plan.key, plan.executions(kept.value)

    def _number(self, function: CountedFunction) -> int:
        number = self._numbers.setdefault(id(function), len(self._functions))
        if number == len(self._functions):
            self._functions.append(function)
            self._first.append(self._first[-1] + len(function.classes))
        return number

    def _planned(self, function: IntArray, path: IntArray, row: IntArray) -> _Plan:
        """Return which terms of which classes the entries of a process are for."""
        entries, shares, keys = [], [], []
        use = np.flatnonzero((function >= 0) & (path >= 0))
        order = use[np.argsort(function[use], kind="stable")]
        bounds = np.searchsorted(function[order], np.arange(len(self._functions) + 1))
        for number in np.flatnonzero(np.diff(bounds)).tolist():
            described, here = self._functions[number], order[bounds[number] : bounds[number + 1]]
            by_row = np.argsort(described.term_row, kind="stable")
            sorted_rows = described.term_row[by_row]
            first = np.searchsorted(sorted_rows, row[here])
            length = np.searchsorted(sorted_rows, row[here] + 1) - first
            entry = np.repeat(here, length)
            term = np.arange(entry.size) - np.repeat(np.cumsum(length) - length, length) + np.repeat(first, length)
            term = by_row[term]
            entries.append(entry)
            shares.append(described.share[term])
            keys.append((path[entry] << 32) + self._first[number] + described.term_class[term])
        if not entries:
            nothing = np.zeros(0, dtype=np.int64)
            return _Plan(nothing, np.zeros(0, dtype=np.uint64), nothing, nothing)
        entry, share, key = np.concatenate(entries), np.concatenate(shares), np.concatenate(keys)
        order = np.argsort(key, kind="stable")
        key = key[order]
        begin = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        return _Plan(entry[order], share[order], begin, key[begin])

    def _path_of_nodes(self, profile: ProcessProfile) -> IntArray:
        """Return the call path of each node, -1 for those that the tree does not have."""
        path: list[int] = []
        for parent, region in zip(profile.parent.tolist(), profile.region.tolist(), strict=True):
            above = path[parent] if parent >= 0 and profile.region[parent] != 0 else -1
            name = profile.regions[region].name if region else OUTSIDE.name
            path.append(self._paths.get((above, name), -1))
        return np.array(path, dtype=np.int64)


def with_classes(
    archive: RunArchive, profiles: Iterable[tuple[int, ProcessProfile]], programs: SourcePrograms
) -> RunArchive:
    """Return a run that is about to be written with the executions of its classes, if its programs describe them.

    profiles: rank and profile, in order of rank, of all that the run is made of, read with their counters. What is
    missing is among its problems.
    """
    sums = ClassSums(archive.tree, programs)
    for _, group in groupby(profiles, key=lambda entry: entry[0]):
        sums.add_rank(profile for _, profile in group)
    metadata = replace(archive.metadata, problems=(*archive.metadata.problems, *programs.problems))
    return replace(archive, classes=sums.result(), metadata=metadata)
