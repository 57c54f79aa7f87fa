# SPDX-License-Identifier: Apache-2.0
"""The version is the same in all files that state it, and the changelog is ready for its tag."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_changelog_and_citation_state_the_version_and_date_of_the_release() -> None:
    version = tomllib.loads(text("pyproject.toml"))["project"]["version"]
    heading = re.search(r"^## .*$", text("CHANGELOG.md"), re.MULTILINE)
    assert heading
    released = re.fullmatch(r"## \[(.+)\] – (\d{4}-\d{2}-\d{2})", heading[0])
    assert released and released[1] == version
    assert re.search(rf"^version: {re.escape(version)}$", text("CITATION.cff"), re.MULTILINE)
    assert re.search(rf"^date-released: {released[2]}$", text("CITATION.cff"), re.MULTILINE)


def test_tools_of_lint_are_pinned() -> None:
    pinned = tomllib.loads(text("pyproject.toml"))["project"]["optional-dependencies"]["lint"]
    assert {"ruff", "mypy", "codespell", "proselint"} == {requirement.partition("==")[0] for requirement in pinned}
    assert all(re.fullmatch(r"\w+==[\d.]+", requirement) for requirement in pinned)
