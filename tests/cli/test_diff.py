# SPDX-License-Identifier: Apache-2.0
"""`quipu diff`: effort exactly, time with its significance, across linker names, and one message for every mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from quipu.agent.compare import differing
from quipu.agent.compare.causes import PairLines
from quipu.agent.compare.sides import Pair, Side
from quipu.agent.merge.experiment import load_experiment

from .conftest import Quipu
from .runs import write_run

SIZES = (32, 64, 96, 128)


@pytest.fixture
def sides(tmp_path: Path) -> Path:
    for n in SIZES:
        for repetition in (1, 2, 3):
            write_run(tmp_path / "a", 2, n, repetition)
            write_run(tmp_path / "b", 2, n, repetition, slower=1.5, blocks=1 if n < 100 else 1.001)
    return tmp_path


def test_effort_is_exact_and_time_is_tested(quipu_here: Quipu, sides: Path) -> None:
    found = json.loads(quipu_here("diff", "a", "b", "--json").out)
    assert found["format"] == "quipu-diff"
    (only,) = found["effort"]
    assert (only["path"], only["metric"], only["of"]) == (["main", "sweep"], "blocks", 4)
    assert only["configurations"] == [3]
    assert only["point"] == {"p": 2, "n": 128}
    assert only["after"] - only["before"] == round(0.001 * only["before"])
    assert only["region"]["line"] == 40
    program = found["times"][-1]
    assert program["path"] == ["program"]
    assert program["significant"]
    assert program["ratio"] == pytest.approx(1.5, rel=0.01)
    assert program["repetitions"] == [3, 3]


def test_the_tables_say_what_differs_and_what_does_not(quipu_here: Quipu, sides: Path) -> None:
    shown = quipu_here("diff", "a", "b").out
    assert "main->sweep  heat.c:40" in shown
    assert "+0.100%" in shown
    assert "Mann-Whitney" in shown
    same = quipu_here("diff", "a", "a").out
    assert "no effort differs: visits, blocks, bytes_sent, comm_size" in same
    assert "no, p = 1" in same
    assert "yes" not in same


def with_fingerprint(folder: Path, digest: str) -> None:
    programs = {"app": {"path": "app", "digest": digest, "compiler": "clang"}}
    for path in folder.glob("*/run.json"):
        content = json.loads(path.read_text())
        (path.parent / "SHA256SUMS").unlink(missing_ok=True)
        path.write_text(json.dumps({**content, "fingerprint": {"facts": {"machine": "vm"}, "programs": programs}}))


def test_the_fingerprints_say_what_was_measured_otherwise(quipu_here: Quipu, sides: Path) -> None:
    with_fingerprint(sides / "a", "1" * 32)
    with_fingerprint(sides / "b", "2" * 32)
    found = json.loads(quipu_here("diff", "a", "b", "--json").out)
    assert "measured under different conditions: app: two builds (11111111 or 22222222)" in found["notes"]
    assert len(found["quality"]) == 2
    same = json.loads(quipu_here("diff", "a", "a", "--json").out)
    assert (
        "both were measured under the same conditions: program, command, measuring options and machine" in same["notes"]
    )


def test_mixed_runs_are_refused_by_commands_that_read_them_unless_allowed(quipu_here: Quipu, sides: Path) -> None:
    with_fingerprint(sides / "a", "1" * 32)
    with_fingerprint(sides / "b", "2" * 32)
    for path in (sides / "b").iterdir():
        path.rename(sides / "a" / f"{path.name}-of-b")
    refused = quipu_here("tensor", "fit", "a", "--budget", 1)
    assert refused.code != 0 and "--mixed" in refused.err
    assert quipu_here("tensor", "fit", "a", "--budget", 1, "--mixed").code == 0
    assert "--mixed" in quipu_here("callgraph", "--help").out


def test_single_runs_of_different_points_are_compared_with_a_note(quipu_here: Quipu, sides: Path) -> None:
    shown = quipu_here("diff", "a/p=2,n=32.r1", "a/p=2,n=64.r1", "--metric", "blocks,time").out
    assert "different configurations" in shown
    assert "too few repetitions" in shown
    assert "bytes_sent" not in shown


def test_archives_are_read_once_for_all_differences_of_a_configuration(
    sides: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    class Lines(PairLines):
        def __init__(self, pair: Pair, configuration: int) -> None:
            read.append(configuration)
            super().__init__(pair, configuration)

    monkeypatch.setattr(differing, "PairLines", Lines)
    runs = [sides / "a" / f"p=2,n={n}.r1" for n in (32, 64)]
    before, after = (Side(str(run), load_experiment(run), run) for run in runs)
    view = differing.difference_view(before, after)
    assert len(view.effort) > 1 and read == [0]


def test_a_baseline_is_a_side_and_other_linker_names_are_matched(quipu_here: Quipu, sides: Path) -> None:
    (sides / "e.toml").write_text('[[expect]]\npath = "main"\nat_most = 1\n')
    quipu_here("check", "e.toml", "a", "--baseline", "base.json", "--update-baseline")
    text = (sides / "base.json").read_text()
    (sides / "base.json").write_text(text.replace('"name": "sweep"', '"name": "_Z5sweepv"'))
    found = json.loads(quipu_here("diff", "base.json", "b", "--json").out)
    assert [one["path"] for one in found["effort"]] == [["main", "sweep"]]
    assert found["times"] == []
    assert "1 regions have other linker names and are compared by their displayed ones" in found["notes"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("a",), 2, "B"),
        (("a", "nowhere"), 1, "nowhere: the experiment does not exist"),
        (("a", "other"), 1, "a and other have no configuration in common"),
        (("a", "extrap.txt"), 2, "a and extrap.txt have different parameters: p, n and x"),
        (("a", "b", "--metric", "flops"), 2, "--metric: flops was not measured on both sides; both have: visits"),
        (("a", "b", "--top", "0"), 2, "--top"),
        (("a", "b", "--over-ranks", "median"), 2, "--over-ranks"),
    ],
)
def test_one_message_for_every_mistake(
    words: tuple[str, ...], code: int, message: str, *, quipu_here: Quipu, sides: Path
) -> None:
    write_run(sides / "other", 4, 8)
    write_run(sides / "other", 4, 16)
    (sides / "extrap.txt").write_text(
        "PARAMETER x\nPOINTS (1) (2) (3)\nREGION r\nMETRIC time\nDATA 1\nDATA 2\nDATA 3\n"
    )
    answer = quipu_here("diff", *words)
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith("quipu: error: ")
    assert message in answer.err
