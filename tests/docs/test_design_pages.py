# SPDX-License-Identifier: Apache-2.0
"""Pages of docs/design are marked as written for people who change Quipu, and explain a decision in 150 lines."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "design").glob("*.md"))
MOST = 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_design_page_names_its_readers_and_is_short(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ") and lines[2] == "*For people who change Quipu.*"
    assert len(lines) <= MOST
