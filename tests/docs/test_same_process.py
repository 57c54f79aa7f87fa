# SPDX-License-Identifier: Apache-2.0
"""Each row of the table of other tools in the same process has a result and existing tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_row_names_a_test() -> None:
    text = (ROOT / "docs" / "same-process.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    for what, happens, tests in rows:
        assert happens.strip().startswith(("counted", "marked", "refused", "not detected")), what
        named = re.findall(r"`(tests/[^`]+)`", tests)
        assert named and all((ROOT / name).is_file() for name in named), what
