# SPDX-License-Identifier: Apache-2.0
"""The reference of campaign files has every key that there is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from quipu.agent.campaign.file import read_campaign
from quipu.modeling.errors import FormatError

FLAGS = re.DOTALL | re.MULTILINE
PAGE = Path(__file__).resolve().parents[2] / "docs" / "campaign-files.md"


def refused(folder: Path, text: str) -> str:
    """Return the message about a campaign file with a key that does not exist."""
    file = folder / "campaign.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError) as error:
        read_campaign(file)
    return str(error.value)


def test_every_key_of_a_campaign_file_is_documented(tmp_path: Path) -> None:
    section = PAGE.read_text(encoding="utf-8").split("\n## Keys")[1].split("\n## Recipes")[0]
    first = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    documented = {name.strip("[]") for cell in first for name in re.findall("`([^`]+)`", cell)}
    known = refused(tmp_path, "[experiment]\nnothing = 1\n").split(" has ")[1]
    tables = refused(tmp_path, "[nothing]\n").split("the tables ")[1]
    listed = set(re.findall(r"\w+", f"{known} {tables}")) - {"experiment"}
    assert documented == listed


def test_campaign_files_on_pages_are_read(tmp_path: Path) -> None:
    pages = sorted((PAGE.parent).rglob("*.md"))
    fences = [
        text for page in pages for text in re.findall(r"^```toml[^\n]*\n(.*?)^```$", page.read_text("utf-8"), FLAGS)
    ]
    campaigns = [text for text in fences if "[experiment]" in text]
    assert len(campaigns) >= 3
    for text in campaigns:
        file = tmp_path / "campaign.toml"
        file.write_text(text, encoding="utf-8")
        assert read_campaign(file).command
