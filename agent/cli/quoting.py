# SPDX-License-Identifier: Apache-2.0
"""Read double quotes in the values of options, for names with a comma or an equals sign, such as `layout="a,b"`."""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUOTED = re.compile(r'(^|[,=])(\s*)"((?:[^"]|"")*)"(?=\s*(?:[,=]|$))')
_MARK = "\ue000"
"""A character of the private use area of Unicode. A placeholder is the number of a quoted part between two of them."""
STAND_IN = rf"{_MARK}\d+{_MARK}"
"""A regular expression that matches a placeholder."""


class Quoted:
    """A text in which placeholders replace the parts in double quotes, so that it can be split at commas.

    text: the text with the placeholders. A double quote inside of a quoted part must be written twice.
    """

    def __init__(self, text: str) -> None:
        self._parts: list[str] = []
        self.text = _QUOTED.sub(self._set_aside, text.replace(_MARK, ""))

    def _set_aside(self, match: re.Match[str]) -> str:
        self._parts.append(match[3].replace('""', '"'))
        return f"{match[1]}{match[2]}{_MARK}{len(self._parts) - 1}{_MARK}"

    def original(self, piece: str) -> str:
        """Return a piece of `text` without blanks around it, and with the quoted texts instead of placeholders."""
        return re.sub(STAND_IN, lambda match: self._parts[int(match[0].strip(_MARK))], piece.strip())


def names_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the names in the values of a repeated option, without duplicates.

    Commas separate names in a value. A name that contains a comma must be in double quotes.
    """
    found = ((quoted, piece) for quoted in map(Quoted, texts) for piece in quoted.text.split(",") if piece.strip())
    return tuple(dict.fromkeys(quoted.original(piece) for quoted, piece in found))


def in_quotes(text: str) -> str:
    """Return a name or value in the form that options accept: in double quotes if necessary."""
    plain = text == text.strip() and not any(mark in text for mark in ',="')
    return text if plain else '"' + text.replace('"', '""') + '"'
