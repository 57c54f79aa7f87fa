# SPDX-License-Identifier: Apache-2.0
"""Show views in a terminal or as plain text: pure functions that convert views to objects that rich prints."""

from __future__ import annotations

from .console import console_for, layout_of, plain_text
from .glyphs import ASCII, UNICODE, Glyphs, Layout, elide
from .names import plain_names, shorten, shorten_apart
from .summary import campaign_line, head, run_summary
from .tree import call_tree

__all__ = [
    "ASCII",
    "UNICODE",
    "Glyphs",
    "Layout",
    "call_tree",
    "campaign_line",
    "console_for",
    "elide",
    "head",
    "layout_of",
    "plain_names",
    "plain_text",
    "run_summary",
    "shorten",
    "shorten_apart",
]
