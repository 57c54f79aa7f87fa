# SPDX-License-Identifier: Apache-2.0
"""Formats of Extra-P: readers of all its formats, writers of JSON and JSON Lines.

text, json_experiment (and json_numbered, its older form), json_lines (and Talpas), archive (.extra-p): text or bytes to
an experiment. write: experiments to JSON and JSON Lines.

Values of call paths are read as exclusive values. Extra-P itself does not distinguish exclusive and inclusive values.
"""

from __future__ import annotations

from .archive import parse_archive
from .json_experiment import parse_json
from .json_lines import parse_json_lines, parse_talpas
from .text import parse_text
from .write import Written, format_json, format_json_lines

__all__ = [
    "Written",
    "format_json",
    "format_json_lines",
    "parse_archive",
    "parse_json",
    "parse_json_lines",
    "parse_talpas",
    "parse_text",
]
