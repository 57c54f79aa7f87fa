# SPDX-License-Identifier: Apache-2.0
"""The characters that an output supports, and functions that fit texts to these characters and to a width."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from quipu.modeling import short_names
from quipu.modeling.printable import one_line


@dataclass(frozen=True)
class Glyphs:
    """The characters of tree lines and of an ellipsis. unicode: whether other characters than ASCII are possible."""

    branch: str
    last: str
    bar: str
    blank: str
    ellipsis: str
    unicode: bool


UNICODE = Glyphs("├─ ", "└─ ", "│  ", "   ", "…", True)
ASCII = Glyphs("|- ", "`- ", "|  ", "   ", "...", False)


@dataclass(frozen=True)
class Layout:
    """The width of a view in columns, and its glyphs."""

    width: int = 100
    glyphs: Glyphs = UNICODE


_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_DIGITS = str.maketrans(_SUPERSCRIPTS, "0123456789")
_POWER = re.compile(f"[{_SUPERSCRIPTS}]+")
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[^\W\d]{1,2}(?![^\W_])|%))")
_SPELLED = str.maketrans(
    {"·": "*", "×": "x", "…": "...", "→": "->", "µ": "u", "−": "-", "–": "-", "α": "a", "β": "b", "γ": "c"}
)


def clean(text: str, glyphs: Glyphs = UNICODE) -> str:
    """Return a text with `?` instead of control characters, which could move the cursor of a terminal.

    With ASCII glyphs, formulas become `n^3*log2(p)`, and all other characters outside of ASCII become `?`.
    """
    if glyphs.unicode:
        return one_line(text)
    spelled = _POWER.sub(lambda power: "^" + power.group().translate(_DIGITS), text).translate(_SPELLED)
    return "".join(character if " " <= character <= "~" else "?" for character in spelled)


def elide(text: str, width: int, glyphs: Glyphs = UNICODE) -> str:
    """Return `text` in at most `width` columns; a longer text is shortened in the middle."""
    return short_names.elide(text, width, glyphs.ellipsis)


def wrapped(text: str, width: int) -> str:
    """Return a text in lines of at most `width` columns. A number and its unit, and `n = 8`, stay in one line."""
    together = _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text).replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    lines = textwrap.wrap(together, width, break_on_hyphens=False, break_long_words=False)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")
