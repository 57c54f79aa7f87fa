# SPDX-License-Identifier: Apache-2.0
"""Match names with patterns of Score-P filter files, by the rules of fnmatch(3) without flags in the C locale.

The standard module `fnmatch` supports neither backslash escapes nor character classes such as `[[:alpha:]]`. This
module therefore translates patterns to regular expressions. It compares bytes, because Score-P, the compiler pass and
the runtime match filters in the C locale: they do not call setlocale(3).

Source: POSIX.1-2017, XCU 2.13 (pattern matching notation) and XBD 9.3.5 (bracket expression).
"""

from __future__ import annotations

import re
from functools import lru_cache

SPECIAL = "*?[\\"
_CLASSES = {
    b"alpha": rb"A-Za-z",
    b"digit": rb"0-9",
    b"alnum": rb"A-Za-z0-9",
    b"upper": rb"A-Z",
    b"lower": rb"a-z",
    b"space": rb"\x09-\x0d\x20",
    b"blank": rb"\x09\x20",
    b"punct": rb"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    b"print": rb"\x20-\x7e",
    b"graph": rb"\x21-\x7e",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"xdigit": rb"0-9A-Fa-f",
}
_NOTHING = rb"(?!)"


def matches(pattern: str, name: str) -> bool:
    """Return whether the whole `name` matches `pattern`."""
    return _compiled(pattern).fullmatch(_bytes(name)) is not None


def escape(name: str) -> str:
    """Return a pattern that only matches `name`."""
    return "".join("\\" + character if character in SPECIAL else character for character in name)


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(translate(_bytes(pattern)), re.DOTALL)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def translate(pattern: bytes) -> bytes:
    """Return a regular expression that matches the same whole names as a pattern.

    A pattern that ends with a single backslash matches nothing.
    """
    out: list[bytes] = []
    at = 0
    while at < len(pattern):
        character = pattern[at : at + 1]
        at += 1
        if character == b"*":
            if not out or out[-1] != b".*":
                out.append(b".*")
        elif character == b"?":
            out.append(b".")
        elif character == b"\\":
            if at == len(pattern):
                return _NOTHING
            out.append(re.escape(pattern[at : at + 1]))
            at += 1
        elif character == b"[":
            bracket = _bracket(pattern, at)
            if bracket is None:  # no closing bracket: an ordinary character
                out.append(rb"\[")
            else:
                expression, at = bracket
                out.append(expression)
        else:
            out.append(re.escape(character))
    return b"".join(out)


def _bracket(pattern: bytes, at: int) -> tuple[bytes, int] | None:
    """Return the translation of the bracket expression that begins before `at`, and the index after it.

    The result is None if the expression is not closed.
    """
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    first = at
    members: list[bytes] = []
    valid = True
    while True:
        if at >= len(pattern):
            return None
        if pattern[at : at + 1] == b"]" and at > first:
            at += 1
            break
        if pattern[at : at + 2] == b"[:" and (end := pattern.find(b":]", at + 2)) >= 0:
            name = pattern[at + 2 : end]
            if name.isalpha():
                valid = valid and name in _CLASSES
                members.append(_CLASSES.get(name, b""))
                at = end + 2
                continue
        low = _member(pattern, at)
        if low is None:
            return None
        start, at = low
        stop = start
        if pattern[at : at + 1] == b"-" and pattern[at + 1 : at + 2] not in (b"]", b""):
            high = _member(pattern, at + 1)
            if high is None:
                return None
            stop, at = high
        if start <= stop:
            members.append(rb"\x%02x-\x%02x" % (start, stop))
    body = b"".join(members)
    if not valid:
        return _NOTHING, at
    if not body:
        return (b"." if negated else _NOTHING), at
    return b"[" + (b"^" if negated else b"") + body + b"]", at


def _member(pattern: bytes, at: int) -> tuple[int, int] | None:
    """Return the byte at `at` in a bracket expression, without escape, and the index after it; None at the end."""
    for mark in (b".", b"="):  # [.x.] and [=x=] with one character
        if pattern[at : at + 2] == b"[" + mark and pattern[at + 3 : at + 5] == mark + b"]":
            return pattern[at + 2], at + 5
    if pattern[at : at + 1] == b"\\":
        at += 1
    if at >= len(pattern):
        return None
    return pattern[at], at + 1
