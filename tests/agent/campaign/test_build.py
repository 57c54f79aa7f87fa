"""The build line of a campaign is run by a shell."""

from __future__ import annotations

from pathlib import Path

import pytest
from quipu.agent.campaign.build import build
from quipu.agent.campaign.file import read_campaign


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("'echo a > log; echo \"$KIND $QUIPU_OFF\" | tr a-z A-Z >> log && echo c >> log'", "a\nPLAIN 1\nc\n"),
        ("['sh', '-c', 'printf \"%s;\" \"$1\" > log', 'sh', 'a > b; c']", "a > b; c;"),
    ],
)
def test_a_build_line_means_what_it_means_in_a_shell(tmp_path: Path, line: str, written: str) -> None:
    """A list of words is one command: nothing in its words has a meaning for the shell."""
    path = tmp_path / "app.toml"
    path.write_text(f"[experiment]\ncommand = './app'\nbuild = {line}\n[environment]\nKIND = 'plain'\n")
    build(read_campaign(path), {"QUIPU_OFF": "1"})
    assert (tmp_path / "log").read_text() == written
