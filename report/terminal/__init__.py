"""Views for a terminal or a plain stream: pure functions from data to rich renderables."""

from __future__ import annotations

from .console import console_for, layout_of, plain_text
from .glyphs import ASCII, UNICODE, Glyphs, Layout, elide
from .names import plain_names, shorten
from .source import inlined_listing, source_listing
from .summary import campaign_line, head, note_lines, run_summary
from .tables import (
    change_table,
    check_table,
    configuration_table,
    diagnosis_table,
    filter_table,
    function_table,
    generated_table,
    model_table,
    noise_table,
    ranking_table,
)
from .tree import call_tree

__all__ = [
    "ASCII",
    "UNICODE",
    "Glyphs",
    "Layout",
    "call_tree",
    "campaign_line",
    "change_table",
    "check_table",
    "configuration_table",
    "console_for",
    "diagnosis_table",
    "elide",
    "filter_table",
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
    "ranking_table",
    "run_summary",
    "shorten",
    "source_listing",
]
