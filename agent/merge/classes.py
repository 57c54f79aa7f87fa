# SPDX-License-Identifier: Apache-2.0
"""Compute the executions of count classes per call path, from the counters of all ranks.

A count class is a set of basic blocks of a function that are executed equally often. A program counts only some blocks.
The compiler pass describes each class by terms (row, share), from which its executions follow:

executions(call path, class) = sum of share × count[row] over the terms of the class, modulo 2^64

Row 0 is the number of visits, and row i is counter i of the function. Processes with the same arrangement of counters
share one plan, which lists the terms of all classes. The work per process is then one multiplication and one addition
per term.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import IntArray
from quipu.modeling.metrics import WEIGHTED

from ..archive.run import ClassCounts, CountClass, RunArchive, SourceLine
from ..profile.counters import CounterEntries, KeptCounters
from ..profile.ranks import WantsCounters
from ..profile.reader import ProcessProfile
from ..source.classes import CountedFunction, SourcePrograms, files_of

Words = NDArray[np.uint64]
_LARGEST = np.uint64((1 << 63) - 1)
_OTHER_METRICS = "no counts of loops of some ranks, whose programs count other metrics than those of the first ranks"


@dataclass(frozen=True, eq=False)
class ClassCells:
    """The number of executions of each class on each call path, over several ranks.

    - functions: the functions with classes.
    - callpath, number: int64 of shape (cells,), sorted, each pair once. number: the class; classes are numbered
      consecutively through all `functions`.
    - total, lowest, highest: uint64 of shape (cells,): sum, minimum and maximum over ranks.
    - ranks: number of ranks.
    - names: names of the metrics whose effort the classes contain.
    - problems: texts for the user.
    """

    functions: tuple[CountedFunction, ...]
    callpath: IntArray
    number: IntArray
    total: Words
    lowest: Words
    highest: Words
    ranks: int
    names: tuple[str, ...]
    problems: tuple[str, ...]

    def moved(self, paths: IntArray) -> ClassCells:
        """Return the executions with the call paths of another tree.

        paths: index of each call path in the other tree; -1: the call path is left out.
        """
        callpath = paths[self.callpath]
        order = np.lexsort((self.number, callpath))
        return self._of(order[callpath[order] >= 0], callpath)

    def joined(self, other: ClassCells) -> ClassCells:
        """Return the combination with the cells of other ranks, whose call paths are indices in the same tree.

        If the metrics of both differ, the ranks of `other` are left out, and a problem says so.
        """
        problems = tuple(dict.fromkeys((*self.problems, *other.problems)))
        if self.names and other.names and self.names != other.names:
            return replace(self, problems=tuple(dict.fromkeys((*problems, _OTHER_METRICS))))
        known = {function.origin: number for number, function in enumerate(self.functions)}
        functions = list(self.functions)
        of_other = np.zeros(len(other.functions), dtype=np.int64)
        for index, function in enumerate(other.functions):
            of_other[index] = known.setdefault(function.origin, len(functions))
            if of_other[index] == len(functions):
                functions.append(function)
        first, first_of_other = _first_classes(functions), _first_classes(other.functions)
        function_of_class = np.repeat(np.arange(len(other.functions)), np.diff(first_of_other))
        shift = first[of_other] - first_of_other[:-1]
        moved = other.number + shift[function_of_class[other.number]]
        own_key, its_key = _keys(self.callpath, self.number), _keys(other.callpath, moved)
        key = np.union1d(own_key, its_key)
        own, its = self._spread(own_key, key), other._spread(its_key, key)
        lowest = np.minimum(own[1], its[1])
        if not self.ranks or not other.ranks:
            lowest = own[1] if self.ranks else its[1]
        return ClassCells(
            functions=tuple(functions),
            callpath=key >> 32,
            number=key & 0xFFFFFFFF,
            total=own[0] + its[0],
            lowest=lowest,
            highest=np.maximum(own[2], its[2]),
            ranks=self.ranks + other.ranks,
            names=self.names or other.names,
            problems=problems,
        )

    def result(self) -> ClassCounts | None:
        """Return the executions in the form in which an archive stores them; None if there are none."""
        if not self.callpath.size:
            return None
        first = _first_classes(self.functions)
        used, number = np.unique(self.number, return_inverse=True)
        renumbered = np.full(int(first[-1]) + 1, -1, dtype=np.int64)  # last element: no class (-1)
        renumbered[used] = np.arange(used.size)
        lines: dict[SourceLine, int] = {}
        classes: list[CountClass] = []
        place_class, place_line, effort = [], [], []
        for function, begin in zip(self.functions, first.tolist(), strict=False):
            for index, entry in enumerate(function.classes):
                if renumbered[begin + index] >= 0:
                    within = entry.within + begin if entry.within >= 0 else -1
                    classes.append(replace(entry, within=int(renumbered[within])))
            of_line = np.array([lines.setdefault(line, len(lines)) for line in function.lines], dtype=np.int64)
            here = renumbered[function.place_class + begin]
            place_class.append(here[here >= 0])
            place_line.append(of_line[function.place_line[here >= 0]])
            effort.append(function.effort[here >= 0])
        table = np.concatenate([np.zeros((0, WEIGHTED), dtype=np.uint64), *effort]).view(np.int64)
        return ClassCounts(
            callpath=self.callpath,
            number=number,
            total=np.minimum(self.total, _LARGEST).astype(np.int64),
            lowest=self.lowest.astype(np.int64),
            highest=self.highest.astype(np.int64),
            classes=tuple(classes),
            place_class=np.concatenate(place_class),
            place_line=np.concatenate(place_line),
            lines=tuple(lines),
            effort=dict(zip(self.names, np.ascontiguousarray(table.T), strict=True)),
        )

    def _of(self, rows: IntArray, callpath: IntArray) -> ClassCells:
        columns = {name: getattr(self, name)[rows] for name in ("number", "total", "lowest", "highest")}
        return replace(self, callpath=callpath[rows], **columns)

    def _spread(self, own: IntArray, key: IntArray) -> list[Words]:
        """Return total, lowest and highest for each element of `key`; 0 where `own` (the keys of self) lacks it."""
        place = np.searchsorted(key, own)
        wide = []
        for column in (self.total, self.lowest, self.highest):
            wide.append(np.zeros(key.size, dtype=np.uint64))
            wide[-1][place] = column
        return wide


def joined_classes(parts: Iterable[tuple[ClassCells | None, IntArray]]) -> ClassCells | None:
    """Return the combined cells of several sets of ranks; None if no set has cells.

    Each set comes with an array: the index of each of its call paths in the tree of the result; -1: the call path is
    left out.
    """
    found: ClassCells | None = None
    for cells, paths in parts:
        if cells is not None:
            moved = cells.moved(paths)
            found = moved if found is None else found.joined(moved)
    return found


def with_classes(archive: RunArchive, cells: ClassCells | None) -> RunArchive:
    """Return a run, which is not written yet, with the executions of its classes.

    The problems of the cells become problems of the run. cells: their call paths are indices in the tree of the run;
    None: no program describes classes.
    """
    if cells is None:
        return archive
    metadata = replace(archive.metadata, problems=(*archive.metadata.problems, *cells.problems))
    return replace(archive, classes=cells.result(), metadata=metadata)


def _first_classes(functions: Sequence[CountedFunction]) -> IntArray:
    """Return the number of the first class of each function, then the number of all classes; (functions + 1,)."""
    return np.cumsum([0, *(len(function.classes) for function in functions)], dtype=np.int64)


def _keys(callpath: IntArray, number: IntArray) -> IntArray:
    return (callpath << 32) + number


@dataclass(frozen=True, eq=False)
class _Arrangement:
    """The arrangement of counts, which one or more processes have.

    - files: files of the process that describe classes. written_since: the files that were modified after its start.
    - kept: its counters without values. entries: the position of each count.
    - function: for each region of `entries`, the index of the function with its classes; -1 if there is none.
    """

    files: tuple[str, ...]
    written_since: frozenset[str]
    kept: KeptCounters
    entries: CounterEntries
    function: IntArray


@dataclass(frozen=True, eq=False)
class _Plan:
    """The plan that converts the counts of a process to executions of classes.

    A term is entry (index of the count), and share (its factor). The terms are sorted by cell (call path and class).
    begin: index of the first term of each cell. key: the cell, as call path · 2^32 + class. path: the call path of
    each node of the process, for which the plan was made.
    """

    arrangement: _Arrangement
    path: IntArray
    entry: IntArray
    share: Words
    begin: IntArray
    key: IntArray

    def executions(self, values: Words) -> Words:
        """Return the executions of each cell in `key`. values: the counts of a process."""
        return np.add.reduceat(values[self.entry] * self.share, self.begin) if self.begin.size else values[:0]


@dataclass(frozen=True, eq=False)
class _Process:
    """A process whose programs describe classes.

    index: its index among all added processes. arrangement: None if it has no counters. value: its counts.
    """

    index: int
    rank: int
    arrangement: _Arrangement | None
    value: Words


class CountedProcesses:
    """Collects the counters of processes, in order of rank, until their call paths are known."""

    def __init__(self) -> None:
        """Create an empty collection."""
        self._programs = SourcePrograms()
        self._added = 0
        self._processes: list[_Process] = []
        self._arrangements: list[_Arrangement] = []
        self._functions: dict[tuple[str, int], int] = {}
        self._described: list[CountedFunction] = []
        self._names: tuple[str, ...] = ()

    @property
    def wants(self) -> WantsCounters:
        """Return a function of the attributes of a profile: whether to read the profile with its counters."""
        return self._programs.have_classes

    def add(self, rank: int, profile: ProcessProfile) -> None:
        """Add the next process. The processes of a rank must be added consecutively."""
        index, self._added = self._added, self._added + 1
        if not self._programs.have_classes(profile.attributes):
            return
        kept = profile.counters
        if kept is None or len(kept.names) != WEIGHTED or (self._names and kept.names != self._names):
            self._processes.append(_Process(index, rank, None, np.zeros(0, dtype=np.uint64)))
            return
        self._names = kept.names
        self._processes.append(_Process(index, rank, self._arrangement(profile, kept), kept.value))

    def cells(self, paths: Sequence[IntArray]) -> ClassCells | None:
        """Return the executions of all ranks; None if no program describes classes.

        paths: for each added process, the call path of each node of its profile.
        """
        if not self._processes:
            return None
        first = _first_classes(self._described)
        plans: list[_Plan] = []
        key, total = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
        lowest = highest = total
        ranks = 0
        for _, group in groupby(self._processes, key=lambda process: process.rank):
            pieces = []
            for process in group:
                if process.arrangement is not None:
                    plan = _plan_of(process.arrangement, paths[process.index], self._described, first, plans)
                    pieces.append((plan.key, plan.executions(process.value)))
            here, values = _added_up(pieces)
            # A negative number of executions: the profile of a killed process may lack some counters.
            values = np.where(values > _LARGEST, np.uint64(0), values)
            if here is not key and not np.array_equal(here, key):
                wider = np.union1d(key, here)
                total, lowest, highest = (_widened(column, key, wider) for column in (total, lowest, highest))
                values, key = _widened(values, here, wider), wider
            total = total + values
            lowest = np.minimum(lowest, values) if ranks else values
            highest = np.maximum(highest, values)
            ranks += 1
        return ClassCells(
            functions=tuple(self._described),
            callpath=key >> 32,
            number=key & 0xFFFFFFFF,
            total=total,
            lowest=lowest,
            highest=highest,
            ranks=ranks,
            names=self._names,
            problems=tuple(self._programs.problems),
        )

    def _arrangement(self, profile: ProcessProfile, kept: KeptCounters) -> _Arrangement:
        """Return the arrangement of the counts of a process, the same object as for an earlier process if equal."""
        files = files_of(profile.attributes)
        changed = self._programs.written_since(profile.attributes, profile.started_epoch_ns)
        for known in reversed(self._arrangements):
            if (known.files, known.written_since) == (files, changed) and kept.is_arranged_as(known.kept):
                return known
        entries = kept.entries()
        function = np.full(len(entries.regions), -1, dtype=np.int64)
        for index, (region, weights) in enumerate(zip(entries.regions, entries.weights, strict=True)):
            named = (region.name, region.file, region.line)
            found = self._programs.find(profile.attributes, changed, named, weights)
            if found is not None:
                function[index] = self._functions.setdefault(found.origin, len(self._described))
                if function[index] == len(self._described):
                    self._described.append(found)
        made = _Arrangement(files, changed, replace(kept, value=kept.value[:0]), entries, function)
        self._arrangements.append(made)
        return made


def _plan_of(
    arrangement: _Arrangement,
    path_of_node: IntArray,
    described: Sequence[CountedFunction],
    first: IntArray,
    plans: list[_Plan],
) -> _Plan:
    """Return the plan for the counts of a process: an existing plan of `plans`, or a new one, which is added to it.

    path_of_node: the call path of each node of the profile. described: the functions with classes. first: the result of
    `_first_classes` for `described`.
    """
    for known in reversed(plans):
        if known.arrangement is arrangement and np.array_equal(known.path, path_of_node):
            return known
    found = arrangement.entries
    function, path = arrangement.function[found.region], path_of_node[found.node]
    entries, shares, keys = [], [], []
    use = np.flatnonzero(function >= 0)
    order = use[np.argsort(function[use], kind="stable")]
    bounds = np.searchsorted(function[order], np.arange(len(described) + 1))
    for number in np.flatnonzero(np.diff(bounds)).tolist():
        own, here = described[number], order[bounds[number] : bounds[number + 1]]
        by_row = np.argsort(own.term_row, kind="stable")
        sorted_rows = own.term_row[by_row]
        begin = np.searchsorted(sorted_rows, found.row[here])
        length = np.searchsorted(sorted_rows, found.row[here] + 1) - begin
        entry = np.repeat(here, length)
        term = np.arange(entry.size) - np.repeat(np.cumsum(length) - length, length) + np.repeat(begin, length)
        term = by_row[term]
        entries.append(found.source[entry])
        shares.append(own.share[term])
        keys.append(_keys(path[entry], first[number] + own.term_class[term]))
    nothing = np.zeros(0, dtype=np.int64)
    key = np.concatenate([nothing, *keys])
    order = np.argsort(key, kind="stable")
    key = key[order]
    begin = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: key.size])
    share = np.concatenate([nothing.astype(np.uint64), *shares])
    entry = np.concatenate([nothing, *entries])
    made = _Plan(arrangement, path_of_node, entry[order], share[order], begin, key[begin])
    plans.append(made)
    return made


def _added_up(pieces: Sequence[tuple[IntArray, Words]]) -> tuple[IntArray, Words]:
    """Return the cells (keys) of all processes of a rank, ascending, and the sum of the executions for each cell."""
    if len(pieces) == 1:
        return pieces[0]
    none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    key = np.concatenate([none[0], *(piece[0] for piece in pieces)])
    parts = np.concatenate([none[1], *(piece[1] for piece in pieces)])
    key, inverse = np.unique(key, return_inverse=True)
    values = np.zeros(key.size, dtype=np.uint64)
    np.add.at(values, inverse, parts)
    return key, values


def _widened(values: Words, key: IntArray, wider: IntArray) -> Words:
    """Return the values for a larger set of keys; 0 for the keys in `wider` that `key` does not contain."""
    result = np.zeros(wider.size, dtype=np.uint64)
    result[np.searchsorted(wider, key)] = values
    return result
