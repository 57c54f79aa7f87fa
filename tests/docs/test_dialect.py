# SPDX-License-Identifier: Apache-2.0
"""The check of wordings finds them in prose, comments, docstrings and messages, and nowhere else."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parents[2] / ".ci" / "site"


@pytest.fixture(scope="module")
def dialect() -> dict[str, object]:
    sys.path.insert(0, str(SITE))
    try:
        return runpy.run_path(str(SITE / "dialect.py"))
    finally:
        sys.path.remove(str(SITE))


def test_every_wording_is_an_expression_with_a_proposal(dialect: dict[str, object]) -> None:
    found = dialect["wordings"]()  # type: ignore[operator]
    assert len(found) == len({one.found for one in found}) > 20
    for one in found:
        re.compile(one.found)
        assert one.write and set(one.most) == {"docs", "code"}


@pytest.mark.parametrize(
    ("name", "content", "lines"),
    [
        ("a.md", "Text beside\nit.\n\n```sh\nbeside\n```\n\nIt says\nso, `beside` it.\n", [1, 8]),
        (
            "a.py",
            '"""It says so."""\nbeside = "beside"  # beside it\nx = "stands beside"\n# it says\n# so\n',
            [1, 2, 3],
        ),
        ("a.cpp", "int beside; // it says so\n/* stands\n * beside */\n", [1, 3]),
        ("a.js", "const beside = 1; // beside\n", [1]),
    ],
)
def test_texts_are_searched_and_code_is_not(
    dialect: dict[str, object], name: str, content: str, lines: list[int]
) -> None:
    read = [(name, *one) for one in dialect["texts"](name, content)]  # type: ignore[operator]
    wording = dialect["Wording"]
    found = [
        place
        for expression in (r"\bbeside\b", r"\bsays? so\b")
        for place in dialect["places"](wording(expression, "next to", {}), read)  # type: ignore[operator]
    ]
    assert sorted({int(place.split(":")[1]) for place in found}) == lines
