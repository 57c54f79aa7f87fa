# SPDX-License-Identifier: Apache-2.0
"""Convert call paths to text, the names of the regions from the root on joined by `->`, and back.

Names of C++ functions may contain this arrow, too: `decltype(p->x)`, `operator->`, `std::function<auto (int) -> int>`.
A reader splits only at arrows outside of brackets. A writer puts a space into the arrow of a name (`decltype(p- >x)`),
because other tools split at every arrow; the reader removes the space.
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

    If the brackets do not match, the text is split again without regard to < and >. If the other brackets do not match,
    either, it is split at every arrow.
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
