# SPDX-License-Identifier: Apache-2.0
"""Combine the count classes of several runs into the count classes of one experiment.

A count class is a set of basic blocks of one function that are always executed equally often (`CountClass`).
"""

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
    """The count classes of run archives, which are read at the first use.

    - paths: for each archive, an array of shape (call paths of the archive,): the index of the call path in the
      experiment.
    - configuration: for each archive, the index of its configuration.

    Different runs may number their classes differently. A class is therefore identified by its effort at each source
    line, its number of enclosing loops, and its calls. Classes of one call path that are equal in all of these are
    combined: their executions are summed.
    """

    archives: Sequence[RunArchive]
    paths: Sequence[IntArray]
    configuration: Sequence[int]

    @cached_property
    def vectors(self) -> ClassVectors | None:
        """Return the executions of each class at each configuration, as means over the repetitions.

        Returns None if a run has no classes. Raises FormatError for a damaged archive.
        """
        known: dict[tuple[object, ...], int] = {}
        first: list[tuple[ClassCounts, int]] = []  # the first occurrence of each class: its run, and its index there
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
    """Yield a key for each class. Classes with equal keys are the same class."""
    names = sorted(counts.effort)
    table = np.array([counts.effort[name] for name in names]).T.tolist()
    bounds = np.searchsorted(counts.place_class, np.arange(len(counts.classes) + 1)).tolist()
    lines = [counts.lines[number] for number in counts.place_line.tolist()]
    where = [(line.name, line.file, line.line, *row) for line, row in zip(lines, table, strict=True)]
    for entry, begin, end in zip(counts.classes, bounds, bounds[1:], strict=False):
        yield entry.depth, entry.calls, *where[begin:end]


def _described(first: Sequence[tuple[ClassCounts, int]]) -> tuple[dict[str, np.ndarray], list[Place]]:
    """Return the effort of one execution of each class, by metric, and the source line with most of its effort.

    The arrays have shape (classes,). first: the first occurrence of each class.
    """
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
