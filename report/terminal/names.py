# SPDX-License-Identifier: Apache-2.0
"""Shorten names of regions and call paths, with an ellipsis that the output can show."""

from __future__ import annotations

from collections.abc import Sequence

from quipu.modeling import short_names
from quipu.modeling.short_names import IN_TEXT, plain_names

from .glyphs import UNICODE, Glyphs

__all__ = ["IN_TEXT", "plain_names", "shorten", "shorten_apart"]


def shorten(text: str, width: int, glyphs: Glyphs = UNICODE) -> str:
    """Return the name of a region or a call path in at most `width` columns (see modeling/short_names.py)."""
    return short_names.shorten(text, width, glyphs.ellipsis)


def shorten_apart(texts: Sequence[str], width: int, glyphs: Glyphs = UNICODE) -> list[str]:
    """Return names or call paths in at most `width` columns each. Different texts stay different if possible."""
    return short_names.shorten_apart(texts, width, glyphs.ellipsis)
