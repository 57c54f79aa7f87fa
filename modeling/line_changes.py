# SPDX-License-Identifier: Apache-2.0
"""Find the source lines of a function whose effort changed, even if lines were inserted above them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

LineEffort = Mapping[int, tuple[float, ...]]
"""Effort by line number: one value per metric."""


@dataclass(frozen=True)
class LineChange:
    """A source line whose effort differs.

    old_line, line: number of the line in the old and in the new version; 0 if the version has no such line. before,
    after: effort of the line in both versions, one value per metric; 0 if the version has no such line.
    """

    old_line: int
    line: int
    before: tuple[float, ...]
    after: tuple[float, ...]


def line_changes(before: LineEffort, after: LineEffort) -> list[LineChange]:
    """Return the lines of one function whose effort differs, in the order of the source.

    An edit changes the numbers of all lines below it, but not their effort. Lines of both versions are therefore
    matched by their efforts (difflib.SequenceMatcher).
    """
    old, new = sorted(before), sorted(after)
    if all(before.get(line) == values for line, values in after.items()) and len(old) == len(new):
        return []
    matcher = SequenceMatcher(None, [before[line] for line in old], [after[line] for line in new], autojunk=False)
    found = []
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            found += [_change(before, after, mine, theirs) for mine, theirs in zip_longest(old[a:b], new[c:d])]
    return found


def _change(before: LineEffort, after: LineEffort, old: int | None, new: int | None) -> LineChange:
    width = len(next(iter((after or before).values())))
    nothing = (0.0,) * width
    return LineChange(
        old or 0,
        new or 0,
        nothing if old is None else before[old],
        nothing if new is None else after[new],
    )


def largest(changes: Sequence[LineChange], metric: int, most: int) -> list[LineChange]:
    """Return the `most` changes with the largest differences in metric number `metric`; changes of 0 are left out."""
    ordered = sorted(changes, key=lambda one: -abs(one.after[metric] - one.before[metric]))
    return [one for one in ordered if one.after[metric] != one.before[metric]][:most]
