# SPDX-License-Identifier: Apache-2.0
"""`quipu model --loops`: the loops of call paths and how often they run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs_corpus import programs, unpack

from .conftest import Quipu
from .runs import write_experiment


@pytest.fixture(scope="module")
def stencil(tmp_path_factory: pytest.TempPathFactory) -> str:
    (program,) = programs(["prk_Stencil"])
    return str(unpack(program, tmp_path_factory.mktemp("corpus")) / "runs")


def test_loops_with_most_of_a_metric_come_first(quipu_here: Quipu, stencil: str) -> None:
    found = json.loads(quipu_here("model", stencil, "--loops", "--metric", "flops", "--json").out)
    assert (found["format"], found["metric"]) == ("quipu-loop-list", "flops")
    first = found["loops"][0]
    assert first["path"] == ["main"]
    assert first["place"].startswith("stencil.c:")
    assert first["depth"] == 3
    assert first["share"] > 0.5
    assert first["executions"].endswith("(n - 4)^2")
    assert first["exact"] is True
    assert [loop["share"] for loop in found["loops"]] == sorted(
        (loop["share"] for loop in found["loops"]), reverse=True
    )
    assert sum(loop["share"] for loop in found["loops"]) == pytest.approx(1.0)


def test_a_table_of_few_says_how_many_there_are(quipu_here: Quipu, stencil: str) -> None:
    done = quipu_here("model", stencil, "--loops", "--top", "2", "--path", "main")
    assert done.out.count("stencil.c:") == 2
    assert "executions, all ranks together" in done.out
    assert "further loops are not shown (--top)" in done.err


def test_executions_are_predicted_at_a_point(quipu_here: Quipu, stencil: str) -> None:
    asked = ("model", stencil, "--loops", "--metric", "flops", "--at", "p=16,n=1000")
    found = json.loads(quipu_here(*asked, "--json").out)
    assert found["point"] == {"p": 16, "n": 1000}
    first = found["loops"][0]
    assert first["low"] <= first["value"] <= first["high"]
    assert round(first["value"]) % 996**2 == 0  # a multiple of (n - 4)^2
    shown = quipu_here(*asked)
    assert "executions  90 % interval" in shown.out and "point" in shown.out


def test_a_prediction_names_the_loops_with_most(quipu_here: Quipu, stencil: str) -> None:
    shown = quipu_here("predict", stencil, "--metric", "flops", "--at", "p=16,n=1000").out
    ranking, loops = shown.split("loops with most flops there")
    assert "stencil.c:" not in ranking
    assert "stencil.c:" in loops and "(n - 4)^2" in loops
    for options in (["--inclusive"], ["--metric", "bytes_sent"]):
        assert (
            "loops with most" not in quipu_here("predict", stencil, "--at", "p=16,n=1000", "-m", "flops", *options).out
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--at", "p=4"], "--at: no value for n"),
        (["--metric", "time"], "--loops: the measurements contain no time of loops"),
        (["--metric", "flops,blocks"], "--loops shows one metric"),
        (["--path", "nowhere"], "nowhere"),
    ],
)
def test_what_has_no_loops_is_one_error(quipu_here: Quipu, stencil: str, options: list[str], message: str) -> None:
    done = quipu_here("model", stencil, "--loops", *options)
    assert done.code and message in done.err


def test_measurements_without_loops_say_so(quipu_here: Quipu, tmp_path: Path) -> None:
    done = quipu_here("model", str(write_experiment(tmp_path / "heat", 1)), "--loops", "--metric", "blocks")
    assert done.code and "compile with the wrappers" in done.err
