# SPDX-License-Identifier: Apache-2.0
"""The pages in docs/reference are current: `make reference` writes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_SCRIPT = "import pages; print(pages.kept_pages()[{page!r}], end='')"


@pytest.mark.parametrize("page", ["reference/commands.md", "reference/messages.md", "reference/metrics.md"])
def test_the_page_is_current(page: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(page=page)],
        cwd=ROOT / ".ci" / "site",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (ROOT / "docs" / page).read_text(encoding="utf-8"), "run: make reference"
