# SPDX-License-Identifier: Apache-2.0
"""`quipu check`: held and failed expectations in every format, and one message for every mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from npm_packages import installed, sarif_problems
from patience import PATIENCE
from peers import installed_on_use

from .conftest import Quipu
from .runs import write_run

LINES = (
    '"lines": [{"configuration": 0, "ranks": 1, "paths": [], "lines": [], "callpath": [3], "line": [7], "metrics": {}}]'
)
GOOD = """
[[expect]]
path = "main"
grows = {n = "n^3"}
[[expect]]
path = "sweep"
grows = "n^3·p^-1"
[[expect]]
path = "main->exchange"
metric = "bytes_sent"
grows_at_most = "n^2"
at_most = "160*n^2"
"""


@pytest.fixture
def baseline(quipu_here: Quipu, heat: Path, tmp_path: Path) -> Path:
    (tmp_path / "write.toml").write_text(GOOD)
    answer = quipu_here("check", "write.toml", heat, "--baseline", "base.json", "--update-baseline")
    assert (answer.code, answer.out) == (0, "")
    return tmp_path / "base.json"


def test_what_holds_ends_with_0(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    (tmp_path / "expectations.toml").write_text(f'experiment = "{heat}"\n{GOOD}')
    answer = quipu_here("check", "expectations.toml")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[-1] == "4 expectations: 4 held"
    assert (
        "held       main->exchange  bytes_sent is at most 160*n^2"
        in quipu_here("check", "expectations.toml", "--all").out
    )


def test_a_change_is_found_and_named_in_every_format(quipu_here: Quipu, baseline: Path, tmp_path: Path) -> None:
    for n in (32, 64, 96, 128, 160):
        write_run(tmp_path / "now", 1, n, blocks=2)
    rules = 'path = "*"\nmetric = ["blocks", "visits"]\nscope = "exclusive"\nbaseline = "same"\nname = "as before"'
    (tmp_path / "e.toml").write_text(f'[[expect]]\npath = "main"\ngrows_at_most = {{n = "n^2"}}\n[[expect]]\n{rules}')
    answer = quipu_here(
        "check", "e.toml", "now", "--baseline", baseline, "--junit", "j.xml", "--sarif", "s.json", "--json"
    )
    assert answer.code == 3
    again = quipu_here("check", "e.toml", "now", "--baseline", baseline, "--junit", "j.xml", "--sarif", "s.json")
    assert again.code == 3  # over its own files, the command writes others
    results = json.loads(answer.out)["results"]
    failed = [one for one in results if one["state"] == "failed"]
    assert [(one["path"], one["metric"]) for one in failed] == [("main", "blocks"), ("main->sweep", "blocks")]
    assert failed[0]["causes"][0]["text"].startswith("sweep (heat.c:40): blocks n^3: 60·n³")
    last = failed[1]
    assert (last["file"], last["line"], last["name"]) == ("heat.c", 40, "as before")
    assert last["causes"] == [{"text": "sweep (heat.c:40): 123 M → 246 M (2×) blocks", "file": "heat.c", "line": 40}]
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert suite.get("failures") == "2"
    assert suite.get("tests") == str(len(results)) == "11"
    assert len(suite.findall(".//failure")) == 2
    installed_on_use("@microsoft/jest-sarif", installed)
    assert sarif_problems(tmp_path / "s.json") == []
    places = [
        one["locations"][0]["physicalLocation"]
        for one in json.loads((tmp_path / "s.json").read_text())["runs"][0]["results"]
    ]
    assert places[1] == {"artifactLocation": {"uri": "heat.c", "uriBaseId": "SRCROOT"}, "region": {"startLine": 40}}


def test_one_run_is_compared_with_the_baseline_of_many(quipu_here: Quipu, baseline: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "now", 2, 64, blocks=1.001)
    rule = '[[expect]]\npath = "main"\nmetric = ["blocks", "bytes_sent"]\nbaseline = "at_most"\n'
    (tmp_path / "e.toml").write_text(rule)
    words = ("check", "e.toml", "now", "--baseline", baseline)
    assert quipu_here(*words).code == 3
    (tmp_path / "e.toml").write_text(rule + "tolerance = 0.01\n")
    assert quipu_here(*words).code == 0


def test_less_effort_is_not_the_same_but_good_enough(quipu_here: Quipu, baseline: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "now", 2, 64, blocks=0.5)
    for rule, code in (("same", 3), ("at_most", 0)):
        (tmp_path / "e.toml").write_text(f'[[expect]]\npath = "sweep"\nbaseline = "{rule}"\n')
        assert quipu_here("check", "e.toml", "now", "--baseline", baseline).code == code


def test_what_cannot_be_decided_is_no_success(quipu_here: Quipu, tmp_path: Path) -> None:
    for n in (32, 64, 96):
        write_run(tmp_path / "now", 1, n)
    (tmp_path / "e.toml").write_text('[[expect]]\npath = "sweep"\ngrows = {n = "n^3"}\n')
    answer = quipu_here("check", "e.toml", "now")
    assert answer.code == 3
    assert "n has 3 values, measure at least 4" in answer.out
    (tmp_path / "e.toml").write_text('[[expect]]\npath = "swep"\nat_most = 3\n')
    assert "no call path or region matches swep" in quipu_here("check", "e.toml", "now").out


HOLDS = "[[expect]]\npath = 'main'\nat_most = 1\n"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", 1, "e.toml: contains no expectation"),
        ("[[expect]]\npath = 'main'\n", 1, "expect 1 (main): contains no rule; give one of grows"),
        ("[[expect]]\ngrows = 'n'\n", 1, "path"),
        ("[[expect]]\npath = 'main'\ngrow = 'n'\n", 1, "expect 1: grow is unknown; a table [[expect]] has at_most"),
        ("expects = 1\n", 1, "expects is unknown"),
        ("[[expect]]\npath='main'\ngrows={}\n", 1, "e.toml:1: expect 1 (main): a growth contains no parameter"),
        ("expect = 1\n", 1, "expect must be a list"),
        ("[[expect]\n", 1, "e.toml:1: is not TOML"),
        ("[[expect]]\npath = 'main'\ngrows = 'n+p'\n", 1, "growth 'n+p': 'n + p' is not understood"),
        ("[[expect]]\npath = 'main'\ngrows = 'm'\n", 1, "'m' is no parameter"),
        ("[[expect]]\npath = 'main'\ngrows = {m = 'm'}\n", 1, "no parameter m; the experiment has: p, n"),
        ("[[expect]]\npath = 'main'\ngrows = {n = 'p'}\n", 1, "growth 'p' in n has the parameter p"),
        ("[[expect]]\npath = 'main'\nat_most = 'exp(n)'\n", 1, "'exp(n)'"),
        ("[[expect]]\npath = 'main'\nat_most = 'n^1e999'\n", 1, "is no exponent"),
        ("[[expect]]\npath = 'main'\nat_most = '1e308*n^3'\n", 1, "e.toml: at_most of main: model 1e+308·n³ has no"),
        (
            "[[expect]]\npath = 'main'\nmetric = 'flops'\nat_most = 1\n",
            1,
            "no metric 'flops' was measured; there are: blocks",
        ),
        ("[[expect]]\npath = 'main'\nmetric = 'time'\nbaseline = 'same'\n", 2, "a rule compares with a baseline"),
        ("[[expect]]\npath = 'main'\nbaseline = 'equal'\n", 1, "baseline"),
        ("[[expect]]\npath = 'main'\nat_most = 1\ntolerance = -1\n", 1, "tolerance"),
        (
            "baseline = 'none.json'\n[[expect]]\npath = 'main'\nbaseline = 'same'\n",
            2,
            "the baseline does not exist; write it with",
        ),
        ("baseline = 'e.toml'\n[[expect]]\npath = 'main'\nbaseline = 'same'\n", 1, "e.toml"),
        (
            f"{HOLDS}# next\n[[expect]]\npath = 'main'\nat_most = 1\ntolerance = -1\n",
            1,
            "e.toml:5: expect 2: tolerance",
        ),
        (f"{HOLDS}[[ expect ]]\npath = 'main'\ngrow = 'n'\n", 1, "e.toml:4: expect 2: grow is unknown"),
        (f"{HOLDS}[[expect]]\npath = 'main'\ngrows = 'm'\n", 1, "e.toml:4: expect 2 (main): growth 'm': "),
        ("expect = [{path = 'main', at_most = 1}, 2]\n", 1, "e.toml: expect 2 must be a table"),
    ],
)
def test_one_message_for_every_mistake(
    text: str, code: int, words: str, *, quipu_here: Quipu, heat: Path, tmp_path: Path
) -> None:
    (tmp_path / "e.toml").write_text(text)
    answer = quipu_here("check", "e.toml", heat)
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith("quipu: error: ")
    assert words in answer.err


def test_wrong_places_end_in_one_message(quipu_here: Quipu, heat: Path, baseline: Path, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text('[[expect]]\npath = "main"\nbaseline = "same"\n')
    (tmp_path / "n.txt").write_text("mine")
    (tmp_path / "other.xml").write_text('<testsuites name="pytest tests"><testsuite/></testsuites>')
    (tmp_path / "other.sarif").write_text(
        '{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "clang-tidy"}}}]}'
    )
    for words, code, message in (
        (("check", "none.toml"), 1, "none.toml"),
        (("check", "e.toml"), 2, "EXPERIMENT is missing"),
        (("check", "e.toml", "nowhere"), 1, "nowhere: the experiment does not exist"),
        (("check", "e.toml", heat, "--update-baseline"), 2, "e.toml: the baseline is missing"),
        (
            ("check", "e.toml", heat, "--baseline", "e.toml", "--update-baseline"),
            2,
            "e.toml is an input of this command",
        ),
        (
            ("check", "e.toml", heat, "--baseline", "n.txt", "--update-baseline"),
            2,
            "n.txt exists and contains no baseline",
        ),
        (
            ("check", "e.toml", heat, "--baseline", baseline, "--junit", "other.xml"),
            2,
            "other.xml exists and contains no JUnit XML of quipu check",
        ),
        (
            ("check", "e.toml", heat, "--baseline", baseline, "--sarif", "other.sarif"),
            2,
            "other.sarif exists and contains no SARIF of quipu check",
        ),
        (
            ("check", "e.toml", heat, "--baseline", baseline, "--junit", "no/where.xml"),
            2,
            "the folder no does not exist",
        ),
    ):
        answer = quipu_here(*words)
        assert answer.code == code, words
        assert message in answer.err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"schema": 1', '"schema": 9', "has schema 9, this Quipu reads schema 1"),
        ('"parameters": ["p", "n"]', '"parameters": ["p"]', "points"),
        ('"parameters": ["p", "n"]', '"parameters": ["p", "../n"]', "parameters"),
        ('"blocks": [', '"blocks": [[1], ', "entries and call paths differ in number"),
        ('"blocks": [[', '"blocks": [[[1, 2, 3], ', "must contain one or two numbers"),
        ('"parent": -1', '"parent": 7', "before its parent"),
        (
            '"lines": []',
            LINES.replace("0", "99").replace("[3]", "[]").replace("[7]", "[]"),
            "the configuration 99 does not exist",
        ),
        (
            '"lines": []',
            LINES,
            "refers to a call path or a line that does not exist",
        ),
    ],
)
def test_a_damaged_baseline_names_its_file(
    old: str, new: str, words: str, *, quipu_here: Quipu, heat: Path, baseline: Path, tmp_path: Path
) -> None:
    text = baseline.read_text()
    assert old in text
    baseline.write_text(text.replace(old, new, 1))
    (tmp_path / "e.toml").write_text('[[expect]]\npath = "main"\nbaseline = "same"\n')
    answer = quipu_here("check", "e.toml", heat, "--baseline", baseline)
    assert answer.code == 1
    assert answer.err.startswith(f"quipu: error: {baseline}: ")
    assert words in answer.err


def test_pytest_has_a_test_for_each_expectation(heat: Path, tmp_path: Path) -> None:
    (tmp_path / "expectations.toml").write_text(
        f'experiment = "{heat}"\n{GOOD}at_most = 7\n'.replace('"160*n^2"\nat_most = 7', "7")
    )
    (tmp_path / "bad.expectations.toml").write_text("[[expect]]\n")
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-m", "pytest", "-p", "quipu.pytest_plugin", "-p", "no:cacheprovider", "-v", "--rootdir=."]
    done = subprocess.run(
        [*words, "expectations.toml", "bad.expectations.toml", "--continue-on-collection-errors"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert "main->sweep: blocks grows like n^3·p^-1 PASSED" in done.stdout
    assert "main->exchange: bytes_sent is at most 7 FAILED" in done.stdout
    assert "1 failed, 3 passed, 1 error" in done.stdout
    assert "bad.expectations.toml:1: expect 1: " in done.stdout
