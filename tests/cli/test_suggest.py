# SPDX-License-Identifier: Apache-2.0
"""`quipu suggest` without a choice, and with impossible numbers of ranks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from quipu.agent.load import kept_models

from .conftest import Quipu


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    lines = [
        {"params": {"p": p, "n": n}, "callpath": "main", "metric": "time", "value": (1.0 + n) / p * (1.0 + 0.01 * run)}
        for p in (1, 2, 4)
        for n in (100, 200, 300)
        for run in range(2)
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


ASKED = ("--budget", "50%", "--target", "p=64,n=1000", "--repetitions", "2")


def test_where_all_is_measured_nothing_is_modelled(
    quipu_here: Quipu, measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_models, "analyze_once", None)
    answer = quipu_here("suggest", measured, *ASKED)
    assert answer.code == 0
    assert "9 points, 9 of them measured" in answer.out
    assert "have their 2 runs: give further values, such as --values n=100,200,300,400" in answer.err
    found = json.loads(quipu_here("suggest", measured, *ASKED, "--json").out)
    assert found["suggestions"] == []
    assert found["spent"] == pytest.approx(found["whole"])
    assert found["budget"] == pytest.approx(found["whole"] / 2)


def test_ranks_are_whole_numbers(quipu_here: Quipu, measured: Path) -> None:
    answer = quipu_here("suggest", measured, *ASKED, "--values", "p=1.5,2")
    assert answer.code == 1
    assert answer.err.strip() == ("quipu: error: p is the number of ranks and must be a whole number, not 1.5")


@pytest.mark.parametrize("strategy", ["posterior", "cpf", "grid"])
@pytest.mark.parametrize("budget", ["10%", "0.01"])
def test_a_budget_that_is_spent_says_how_much_is_needed(
    quipu_here: Quipu, measured: Path, budget: str, strategy: str
) -> None:
    asked = ("--target", "p=64,n=1000", "--repetitions", "2", "--strategy", strategy, "--values", "n=100,200,300,400")
    answer = quipu_here("suggest", measured, *asked, "--budget", budget)
    found = re.search(
        r"the budget of .*is used up: the measured runs took .*; for another run give --budget (\S+) or more",
        answer.err,
    )
    assert answer.code == 0 and found
    assert "suggested" not in answer.out
    needed = found[1]
    assert needed.endswith("%") == budget.endswith("%")
    enough = json.loads(quipu_here("suggest", measured, *asked, "--budget", needed, "--json").out)
    assert enough["suggestions"] and enough["budget"] < 1.2 * enough["spent"]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--budget", "nan"), "--budget 'nan': write core hours such as 2.5"),
        (("--budget", "-5%"), "--budget '-5%': write core hours such as 2.5"),
        (("--constraint", "import os"), "--constraint 'import os' is not an expression"),
        (("--constraint", "q > 1"), "--constraint 'q > 1': no parameter q"),
    ],
)
def test_wrong_options_are_named(quipu_here: Quipu, measured: Path, option: tuple[str, str], words: str) -> None:
    answer = quipu_here("suggest", measured, *ASKED, *option)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"quipu: error: {words}")
