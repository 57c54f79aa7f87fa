"""Views for a terminal or a plain stream: pure functions from data to rich renderables."""

from __future__ import annotations

from .console import console_for, layout_of, plain_text
from .names import plain_names, shorten
from .source import inlined_listing, source_listing
from .summary import campaign_line, head, note_lines, run_summary
from .tables import (
    change_table,
    check_table,
    configuration_table,
    diagnosis_table,
    function_table,
    generated_table,
    model_table,
    noise_table,
    ranking_table,
    selection_table,
)
from .text import ASCII, UNICODE, Glyphs, Layout, elide, quantity
from .tree import Selection, call_tree

__all__ = [
    "ASCII",
    "UNICODE",
    "Glyphs",
    "Layout",
    "Selection",
    "call_tree",
    "campaign_line",
    "change_table",
    "check_table",
    "configuration_table",
    "console_for",
    "diagnosis_table",
    "elide",
    "function_table",
    "generated_table",
    "head",
    "inlined_listing",
    "layout_of",
    "model_table",
    "noise_table",
    "note_lines",
    "plain_names",
    "plain_text",
    "quantity",
    "ranking_table",
    "run_summary",
    "selection_table",
    "shorten",
    "source_listing",
]
