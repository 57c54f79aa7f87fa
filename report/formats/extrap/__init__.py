# SPDX-License-Identifier: Apache-2.0
"""Read all formats of Extra-P, and write its formats JSON and JSON Lines.

The modules text, json_experiment (and json_numbered, an older form), json_lines (and Talpas) and archive (.extra-p)
convert the content of a file to an experiment. The module write converts an experiment to JSON or JSON Lines.

The readers treat values as exclusive, because Extra-P does not distinguish exclusive and inclusive values.
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
