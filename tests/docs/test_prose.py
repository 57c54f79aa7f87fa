# SPDX-License-Identifier: Apache-2.0
"""The check of prose finds what it looks for, in prose only."""

from __future__ import annotations

import runpy
from pathlib import Path

PROSE = runpy.run_path(str(Path(__file__).resolve().parents[2] / ".ci" / "site" / "prose.py"))


def test_a_long_sentence_is_found() -> None:
    words = " word" * (PROSE["LONGEST"] + 1)
    assert list(PROSE["long_sentences"](f"Short.{words}. Short.")) == [f"{words.strip()}."]


def test_code_tables_and_headings_are_no_prose() -> None:
    words = " word" * (PROSE["LONGEST"] + 1)
    text = f"# Title{words}\n\n```sh\n{words}\n```\n\n| cell{words} |\n\n    indented{words}\n\nText `code{words}`.\n"
    assert list(PROSE["long_sentences"](text)) == []
    assert PROSE["prose"](text).count("\n") == text.count("\n")
