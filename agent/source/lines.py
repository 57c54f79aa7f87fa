# SPDX-License-Identifier: Apache-2.0
"""What the pass says of source lines (`--quipu-per-block`): how much of each row of a region's weights is theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import IntArray
from quipu.modeling.metrics import WEIGHTED

from ..archive.run import SourceLine
from ..layout import LAYOUT
from .functions import Count, damaged, entries, section

_MOST_COUNTERS = LAYOUT.numbers["MOST_COUNTERS"]
_SKEW_NS = 2_000_000_000  # that the clocks of a file server and of a node may differ by


@dataclass(frozen=True, eq=False)
class CountedFunction:
    """The lines of one region. Each term adds counter `row` (0: the visits) times `effort` to one of the `lines`.

    line (index into `lines`, ascending), row: int64 of shape (terms,); effort: uint64 (terms, WEIGHTED), modulo 2^64.
    """

    counters: int
    lines: tuple[SourceLine, ...]
    line: IntArray
    row: IntArray
    effort: NDArray[np.uint64]

    def weights(self) -> NDArray[np.uint64]:
        """Return what all lines together add per row: the weights of the region, shape (counters + 1, WEIGHTED)."""
        total = np.zeros((self.counters + 1, WEIGHTED), dtype=np.uint64)
        np.add.at(total, self.row, self.effort)
        return total


RegionKey = tuple[str, str, int]
"""Linker name, file and line of a region."""


def counted_functions(path: Path) -> Mapping[RegionKey, list[CountedFunction]]:
    """Return the functions of a program or library that have lines; empty if it was not built so.

    Functions of one key differ where object files hold copies that were optimized differently. Raises FormatError as
    `static_functions` does.
    """
    found: dict[RegionKey, list[CountedFunction]] = {}
    text = section(path)
    for number, entry in entries(path, text if b'"lines"' in text else b"", _Entry):
        if entry.lines is not None:
            found.setdefault((entry.name, entry.file, entry.line), []).append(_function(path, number, entry))
    return found


@dataclass(frozen=True)
class _Line:
    """A line of a region, as the section has it. effort: of each row of weights, the row first."""

    function: str
    name: str
    file: str
    line: Count
    effort: list[Annotated[list[int], msgspec.Meta(min_length=1 + WEIGHTED, max_length=1 + WEIGHTED)]]


@dataclass(frozen=True)
class _Entry:
    """What an entry of the section says of lines, if anything."""

    name: str = ""
    file: str = ""
    line: Count = 0
    counters: Annotated[int, msgspec.Meta(ge=0, le=_MOST_COUNTERS + 1)] = 0
    lines: list[_Line] | None = None
    inlined: bool = False


def _function(path: Path, number: int, entry: _Entry) -> CountedFunction:
    if entry.counters > _MOST_COUNTERS + entry.inlined:  # the visits of the function around it are one more
        raise damaged(path, number)
    members = entry.lines or []
    terms = [[index, *term] for index, member in enumerate(members) for term in member.effort]
    try:
        table = np.array(terms, dtype=np.int64).reshape(-1, 2 + WEIGHTED)
    except OverflowError as error:
        raise damaged(path, number) from error
    line, row = table[:, 0], table[:, 1]
    if ((row < 0) | (row > entry.counters)).any():
        raise damaged(path, number)
    lines = tuple(
        SourceLine(one.function or one.name or "(unknown)", one.name, one.file, min(one.line, (1 << 31) - 1))
        for one in members
    )
    return CountedFunction(entry.counters, lines, line, row, table[:, 2:].view(np.uint64))


class SourcePrograms:
    """The programs and libraries of a run and what they say of source lines; each file is read once.

    problems: texts about files that could not be used.
    """

    def __init__(self) -> None:
        """Know no file yet."""
        self._files: dict[str, Mapping[RegionKey, list[CountedFunction]]] = {}
        self.problems: dict[str, None] = {}

    def have_lines(self, attributes: Mapping[str, str]) -> bool:
        """Whether a file that a process ran describes source lines. attributes: those of its profile."""
        return any(self._functions(path) for path in files_of(attributes))

    def find(
        self, attributes: Mapping[str, str], started_ns: int, key: RegionKey, weights: NDArray[np.uint64]
    ) -> CountedFunction | None:
        """Return the lines of a region of a process: those that add up to its weights.

        started_ns: when the process began, ns since 1970. A file that was written later is another one.
        """
        for path in files_of(attributes):
            for function in self._functions(path).get(key, []):
                if function.counters + 1 == weights.shape[0] and np.array_equal(function.weights(), weights):
                    return None if self._is_changed(path, started_ns) else function
        return None

    def _functions(self, path: str) -> Mapping[RegionKey, list[CountedFunction]]:
        if path not in self._files:
            try:
                self._files[path] = counted_functions(Path(path))
            except FormatError as error:
                self._files[path] = {}
                if "holds no section" not in str(error) and Path(path).exists():
                    self.problems[f"no source lines: {error}"] = None
        return self._files[path]

    def _is_changed(self, path: str, started_ns: int) -> bool:
        try:
            changed = Path(path).stat().st_mtime_ns > started_ns + _SKEW_NS
        except OSError:
            changed = True
        if changed:
            self.problems[f"no source lines of {path}: it was changed since it ran"] = None
        return changed


def files_of(attributes: Mapping[str, str]) -> list[str]:
    """Return the program of a process and the libraries that it has regions of."""
    program = attributes.get("program", "")
    libraries = [key.removeprefix("library:") for key in attributes if key.startswith("library:")]
    return [path for path in (program, *libraries) if path.startswith("/")]
