# SPDX-License-Identifier: Apache-2.0
"""Read count classes from programs, with their effort by source line.

A count class is a set of basic blocks of a function that are executed equally often, such as the body of a loop
(llvm_pass/classes.h). The number of its executions is the sum of share × count[row] over its terms: count[0] is the
visits of the function, count[i] its counter i. A place is a source line with code of the class. It has the effort of
one execution, one number per effort metric. The first entry of an object file contains the functions of all its places.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError, SectionMissing
from quipu.modeling.experiment import IntArray
from quipu.modeling.metrics import WEIGHTED

from ..archive.run import CountClass, SourceLine
from ..layout import LAYOUT
from .functions import Count, damaged, entries, section
from .readable import readable_name

_MOST_COUNTERS = LAYOUT.numbers["MOST_COUNTERS"]
_SKEW_NS = 2_000_000_000  # largest accepted difference between the clocks of a file server and of a node

Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class CountedFunction:
    """The count classes of one region. WEIGHTED is the number of effort metrics of the pass.

    - origin: file, and number of the entry in the section, which identify the function.
    - counters: number of counters of the region.
    - term_class, term_row, share: shape (terms,), sorted by class. A term adds share × count[term_row] to the
      executions of class term_class. Shares are modulo 2^64, because they may be negative.
    - place_class, place_line (index into `lines`): shape (places,), sorted by class.
    - effort: effort of one execution at each place, shape (places, WEIGHTED).
    """

    origin: tuple[str, int]
    counters: int
    classes: tuple[CountClass, ...]
    lines: tuple[SourceLine, ...]
    term_class: IntArray
    term_row: IntArray
    share: Words
    place_class: IntArray
    place_line: IntArray
    effort: Words

    @cached_property
    def class_effort(self) -> Words:
        """Return the effort of one execution of each class, shape (classes, WEIGHTED)."""
        total = np.zeros((len(self.classes), WEIGHTED), dtype=np.uint64)
        np.add.at(total, self.place_class, self.effort)
        return total

    @cached_property
    def weights(self) -> Words:
        """Return the effort of all classes per visit (row 0) and per unit of each counter.

        The shape is (counters + 1, WEIGHTED).

        The profile contains the same numbers as weights of the region. `SourcePrograms.find` compares both.
        """
        total = np.zeros((self.counters + 1, WEIGHTED), dtype=np.uint64)
        np.add.at(total, self.term_row, self.share[:, None] * self.class_effort[self.term_class])
        return total


RegionKey = tuple[str, str, int]
"""Linker name, file and line of a region."""


class _Entry(msgspec.Struct, frozen=True):
    """The part of an entry of the section that describes count classes; `classes` is empty if there are none."""

    name: str = ""
    file: str = ""
    line: Count = 0
    counters: Annotated[int, msgspec.Meta(ge=0, le=_MOST_COUNTERS + 1)] = 0
    functions: msgspec.Raw = msgspec.Raw()
    classes: msgspec.Raw = msgspec.Raw()
    inlined: bool = False


_Functions = list[tuple[str, str, str]]


class _Places:
    """The functions of the places of an object file. stored: JSON."""

    def __init__(self, stored: msgspec.Raw) -> None:
        self._stored = stored

    @cached_property
    def functions(self) -> _Functions:
        """Return readable name (empty: like the linker name), linker name and file of each function."""
        return msgspec.json.decode(self._stored, type=_Functions)


@dataclass(frozen=True)
class _Described:
    """The count classes of a region as stored in the section. number: number of the entry, from 1."""

    path: Path
    number: int
    entry: _Entry
    places: _Places

    @cached_property
    def function(self) -> CountedFunction:
        """Return the decoded classes. Raises FormatError if they are damaged."""
        return _function(self.path, self.number, self.entry, self.places)


def counted_functions(path: Path) -> Mapping[RegionKey, Sequence[_Described]]:
    """Return the functions of a program or library that have count classes; empty if there are none.

    A key has several functions if several object files contain the function, for example with different optimizations.
    Raises FormatError as `static_functions` does.
    """
    found: dict[RegionKey, list[_Described]] = {}
    text = section(path)
    places = _Places(msgspec.Raw(b"[]"))
    for number, entry in entries(path, text if b'"classes"' in text else b"", _Entry):
        if bytes(entry.functions):
            places = _Places(entry.functions)
        if bytes(entry.classes):
            found.setdefault((entry.name, entry.file, entry.line), []).append(_Described(path, number, entry, places))
    return found


@lru_cache(64)  # for the programs and libraries of a run; version: changes if the file changes
def _counted_functions(path: Path, version: tuple[int, ...]) -> Mapping[RegionKey, Sequence[_Described]]:
    return counted_functions(path)


_Class = tuple[int, Count, list[int], list[str], list[Annotated[list[int], msgspec.Meta(min_length=2)]]]


def _function(path: Path, number: int, entry: _Entry, places: _Places) -> CountedFunction:
    if entry.counters > _MOST_COUNTERS + entry.inlined:  # an inlined function has one more: the visits of its owner
        raise damaged(path, number)
    try:
        functions = places.functions
        members = msgspec.json.decode(entry.classes, type=list[_Class])
        terms = [
            (index, *pair)
            for index, (_, _, numbers, _, _) in enumerate(members)
            for pair in zip(numbers[::2], numbers[1::2], strict=True)
        ]
        table = np.array(terms, dtype=np.int64).reshape(-1, 3)
        placed = [(index, place) for index, member in enumerate(members) for place in member[4]]
        rows = [place[2:] + [0] * (2 + WEIGHTED - len(place)) for _, place in placed]
        effort = np.array(rows, dtype=np.int64).reshape(-1, WEIGHTED)
        numbers: dict[SourceLine, int] = {}
        lines = [
            numbers.setdefault(_line(functions[place[0]], place[1]), len(numbers))
            if 0 <= place[0] < len(functions)
            else -1
            for _, place in placed
        ]
    except (msgspec.DecodeError, RecursionError, OverflowError, ValueError) as error:
        raise damaged(path, number) from error
    row, place_line = table[:, 1], np.array(lines, dtype=np.int64)
    if ((row < 0) | (row > entry.counters)).any() or (place_line < 0).any():
        raise damaged(path, number)
    if any(not -1 <= member[0] < len(members) for member in members):
        raise damaged(path, number)
    return CountedFunction(
        origin=(str(path), number),
        counters=entry.counters,
        classes=tuple(CountClass(member[0], member[1], tuple(member[3])) for member in members),
        lines=tuple(numbers),
        term_class=table[:, 0],
        term_row=row,
        share=np.ascontiguousarray(table[:, 2]).view(np.uint64),
        place_class=np.array([index for index, _ in placed], dtype=np.int64),
        place_line=place_line,
        effort=effort.view(np.uint64),
    )


def _line(function: tuple[str, str, str], line: int) -> SourceLine:
    display, name, file = function
    return SourceLine(display or readable_name(name) or "(unknown)", name, file, max(0, min(line, (1 << 31) - 1)))


class SourcePrograms:
    """Finds the count classes of regions in the programs and libraries of a run.

    Several objects share the content of a file until it changes. problems: texts about unusable files.
    """

    def __init__(self) -> None:
        """Create an empty collection."""
        self._files: dict[str, Mapping[RegionKey, Sequence[_Described]]] = {}
        self._changed: dict[str, int | None] = {}  # modification time of each file, ns since 1970
        self.problems: dict[str, None] = {}

    def have_classes(self, attributes: Mapping[str, str]) -> bool:
        """Return whether a file of a process has count classes. attributes: the attributes of its profile."""
        return any(self._functions(path) for path in files_of(attributes))

    def written_since(self, attributes: Mapping[str, str], started_ns: int) -> frozenset[str]:
        """Return the files of a process that were modified after its start, so that the process used other versions.

        attributes: the attributes of its profile. started_ns: time of its start, ns since 1970.
        """
        return frozenset(path for path in files_of(attributes) if self._is_changed(path, started_ns))

    def find(
        self, attributes: Mapping[str, str], written_since: frozenset[str], key: RegionKey, weights: Words
    ) -> CountedFunction | None:
        """Return the count classes of a region of a process; None if no file has them.

        attributes: the attributes of its profile. written_since: the result of the function `written_since`. weights:
        the weights of the region in the profile, shape (counters + 1, WEIGHTED). If a file describes several versions
        of the region, the version with the same weights is the measured one.
        """
        for path in files_of(attributes):
            for described in self._functions(path).get(key, []):
                if described.entry.counters + 1 != weights.shape[0]:
                    continue
                try:
                    function = described.function
                except FormatError as error:
                    self.problems[f"no counts of loops: {error}"] = None
                    continue
                if np.array_equal(function.weights, weights):
                    if path not in written_since:
                        return function
                    self.problems[f"no counts of loops of {path}: the file changed after the run"] = None
                    return None
        return None

    def _functions(self, path: str) -> Mapping[RegionKey, Sequence[_Described]]:
        if path not in self._files:
            try:
                found = Path(path).stat()
                version = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
                self._files[path] = _counted_functions(Path(path), version)
            except OSError:
                self._files[path] = {}
            except FormatError as error:
                self._files[path] = {}
                if not isinstance(error, SectionMissing):
                    self.problems[f"no counts of loops: {error}"] = None
        return self._files[path]

    def _is_changed(self, path: str, started_ns: int) -> bool:
        if path not in self._changed:
            try:
                self._changed[path] = Path(path).stat().st_mtime_ns
            except OSError:
                self._changed[path] = None
        changed = self._changed[path]
        if changed is not None and changed > time.time_ns() + _SKEW_NS:
            return False  # the modification time is in the future: the clock was set back and proves nothing
        return changed is None or changed > started_ns + _SKEW_NS


def files_of(attributes: Mapping[str, str]) -> tuple[str, ...]:
    """Return the absolute paths of the program of a process and of the libraries that contain its regions.

    attributes: the attributes of its profile.
    """
    program = attributes.get("program", "")
    libraries = [key.removeprefix("library:") for key in attributes if key.startswith("library:")]
    return tuple(path for path in (program, *libraries) if path.startswith("/"))
