# SPDX-License-Identifier: Apache-2.0
"""Make untrusted text safe for a terminal or a page by removing control characters."""

from __future__ import annotations

import re

# Matches control characters except the line feed; characters that change the writing direction (Unicode Standard Annex
# 9); invisible characters, line separators, tags; surrogates, which cannot be encoded.
_STEERING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_LONGEST = 4000


def printable(text: str) -> str:
    """Return the text with `?` in place of every character that could control a terminal, except line feeds."""
    return _STEERING.sub("?", text)


def one_line(text: str) -> str:
    """Return the text as `printable` on one line; more than _LONGEST characters are shortened in the middle."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
    return printable(text).replace("\n", "?")


def counted(number: int, one: str, many: str) -> str:
    """Return a number with the text of the singular or the plural: `1 path is`, `2 paths are`."""
    return f"{number} {one if number == 1 else many}"


def printable_json(text: str) -> str:
    """Return an equivalent JSON text with escapes in place of characters that could control a terminal."""
    return _STEERING.sub(lambda found: found[0] if found[0] in "\t\r" else _escaped(found[0]), text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
