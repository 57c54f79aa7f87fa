# SPDX-License-Identifier: Apache-2.0
"""Reader of callgrind files (valgrind): the cost of every function, by chain of callers.

Callgrind format specification, version 1: https://valgrind.org/docs/manual/cl-format.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quipu.modeling.errors import FormatError
from quipu.modeling.limits import reading_file

from ..layout import function_of_symbol

# Names are compressed: "(7) name" defines number 7, and "(7)" refers to this name.
_NAME = re.compile(r"\((\d+)\)(?: (.*))?\Z")
_COST = re.compile(r"(?:[+-]?\d+|\*|0x[0-9a-fA-F]+)[ \t]")
_SEPARATOR = "'"


@dataclass
class Costs:
    """The content of a callgrind file.

    - events: names of the columns.
    - of: self cost per event, by chain of functions (innermost first). inclusive: cost with all callees; too large for
      a chain that calls itself.
    - calls: the chains that a chain calls.
    - caches: descriptions of the simulated caches, by name (D1, LL). version: of valgrind.
    """

    events: tuple[str, ...] = ()
    of: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    inclusive: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    calls: dict[tuple[str, ...], set[tuple[str, ...]]] = field(default_factory=dict)
    caches: dict[str, str] = field(default_factory=dict)
    version: str = ""


def read_callgrind(path: Path) -> Costs:
    """Read a callgrind file. Raises FormatError with the wrong line."""
    with reading_file(path) as content:
        lines = content.decode("utf-8", "replace").splitlines()
    costs = Costs()
    names: dict[int, str] = {}
    current: tuple[str, ...] | None = None
    called: tuple[str, ...] | None = None
    inclusive = False
    for number, line in enumerate(lines, start=1):
        if line.startswith("fn="):
            current = _chain(path, number, line[3:], names)
            costs.of.setdefault(current, [0] * len(costs.events))
            costs.inclusive.setdefault(current, [0] * len(costs.events))
        elif line.startswith("cfn=") and current is not None:
            called = _chain(path, number, line[4:], names)
            if called != current:
                costs.calls.setdefault(current, set()).add(called)
        elif line.startswith("calls="):
            inclusive = True  # the next line is the cost of the callee
        elif not _COST.match(line + " "):
            _head(costs, line)
        elif current is None:
            raise FormatError(path, "has a cost before the first function", number)
        else:
            totals = [costs.inclusive[current]]
            if not inclusive:
                totals.append(costs.of[current])
            elif called == current:  # another version of the same function
                totals = []
            _add(path, number, len(costs.events), totals, line)
            inclusive = False
    if not costs.events:
        raise FormatError(path, "is not an output of callgrind: it lists no events (was the program killed?)")
    return costs


def _head(costs: Costs, line: str) -> None:
    """Store the relevant content of a header line."""
    key, _, text = line.partition(":")
    if key == "events":
        costs.events = tuple(text.split())
    elif key == "creator":
        costs.version = text.strip()
    elif key == "desc" and " cache: " in text:
        name, _, cache = text.strip().partition(" cache: ")
        costs.caches[name] = cache


def _add(path: Path, number: int, events: int, totals: Sequence[list[int]], line: str) -> None:
    try:
        values = [int(text) for text in line.split()[1:]]
    except ValueError:
        raise FormatError(path, f"has a cost that is not a number: {line[:60]!r}", number) from None
    if len(values) > events:
        raise FormatError(path, f"has {len(values)} costs for {events} events", number)
    for total in totals:
        for place, value in enumerate(values):
            total[place] += value


def _chain(path: Path, number: int, text: str, names: dict[int, str]) -> tuple[str, ...]:
    found = _NAME.match(text)
    if found is None:
        return _functions(text)
    key = int(found[1])
    if found[2] is not None:
        names[key] = found[2]
    if key not in names:
        raise FormatError(path, f"function ({key}) has no name", number)
    return _functions(names[key])


def _functions(text: str) -> tuple[str, ...]:
    """Return the functions of a chain. A function and its counted version are one function."""
    found: list[str] = []
    counted = ""
    for symbol in text.split(_SEPARATOR):
        function = function_of_symbol(symbol)
        if symbol != counted:
            found.append(function)
        counted = function if function != symbol else ""
    return tuple(found)
