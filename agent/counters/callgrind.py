# SPDX-License-Identifier: Apache-2.0
"""Read files of callgrind (valgrind): the counts of every function, separately for each chain of callers.

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
    """The content of a callgrind file. A chain is a function and its callers, innermost first.

    - events: names of the counted events.
    - of: exclusive counts of each chain, one per event.
    - inclusive: counts of each chain with its callees, one per event; too large for a chain that calls itself.
    - calls: the chains that a chain calls, without itself.
    - caches: descriptions of the simulated caches by name (I1, D1, LL). version: of valgrind.
    """

    events: tuple[str, ...] = ()
    of: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    inclusive: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    calls: dict[tuple[str, ...], set[tuple[str, ...]]] = field(default_factory=dict)
    caches: dict[str, str] = field(default_factory=dict)
    version: str = ""


def read_callgrind(path: Path) -> Costs:
    """Read a callgrind file. Raises FormatError with the number of the invalid line."""
    with reading_file(path) as content:
        lines = content.decode("utf-8", "replace").splitlines()
    costs = Costs()
    names: dict[int, str] = {}
    current: tuple[str, ...] | None = None
    called: tuple[str, ...] | None = None
    inclusive = False
    for number, line in enumerate(lines, start=1):
        if line.startswith("fn="):
            if not costs.events:
                raise FormatError(path, "is not an output of callgrind: it has a function before its events", number)
            current = _chain(path, number, line[3:], names)
            costs.of.setdefault(current, [0] * len(costs.events))
            costs.inclusive.setdefault(current, [0] * len(costs.events))
        elif line.startswith("cfn=") and current is not None:
            called = _chain(path, number, line[4:], names)
            if called != current:
                costs.calls.setdefault(current, set()).add(called)
        elif line.startswith("calls="):
            inclusive = True  # the next line has the inclusive counts of the called chain
        elif not _COST.match(line + " "):
            _head(costs, line)
        elif current is None:
            raise FormatError(path, "has a cost before the first function", number)
        else:
            totals = [costs.inclusive[current]]
            if not inclusive:
                totals.append(costs.of[current])
            elif called == current:  # the plain version of a function calls its counted version (llvm_pass/versions.h)
                totals = []
            _add(path, number, len(costs.events), totals, line)
            inclusive = False
    if not costs.events:
        raise FormatError(path, "is not an output of callgrind: it lists no events (was the program killed?)")
    return costs


def _head(costs: Costs, line: str) -> None:
    """Store events, version of valgrind or description of a cache from a header line; ignore other lines."""
    key, _, text = line.partition(":")
    if key == "events":
        costs.events = tuple(text.split())
    elif key == "creator":
        costs.version = text.strip()
    elif key == "desc" and " cache: " in text:
        name, _, cache = text.strip().partition(" cache: ")
        costs.caches[name] = cache


def _add(path: Path, number: int, events: int, totals: Sequence[list[int]], line: str) -> None:
    """Add the counts in a line to each list of totals. Raises FormatError with the number of the line."""
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
    """Return the chain that a line names, and store a newly defined name in `names`."""
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
    """Return the functions of a chain; the two versions of a function (llvm_pass/versions.h) are one function."""
    found: list[str] = []
    counted = ""
    for symbol in text.split(_SEPARATOR):
        function = function_of_symbol(symbol)
        if symbol != counted:
            found.append(function)
        counted = function if function != symbol else ""
    return tuple(found)
