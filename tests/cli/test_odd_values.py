# SPDX-License-Identifier: Apache-2.0
"""Unusual values in files: negative times, parameters of 0, callers without values."""

from __future__ import annotations

from pathlib import Path

from .conftest import Quipu

POWERS = "2 4 8 16 32"


def written(folder: Path, points: str, **regions: str) -> None:
    lines = ["PARAMETER p", f"POINTS {points}", "METRIC time"]
    for name, values in regions.items():
        lines += [f"REGION {name.replace('_', '->')}", *(f"DATA {value}" for value in values.split())]
    (folder / "t.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_negative_times_are_said(quipu_here: Quipu, tmp_path: Path) -> None:
    written(tmp_path, POWERS, f="1 -2 3 4 5", g="1 2 3 4 5")
    for command in (["model", "t.txt"], ["predict", "t.txt", "--at", "p=64"]):
        said = " ".join(quipu_here(*command).out.split())
        assert "note: time: 1 value is below 0, for example of f at p=4." in said and "[negative-values]" in said
    written(tmp_path, POWERS, f="1 2 3 4 5")
    assert "below 0" not in quipu_here("model", "t.txt").out


def test_a_parameter_is_0_where_it_was_measured(quipu_here: Quipu, tmp_path: Path) -> None:
    written(tmp_path, "0 1 2 4 8", f="1 3 5 9 17")
    answer = quipu_here("predict", "t.txt", "--at", "p=0")
    assert answer.code == 0 and "program 1.00 s" in " ".join(answer.out.split())
    assert quipu_here("predict", "t.txt", "--at", "p=-1").code == 2
    written(tmp_path, "0 1 2 4 8", f="1 3 5 9 17", g="0 8 9 10 11")
    answer = quipu_here("predict", "t.txt", "--at", "p=0")
    assert answer.code == 0 and "program 1.00 s" in " ".join(answer.out.split())
    assert "1 call path has a model that is not defined at this point" in answer.err
    written(tmp_path, "1 2 4 8 16", f="3 5 9 17 33")
    answer = quipu_here("predict", "t.txt", "--at", "p=0")
    assert answer.code == 2 and "--at: p=0: the number must be above 0" in answer.err


def test_a_caller_without_measurements_lacks_no_model(quipu_here: Quipu, tmp_path: Path) -> None:
    written(tmp_path, POWERS, main_f="1 2 4 8 16")
    for more in ([], ["--inclusive"]):
        answer = quipu_here("predict", "t.txt", "--at", "p=64", *more)
        assert answer.code == 0 and "no model" not in answer.out + answer.err
    assert "1 model that is 0 or could not be made is not shown" in quipu_here("model", "t.txt").err
    written(tmp_path, POWERS, main_f="1 2 4 8 16", main_g="1e300 2 4 8 16")
    assert "1 call path has no model of time" in quipu_here("predict", "t.txt", "--at", "p=64").err


def test_ranks_are_whole_numbers(quipu_here: Quipu, tmp_path: Path) -> None:
    written(tmp_path, POWERS, f="1 2 3 4 5")
    quipu_here("model", "t.txt", "-o", "models.json")
    wrong = "p is the number of ranks and must be a whole number, not 1.5"
    for command in (
        ["predict", "t.txt", "--at"],
        ["predict", "models.json", "--at"],
        ["diagnose", "t.txt", "--at"],
        ["filter", "t.txt", "--at"],
        ["filter", "models.json", "--at"],
        ["kernels", "t.txt", "--at"],
        ["report", "t.txt", "-o", "t.html", "--at"],
        ["suggest", "t.txt", "--budget", "10%", "--target"],
    ):
        answer = quipu_here(*command, "p=1.5")
        assert (answer.code, answer.out, answer.err) == (2, "", f"quipu: error: {command[-1]}: {wrong}\n")
    assert quipu_here("predict", "t.txt", "--at", "p=64.0").code == 0
    shares = "0.5 1 2 4 8"  # a parameter with other values is not a number of ranks, whatever its name
    written(tmp_path, shares, f="1 2 3 4 5")
    assert quipu_here("predict", "t.txt", "--at", "p=1.5").code == 0


def test_parameters_that_are_none_are_named_with_their_option(quipu_here: Quipu, tmp_path: Path) -> None:
    written(tmp_path, POWERS, f="1 2 3 4 5")
    for option in ("--processes", "--size", "--frequency"):
        answer = quipu_here("kernels", "t.txt", "--at", "p=64", option, "q")
        wrong = f"quipu: error: {option} 'q': no parameter of this experiment; it has: p\n"
        assert (answer.code, answer.out, answer.err) == (2, "", wrong)


def test_numbers_are_written_in_ascii_without_separators(quipu_here: Quipu, tmp_path: Path) -> None:
    """Python parses more texts as numbers; archives contain no numbers above 1e300."""
    written(tmp_path, POWERS, f="1 2 3 4 5")
    for number in ("1_0", "\u0663", "1e305", "9" * 400, "infinity"):
        answer = quipu_here("predict", "t.txt", "--at", f"p={number}")
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.endswith("is not a finite number; write 4, 0.5 or 1e6, up to 1e300\n")


def test_metrics_have_different_numbers_of_repetitions(quipu_here: Quipu, tmp_path: Path) -> None:
    """Extra-P's files may repeat time more often than counts; the row of a configuration has all repetitions."""
    lines = ["PARAMETER p", "POINTS 2 4 8 16 32", "REGION main->f", "METRIC time"]
    lines += [f"DATA {p} {p + 0.1} {p + 0.2}" for p in (2, 4, 8, 16, 32)]
    lines += ["METRIC bytes_sent", *(f"DATA {8 * p}" for p in (2, 4, 8, 16, 32))]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shown = quipu_here("show", "t.txt", "--at", "p=16", "--metric", "time,bytes_sent")
    assert shown.code == 0 and "median of 3 repetitions" in shown.out
    assert ["16", "3", "16.1", "s", "1.2%"] in [line.split() for line in shown.out.splitlines()]
    assert "128 B" in shown.out
    for command in (
        ["model", "t.txt", "--noise"],
        ["predict", "t.txt", "--at", "p=64"],
        ["report", "t.txt", "--at", "p=64", "-o", "t.html"],
        ["diff", "t.txt", "t.txt"],
    ):
        assert quipu_here(*command).code == 0, command
