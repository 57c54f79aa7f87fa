# SPDX-License-Identifier: Apache-2.0
"""The tables [target] and [counts] of a campaign file: the point to predict, and its count-only runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from quipu.modeling.documents import Real, typed
from quipu.modeling.errors import FormatError

_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|h)")
_Value = Annotated[float, msgspec.Meta(gt=0, le=1e300)]


@dataclass(frozen=True)
class CountsPlan:
    """Options of the count-only runs of a campaign.

    budget: limit for the elapsed seconds of all count-only runs together; None: no limit. command: the program that is
    built for SMPI (SimGrid's MPI), with its arguments; empty if there is none. build: a line for sh that builds this
    program; "" if there is none.
    """

    budget: float | None = None
    command: tuple[str, ...] = ()
    build: str = ""


@dataclass
class _Table:
    budget: str | _Value | None = None
    launcher: str = ""
    command: str | list[str] = ""
    build: str = ""


def read_target(table: object, parameters: Sequence[str], source: object) -> dict[str, float]:
    """Return the point to predict, by parameter. Raises FormatError with `source` (the file) and the wrong key.

    [target]
    p = 512
    n = 4000
    """
    found = typed(table, dict[str, Real], source, "target")
    if set(found) != set(parameters):
        raise FormatError(source, f"target needs a value for each of: {', '.join(parameters) or 'no parameter'}")
    if low := [name for name, value in found.items() if value <= 0]:
        raise FormatError(source, f"target.{low[0]} should be a number above 0")
    return {name: float(found[name]) for name in parameters}


def read_counts(table: object, command: Sequence[str], source: object) -> CountsPlan:
    """Return the content of the table. Raises FormatError with `source` (the file) and the wrong key.

    command: the words of the command of [experiment], which must not contain the program for SMPI.

    [counts]                             # all keys are optional
    budget = "15min"                     # time limit of all count-only runs together; a number: seconds
    launcher = "smpi"                    # simulate the ranks if this is cheaper; requires command
    command = "./heat-smpi {n}"          # the program built for SimGrid, with its arguments
    build = "make smpi"                  # a line for sh that builds this program
    """
    if not isinstance(table, dict):
        raise FormatError(source, "counts: should be a table: [counts]")
    keys = set(_Table.__dataclass_fields__)
    if unknown := sorted(table.keys() - keys):
        raise FormatError(source, f"counts.{unknown[0]} is unknown; [counts] has {', '.join(sorted(keys))}")
    found = typed(table, _Table, source, "counts")
    try:
        words = tuple(shlex.split(found.command) if isinstance(found.command, str) else found.command)
    except ValueError as error:
        raise FormatError(source, f"counts.command: cannot be split into words: {error}") from error
    if found.launcher not in ("", "smpi"):
        raise FormatError(source, f"counts.launcher: {found.launcher!r} is unknown; the only choice is smpi")
    if bool(words) != bool(found.launcher) or (found.build and not words):
        raise FormatError(source, 'counts: launcher = "smpi" and command = "./app-smpi {n}" go together')
    if words and words[0] in command:
        raise FormatError(
            source,
            f"counts.command: {words[0]} is the program of [experiment]; a program for SMPI is built by quipu-smpicc "
            "and needs another name",
        )
    return CountsPlan(_seconds(found.budget, source), words, found.build)


def _seconds(budget: str | float | None, source: object) -> float | None:
    if budget is None or not isinstance(budget, str):
        return budget
    match = _DURATION.fullmatch(budget.strip())
    if match is None or not float(match[1]):
        raise FormatError(source, f'counts.budget: {budget[:40]!r} should be like "15min", "90s" or "2h", or seconds')
    return float(match[1]) * _UNITS[match[2]]
