# SPDX-License-Identifier: Apache-2.0
"""Messages for users. Each message has a code, by which programs should recognize it, because texts may change.

Each part of Quipu has a catalogue of messages: `modeling/catalogue.py`, `report/catalogue.py`, `agent/catalogue.py`.
The text of a message ends with its code in brackets, so that files and the screen contain the code, too. `quipu explain
CODE` prints the meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_CODE = re.compile(r" \[([a-z]+(?:-[a-z0-9]+)+)\]$")
_FIELD = re.compile(r"\{(\w+)[^}]*\}")
_CODES = re.compile(r" \[[a-z]+(?:-[a-z0-9]+)+\](?=;|$)")


@dataclass(frozen=True)
class Entry:
    """One message of a catalogue.

    - code: two or more words in lower case, joined by `-`.
    - text: at most two sentences with {fields} for str.format, without the last full stop.
    - meaning: the consequence for the user, and what to do.
    - page: the page of the documentation, relative to docs/, optionally with an anchor.
    """

    code: str
    text: str
    meaning: str
    page: str = ""

    def __call__(self, **fields: object) -> str:
        """Return the message with its fields filled in. Raises KeyError if a field is missing."""
        return f"{self.text.format(**fields)} [{self.code}]"

    @property
    def pattern(self) -> str:
        """Return the text with only the names of its fields in braces, without their formats."""
        return _FIELD.sub(r"{\1}", self.text)

    def is_in(self, notes: Iterable[str]) -> bool:
        """Return whether one of these messages belongs to this entry."""
        return any(code_of(note) == self.code for note in notes)

    def without(self, notes: Iterable[str]) -> tuple[str, ...]:
        """Return the messages that do not belong to this entry."""
        return tuple(note for note in notes if code_of(note) != self.code)


def code_of(message: str) -> str:
    """Return the code of a message; "" if it has none."""
    found = _CODE.search(message)
    return "" if found is None else found[1]


def without_codes(text: str) -> str:
    """Return the text of a message, or of several joined by semicolons, without codes."""
    return _CODES.sub("", text)
