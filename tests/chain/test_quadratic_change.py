# SPDX-License-Identifier: Apache-2.0
"""A sort that became quadratic is found in runs of small sizes, and in a single run, with the line that did it."""

from __future__ import annotations

import json
from pathlib import Path

from example_programs import copy_sources

from .conftest import quipu

_SORT = "std::sort(keys.begin(), keys.end());"
_SLOW = """for (std::size_t i = 1; i < keys.size(); ++i)
        for (std::size_t j = i; j > 0 && keys[j - 1] > keys[j]; --j)
            std::swap(keys[j - 1], keys[j]);"""


def test_a_quadratic_sort_is_caught(tmp_path: Path) -> None:
    folder = copy_sources("samplesort", tmp_path)
    quipu("campaign", "small.toml", cwd=folder)
    held = quipu("check", "expectations.toml", cwd=folder)
    assert "4 expectations: 4 held" in held.stdout
    quipu("check", "expectations.toml", "--baseline", "before.json", "--update-baseline", cwd=folder)
    source = folder / "local.cpp"
    text = source.read_text()
    assert _SORT in text
    source.write_text(text.replace(_SORT, _SLOW, 1))
    file = folder / "small.toml"
    file.write_text(file.read_text().replace("small.runs", "slow.runs").replace("points = [[2, 512], ", "points = ["))
    quipu("campaign", "small.toml", cwd=folder)

    words = ("check", "expectations.toml", "slow.runs", "--baseline", "before.json", "--json")
    found = quipu(*words, cwd=folder, check=False)
    assert found.returncode == 3
    by_rule = {one["rule"]: one for one in json.loads(found.stdout)["results"]}
    sort = by_rule["blocks grows like n*log2(n)"]
    assert sort["state"] == "failed"
    assert sort["message"].startswith("n^2: ")
    assert "samplesort::local_sort" in sort["path"]
    line = 1 + text[: text.index(_SORT)].count("\n") + 1  # of the inner loop
    assert any(Path(one["file"]).name == "local.cpp" and one["line"] == line for one in sort["causes"])

    single = ("check", "one.toml", "slow.runs/p=1,n=1024.r1", "--baseline", "before.json", "--json")
    (folder / "one.toml").write_text('[[expect]]\npath = "main"\nbaseline = "at_most"\ntolerance = 0.01\n')
    found = quipu(*single, cwd=folder, check=False)
    assert found.returncode == 3
    one = json.loads(found.stdout)["results"][0]
    assert "at p=1, n=1024" in one["message"]
    assert any(Path(cause["file"]).name == "local.cpp" and cause["line"] == line for cause in one["causes"])
