# SPDX-License-Identifier: Apache-2.0
"""Find the notes that many models of a table have. Such a note is printed once, with the number of call paths."""

from __future__ import annotations

from collections.abc import Sequence

from quipu.modeling.message import code_of

from ..text import path_text
from ..views import ModelRow
from .names import IN_TEXT, shorten

_SEVERAL = 3
"""A note that at least this number of call paths have is printed once below the table."""


def kind_of_note(note: str) -> str:
    """Return the code of a note; the note itself if it has no code."""
    return code_of(note) or note


def shared_notes(rows: Sequence[ModelRow]) -> dict[str, str]:
    """Return the texts to print once below a table of models, by kind of note. A text has the first note of a kind."""
    paths: dict[str, list[tuple[str, ...]]] = {}
    first: dict[str, str] = {}
    for row in rows:
        for note in row.notes if row.model is not None else ():
            kind = kind_of_note(note)
            first.setdefault(kind, note)
            if row.path not in (known := paths.setdefault(kind, [])):
                known.append(row.path)
    return {
        kind: f"{len(known)} call paths, such as {shorten(path_text(known[0]), IN_TEXT)}: {first[kind]}"
        for kind, known in paths.items()
        if len(known) >= _SEVERAL
    }
