# SPDX-License-Identifier: Apache-2.0
"""Combine the count classes of several runs to the count classes of one experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from quipu.modeling.class_vectors import ClassVectors, Place
from quipu.modeling.experiment import IntArray

from ..archive.class_tables import read_classes
from ..archive.run import ClassCounts, RunArchive

_MOST_PATHS = 1 << 31


@dataclass(frozen=True, eq=False)
class StoredClasses:
    """The classes of run archives; they are read at the first use.

    paths: for each archive, the call path of the experiment of each of its call paths. configuration: of each archive.

    Classes have no common numbers in different runs. A class is identified by its effort at each source line, its loops
    and its calls. Classes of one call path that are equal in all of these are combined: their executions are summed.
    """

    archives: Sequence[RunArchive]
    paths: Sequence[IntArray]
    configuration: Sequence[int]

    @cached_property
    def vectors(self) -> ClassVectors | None:
        """Return the classes of all runs; None if a run has no classes. Raises FormatError like `read_classes`."""
        known: dict[tuple[object, ...], int] = {}
        first: list[tuple[ClassCounts, int]] = []  # first occurrence of each class
        keys, totals, columns, around = [], [], [], []
        for archive, path, column in zip(self.archives, self.paths, self.configuration, strict=True):
            counts = read_classes(archive.path, archive.metadata, archive.tree)
            if counts is None:
                return None
            number = np.zeros(len(counts.classes) + 1, dtype=np.int64)
            for index, identity in enumerate(_identities(counts)):
                number[index] = known.setdefault(identity, len(known))
                if number[index] == len(first):
                    first.append((counts, index))
            number[-1] = -1
            within = np.array([entry.within for entry in counts.classes], dtype=np.int64)
            keys.append(path[counts.callpath] * _MOST_PATHS + number[counts.number])
            around.append(number[within[counts.number]])
            totals.append(counts.total.astype(np.float64))
            columns.append(np.full(counts.number.size, column))
        key, at, row = np.unique(np.concatenate(keys), return_index=True, return_inverse=True)
        configurations = max(self.configuration) + 1
        table = np.zeros((key.size, configurations))
        np.add.at(table, (row, np.concatenate(columns)), np.concatenate(totals))
        runs = np.bincount(self.configuration, minlength=configurations)
        ranks = np.zeros(configurations)
        ranks[list(self.configuration)] = [archive.metadata.ranks for archive in self.archives]
        callpath, number = np.divmod(key, _MOST_PATHS)
        outer = np.concatenate(around)[at]
        place = np.searchsorted(key, callpath * _MOST_PATHS + outer)
        place = np.minimum(place, key.size - 1)
        found = (outer >= 0) & (key[place] == callpath * _MOST_PATHS + outer)
        effort, places = _described(first)
        return ClassVectors(
            callpath=callpath,
            counts=table / runs,
            within=np.where(found, place, -1),
            effort={name: values[number] for name, values in effort.items()},
            places=tuple(places[index] for index in number.tolist()),
            ranks=ranks,
        )


def _identities(counts: ClassCounts) -> Iterator[tuple[object, ...]]:
    """Yield a key for each class; equal keys mean the same class."""
    names = sorted(counts.effort)
    table = np.array([counts.effort[name] for name in names]).T.tolist()
    bounds = np.searchsorted(counts.place_class, np.arange(len(counts.classes) + 1)).tolist()
    lines = [counts.lines[number] for number in counts.place_line.tolist()]
    where = [(line.name, line.file, line.line, *row) for line, row in zip(lines, table, strict=True)]
    for entry, begin, end in zip(counts.classes, bounds, bounds[1:], strict=False):
        yield entry.depth, entry.calls, *where[begin:end]


def _described(first: Sequence[tuple[ClassCounts, int]]) -> tuple[dict[str, np.ndarray], list[Place]]:
    """Return the effort of one execution of each class, by metric, and the source line with most of its effort."""
    names = first[0][0].effort if first else {}
    effort = {name: np.zeros(len(first)) for name in names}
    places = []
    for number, (counts, index) in enumerate(first):
        begin, end = np.searchsorted(counts.place_class, [index, index + 1]).tolist()
        for name in names:
            effort[name][number] = counts.effort[name][begin:end].sum()
        most = begin + int(np.argmax(next(iter(counts.effort.values()))[begin:end])) if end > begin else -1
        line = counts.lines[int(counts.place_line[most])] if most >= 0 else None
        depth = counts.classes[index].depth
        places.append(Place(line.function, line.file, line.line, depth) if line else Place("", "", 0, depth))
    return effort, places
