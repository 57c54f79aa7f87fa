# SPDX-License-Identifier: Apache-2.0
"""Convert call paths to text, and text to call paths.

The text of a call path joins the names of its regions with `->`, from the root on: `main->solve->MPI_Wait`. Names of
C++ functions may contain this arrow, too: `decltype(p->x)`, `operator->`, `std::function<auto (int) -> int>`. Quipu
therefore splits a text only at arrows outside of brackets. Other tools split at every arrow. Quipu therefore writes the
arrow of a name with a space (`decltype(p- >x)`), and removes the space when it reads the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

ARROW = "->"
_INNER = "- >"
# Matches names of operators that contain angle brackets or an arrow, the arrow, or a bracket.
_TOKEN = re.compile(r"(?<!\w)operator *(?:->\*?|<=>|<<=?|>>=?|<=|>=|<|>)|->|[()\[\]{}<>]")
_CLOSES = {")": "(", "]": "[", "}": "{"}


def joined(names: Iterable[str]) -> str:
    """Return the text of a call path from the names of its regions. Arrows in names get a space."""
    return ARROW.join(in_path(name) for name in names)


def in_path(name: str) -> str:
    """Return the name of a region as it is written in a call path: arrows in the name get a space."""
    return name.replace(ARROW, _INNER)


def steps_of(text: str) -> list[str]:
    """Return the names of the regions in the text of a call path, without spaces around them.

    If the brackets do not match, < and > do not count as brackets. If the other brackets do not match, either, the text
    is split at every arrow.
    """
    if ARROW not in text:
        return [_name(text)]
    for angles in (True, False):
        if (found := _split(text, angles)) is not None:
            return found
    return [_name(step) for step in text.split(ARROW)]


def _split(text: str, angles: bool) -> list[str] | None:
    """Return the names of the regions; None if brackets do not match. angles: whether < and > are brackets."""
    found: list[str] = []
    open_: list[str] = []
    begin = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == ARROW:
            if not open_:
                found.append(_name(text[begin : token.start()]))
                begin = token.end()
        elif mark in "([{" or (mark == "<" and angles):
            open_.append(mark)
        elif mark == ">":
            if angles and open_ and open_[-1] == "<":
                open_.pop()
        elif mark in _CLOSES:
            while open_ and open_[-1] == "<":  # without a closing >, < is a comparison
                open_.pop()
            if not open_ or open_.pop() != _CLOSES[mark]:
                return None
    return None if open_ else [*found, _name(text[begin:])]


def _name(text: str) -> str:
    return text.strip().replace(_INNER, ARROW)
