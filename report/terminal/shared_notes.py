# SPDX-License-Identifier: Apache-2.0
"""Notes on many models: each is printed once, with the number of call paths."""

from __future__ import annotations

from collections.abc import Sequence

from quipu.modeling.message import code_of

from ..text import path_text
from ..views import ModelRow
from .names import IN_TEXT, shorten

_SEVERAL = 3
"""A note on at least this number of call paths is printed once below the table."""


def kind_of_note(note: str) -> str:
    """Return the kind of a note: its code, or its text without numbers if it has no code."""
    return code_of(note) or note


def shared_notes(rows: Sequence[ModelRow]) -> dict[str, str]:
    """Return the notes to print once below a table of models, by kind: the first note of each kind."""
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
