# SPDX-License-Identifier: Apache-2.0
"""Views of the effort of a run by source lines, and by call paths and source functions."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import UsageError
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.short_names import plain_names

from .formats.fnmatch import matches
from .measured_run import MeasuredRun, SourceEffort, SourceLine
from .source_view import ListedRow, Listing, SourceView
from .text import near
from .views import Over

_FIRST = ("instructions", "flops", "bytes_loaded", "bytes_stored")
_LEAST = 0.01  # functions and call paths with a smaller share of the run are not shown by default
_NEAR = 4  # if the next line with effort is at most this many lines below, the lines between them are shown, too
_LARGEST_SOURCE = 1 << 24  # bytes of a source file that is read
_NO_LINE = "(no source line)"


class SourceListing:
    """The effort of source lines of one run, combined over its ranks.

    metrics: the shown metrics. values: effort of each row of `effort`, shape (rows, metrics).
    """

    def __init__(self, run: MeasuredRun, effort: SourceEffort | None, over: Over, metrics: Sequence[str]) -> None:
        """Combine the effort of source lines over ranks.

        effort: None if the run has no source lines. over: "mean" or "sum". metrics: names; empty: instructions, flops
        and bytes, as far as they are not 0. Raises UsageError if the run has no source lines, or not these metrics.
        """
        if over == "max":
            raise UsageError("--over-ranks max: source lines are kept for all ranks together; choose mean or sum")
        if effort is None:
            raise UsageError(
                f"{run.path} has no source lines: build the program with the Quipu compiler wrappers and -g, and "
                "measure again"
            )
        if unknown := [name for name in metrics if name not in effort.metrics]:
            raise UsageError(
                f"--metric: source lines have no {', '.join(unknown)}; they have: {', '.join(effort.metrics)}"
            )
        self.run, self.effort, self.over = run, effort, over
        present = [name for name in _FIRST if bool(effort.metrics[name].any())] or ["instructions"]
        self.metrics: tuple[Metric, ...] = tuple(run.metrics[name] for name in metrics or present)
        measured = {record.rank for record in run.ranks if record.state != "no profile"}
        divisor = max(1, len(measured)) if over == "mean" else 1
        self.values: FloatArray = np.stack([effort.metrics[metric.name] / divisor for metric in self.metrics], axis=1)

    def by(self, group: NDArray[np.int64], count: int) -> FloatArray:
        """Return the sums of the rows of each group, shape (count, metrics). group: number of the group of each row."""
        sums = np.zeros((count, len(self.metrics)))
        np.add.at(sums, group, self.values)
        return sums

    def exclusive(self) -> FloatArray:
        """Return the exclusive effort of each call path, also without source line, shape (call paths, metrics)."""
        found = self.run.statistics
        kind = "mean" if self.over == "mean" else "sum"
        return np.stack([np.nan_to_num(getattr(found[metric.name], kind)) for metric in self.metrics], axis=1)

    def rows(self, pattern: str | None, inlined: bool) -> Iterator[tuple[int, SourceLine, list[float]]]:
        """Yield call path, source line and values of the rows that match a pattern.

        pattern: as in `source_view`; if `inlined`, as in `inlined_view`; None: all rows.
        """
        chosen = set(_paths(self, pattern, self.exclusive()[:, 0])) if inlined and pattern is not None else None
        entries = zip(self.effort.callpath.tolist(), self.effort.line.tolist(), self.values.tolist(), strict=True)
        for path, number, values in entries:
            line = self.effort.lines[number]
            if pattern is None or (path in chosen if chosen is not None else _fits(pattern, line)):
                yield path, line, values


def source_view(source: SourceListing, pattern: str | None) -> tuple[SourceView, list[str]]:
    """Return source functions with the effort of their lines, the largest first metric first; and notes.

    pattern: selects functions or files (fnmatch(3)). It is compared with the whole name of a function, its name without
    parameters, template arguments or scopes, and its linker name; also with the name of the file, its path, and its
    path relative to the current folder. None: all functions with at least 1 % of the run.
    """
    lines = source.effort.lines
    names: dict[tuple[str, str], list[int]] = {}
    for number, line in enumerate(lines):
        if pattern is None or _fits(pattern, line):
            names.setdefault((line.file, line.function), []).append(number)
    of_line = source.by(source.effort.line, len(lines))
    total = float(source.exclusive()[:, 0].sum())
    texts = _SourceTexts(source.run.metadata.started)
    found, small = [], 0
    for (file, function), numbers in names.items():
        values = of_line[numbers].sum(axis=0)
        share = _share(values, total)
        if pattern is None and share < _LEAST:
            small += 1
            continue
        counted = {lines[number].line: of_line[number] for number in numbers if of_line[number].any()}
        listed = _listing(counted, texts.of(file), total)
        found.append(Listing(function, near(file), tuple(values.tolist()), share, listed))
    found.sort(key=lambda entry: (-entry.share, entry.place, entry.name))
    notes = [*texts.notes]
    if small:
        notes.append(f"functions with less than 1 % of the run each are not shown: {small} (--path shows them)")
    unknown = total - float(of_line[:, 0].sum())
    if total > 0 and unknown / total > _LEAST:
        notes.append(f"{100 * unknown / total:.1f} % of {source.metrics[0].name} have no source line")
    return SourceView(source.metrics, tuple(found)), notes


def _fits(pattern: str, line: SourceLine) -> bool:
    function = line.function
    names = (
        function,
        function.split("(")[0],
        *plain_names(function),
        line.name,
        line.file,
        near(line.file),
        Path(line.file).name,
    )
    return any(matches(pattern, name) for name in names)


def _share(values: FloatArray, total: float) -> float:
    """Return the share of the first value in a total."""
    return float(values[0]) / total if total > 0 else 0.0


def _listing(counted: dict[int, FloatArray], text: Sequence[str], total: float) -> tuple[ListedRow, ...]:
    """Return the lines of a function. counted: effort by line number. text: lines of the file. total: of the run."""
    listed: list[ListedRow] = []
    above = 0
    for number in sorted(counted):
        if above and 1 < number - above <= _NEAR and number <= len(text):
            listed += [ListedRow(str(between), text[between - 1]) for between in range(above + 1, number)]
        elif above and number - above > 1:
            listed.append(ListedRow(""))
        values = counted[number]
        words = text[number - 1] if 0 < number <= len(text) else ""
        listed.append(ListedRow(str(number or "?"), words, tuple(values.tolist()), _share(values, total)))
        above = number
    return tuple(listed)


class _SourceTexts:
    """Reads source files. notes: texts about files that are missing or were modified after the run."""

    def __init__(self, started: str) -> None:
        try:
            self._started = datetime.datetime.fromisoformat(started).timestamp()
        except ValueError:
            self._started = float("inf")
        self.notes: list[str] = []
        self.of = cache(self._read)

    def _read(self, file: str) -> list[str]:
        """Return the lines of a file; empty, with a note, if the file cannot be read."""
        path = Path(file)
        try:
            if not path.is_absolute() or not path.is_file() or path.stat().st_size > _LARGEST_SOURCE:
                self.notes += [f"{near(file)}: the source file does not exist"] if file else []
                return []
            # A modification time in the future means that the clock was set back, so it is ignored.
            if self._started < path.stat().st_mtime <= time.time():
                self.notes.append(f"{near(file)} was changed after the run: its text may not fit the numbers")
            return path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            self.notes.append(f"{near(file)}: {error.strerror or error}")
            return []


def inlined_view(source: SourceListing, pattern: str | None) -> SourceView:
    """Return call paths, each with the source functions that cause its exclusive effort (also inlined functions).

    pattern: selects call paths by the whole path (`main->solve`) or by the name of their last region, which may be
    given with or without scopes and arguments. None: call paths with at least 1 % of the run. Call paths in which all
    shown metrics are 0 are left out.
    """
    tree, effort = source.run.tree, source.effort
    functions: dict[tuple[str, str], int] = {}
    of_line = [functions.setdefault((line.function, line.file), len(functions)) for line in effort.lines]
    group = np.array(of_line, dtype=np.int64)[effort.line] if of_line else effort.line
    key = effort.callpath * max(1, len(functions)) + group
    present, where = np.unique(key, return_inverse=True)
    values = source.by(where, present.size)
    names = list(functions)
    whole = source.exclusive()
    total = float(whole[:, 0].sum())
    found = []
    for path in _paths(source, pattern, whole[:, 0]):
        if not whole[path].any():
            continue
        of_path = np.flatnonzero(present // max(1, len(functions)) == path)
        rows = [_row(*names[int(present[at]) % len(functions)], values[at], whole[path]) for at in of_path]
        unknown = np.maximum(0.0, whole[path] - values[of_path].sum(axis=0))
        without_line = _row(_NO_LINE, "", unknown, whole[path]) if unknown.any() else None
        rows += [] if without_line is None else [without_line]
        rows.sort(key=lambda row: (-row.share, row.name))
        kept, share = _without_small(rows, without_line, whole[path]), _share(whole[path], total)
        found.append(Listing(tree.label(path), "", tuple(whole[path].tolist()), share, kept))
    return SourceView(source.metrics, tuple(found))


def _row(function: str, file: str, values: FloatArray, whole: FloatArray) -> ListedRow:
    place = f"({Path(file).name})" if file else ""
    return ListedRow(function, place, tuple(values.tolist()), _share(values, float(whole[0])))


def _without_small(rows: list[ListedRow], keep: ListedRow | None, whole: FloatArray) -> tuple[ListedRow, ...]:
    """Return the rows, where several rows below 1 % of the call path become one row. The row `keep` stays separate."""
    small = [row for row in rows if row.share < _LEAST and row is not keep]
    if len(small) < 2:
        return tuple(rows)
    values = np.sum([row.values for row in small if row.values is not None], axis=0)
    others = _row(f"{len(small)} other functions", "", values, whole)
    return (*(row for row in rows if row not in small), others)


def _paths(source: SourceListing, pattern: str | None, values: FloatArray) -> list[int]:
    """Return the indices of the call paths to show, parents before children. values: first metric of each call path."""
    tree = source.run.tree
    if pattern is None:
        least = _LEAST * float(values.sum())
        return [path for path in range(len(tree)) if values[path] > 0 and values[path] >= least]
    of_region = [
        any(matches(pattern, name) for name in (region.display, *plain_names(region.display)))
        for region in tree.regions
    ]
    return [path for path in range(len(tree)) if of_region[tree.region[path]] or matches(pattern, tree.label(path))]
