# SPDX-License-Identifier: Apache-2.0
"""Double quotes inside of an option: names and values that hold a comma or an equals sign, as in `layout="a,b"`."""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUOTED = re.compile(r'(^|[,=])(\s*)"((?:[^"]|"")*)"(?=\s*(?:[,=]|$))')
_MARK = "\ue000"
"""Of the private use area of Unicode: around the number of a text in quotes, while the rest is taken apart."""
STAND_IN = rf"{_MARK}\d+{_MARK}"
"""What stands for a text in quotes, as a regular expression."""


class Quoted:
    """A text whose parts in double quotes are set aside; a quote in such a part is written twice.

    text: with what stands for each part instead.
    """

    def __init__(self, text: str) -> None:
        self._parts: list[str] = []
        self.text = _QUOTED.sub(self._set_aside, text.replace(_MARK, ""))

    def _set_aside(self, match: re.Match[str]) -> str:
        self._parts.append(match[3].replace('""', '"'))
        return f"{match[1]}{match[2]}{_MARK}{len(self._parts) - 1}{_MARK}"

    def meant(self, piece: str) -> str:
        """Return what a piece of `text` says: without blanks around it, with the texts in quotes as they are."""
        return re.sub(STAND_IN, lambda match: self._parts[int(match[0].strip(_MARK))], piece.strip())


def names_of(texts: Sequence[str]) -> tuple[str, ...]:
    """Return names given by repeating an option or with commas, each once; one with a comma stands in double quotes."""
    found = ((quoted, piece) for quoted in map(Quoted, texts) for piece in quoted.text.split(",") if piece.strip())
    return tuple(dict.fromkeys(quoted.meant(piece) for quoted, piece in found))


def in_quotes(text: str) -> str:
    """Return a name or value as an option takes it: in double quotes where it needs them."""
    plain = text == text.strip() and not any(mark in text for mark in ',="')
    return text if plain else '"' + text.replace('"', '""') + '"'
