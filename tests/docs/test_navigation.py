# SPDX-License-Identifier: Apache-2.0
"""The documentation is easy to find: few entries per level, a short README."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MOST = 8  # entries of a level


def levels(entries: list[Any], name: str = "the top") -> Iterator[tuple[str, list[Any]]]:
    """Yield each level of the navigation with its name."""
    yield name, entries
    for entry in entries:
        for label, below in entry.items() if isinstance(entry, dict) else ():
            if isinstance(below, list):
                yield from levels(below, label)


def navigation() -> list[Any]:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    found: list[Any] = importlib.import_module("yaml").safe_load(text[text.index("nav:") :])["nav"]
    return found


def test_no_level_has_many_entries() -> None:
    assert {name: len(entries) for name, entries in levels(navigation()) if len(entries) > MOST} == {}


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    assert len(text.split()) <= 1300


def test_every_cell_of_the_comparison_names_its_source() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\|.*\|$", text[text.index("## Compared with other tools") : text.index("Each cell links")], re.MULTILINE
    )
    cells = [cell.strip() for row in rows[2:] for cell in row.strip("|").split("|")[1:]]
    assert len(cells) == 9 * 6
    used = [re.findall(r"\]\[(\w+)\]", cell) for cell in cells]
    assert all(used), cells
    assert {name for names in used for name in names} == set(re.findall(r"^\[(\w+)\]: ", text, re.MULTILINE))


def test_questions_are_many() -> None:
    text = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^### ", text, re.MULTILINE)) >= 30
