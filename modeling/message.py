# SPDX-License-Identifier: Apache-2.0
"""Messages for users. Each message has a code, and programs must use the code instead of the text.

Each part has a catalogue of entries: `modeling/catalogue.py`, `report/catalogue.py`, `agent/catalogue.py`. The text of
a message ends with its code in brackets, so that the code stays with the message in files and on the screen.
`quipu explain CODE` prints the meaning.
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
    - text: at most two sentences with {fields}, without the last full stop.
    - meaning: the consequence for the user, and what to do.
    - page: the page of the documentation, relative to docs/, optionally with an anchor.
    """

    code: str
    text: str
    meaning: str
    page: str = ""

    def __call__(self, **fields: object) -> str:
        """Return the message with its fields filled in. Raises KeyError if one is missing."""
        return f"{self.text.format(**fields)} [{self.code}]"

    @property
    def pattern(self) -> str:
        """Return the text with the names of its fields in braces."""
        return _FIELD.sub(r"{\1}", self.text)

    def is_in(self, notes: Iterable[str]) -> bool:
        """Return whether one of these messages belongs to this entry."""
        return any(code_of(note) == self.code for note in notes)

    def without(self, notes: Iterable[str]) -> tuple[str, ...]:
        """Return the messages that do not belong to this entry."""
        return tuple(note for note in notes if code_of(note) != self.code)


def code_of(message: str) -> str:
    """Return the code of a message, empty if it has none."""
    found = _CODE.search(message)
    return "" if found is None else found[1]


def without_codes(text: str) -> str:
    """Return the text of a message, or of several joined by semicolons, without codes."""
    return _CODES.sub("", text)
