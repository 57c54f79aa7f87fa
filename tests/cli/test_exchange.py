# SPDX-License-Identifier: Apache-2.0
"""Experiments of other tools on the command line, and ours for them."""

from __future__ import annotations

import csv
import errno
import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from peers import needs
from quipu.agent.cli.export_stacks import SUFFIXES as STACKS
from quipu.agent.merge.experiment import load_experiment
from quipu.report.formats.detect import read_experiment

from .conftest import Quipu

_TEXT = """PARAMETER p
POINTS 4 8 16 32 64
METRIC time
REGION main->solve
DATA 16 16
DATA 64 64
DATA 256 256
DATA 1024 1024
DATA 4096 4096
REGION main->setup
DATA 3 3
DATA 3 3
DATA 3 3
DATA 3 3
DATA 3 3
"""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A file of Extra-P: solve grows with p², setup is constant."""
    path = tmp_path / "runs.txt.gz"
    path.write_bytes(gzip.compress(_TEXT.encode()))
    return path


def test_every_command_takes_a_file_of_extrap(quipu_here: Quipu, runs: Path) -> None:
    shown = quipu_here("show", runs, "--at", "p=8")
    assert "5 configurations: p = 4, 8, 16, 32, 64" in shown.out
    assert "Extra-P text: values are treated as exclusive, one for all ranks" in shown.out
    models = json.loads(quipu_here("model", runs, "--json", "-o", "models.json").out)["models"]
    assert {entry["path"][-1]: entry["text"] for entry in models} == {"solve": "p²", "setup": "3"}
    for source in (runs, "models.json"):
        ranking = json.loads(quipu_here("predict", source, "--at", "p=128", "--json").out)["ranking"]
        assert [entry["path"] for entry in ranking] == [["main", "solve"], ["main", "setup"]]
        assert ranking[0]["value"] == pytest.approx(128**2, rel=0.01)
    assert quipu_here("filter", runs, "--at", "p=128", "-o", "f.filter").code == 0
    assert quipu_here("report", runs, "-o", "r.html").code == 0
    page = Path("r.html").read_text(encoding="utf-8")
    assert "runs.txt.gz" in page


@pytest.mark.parametrize(("options", "name"), [((), "heat.json"), (("--format", "extrap-jsonl"), "heat.jsonl")])
def test_an_export_holds_the_experiment(
    options: tuple[str, ...], name: str, quipu_here: Quipu, heat: Path, tmp_path: Path
) -> None:
    answer = quipu_here("export", heat, *options)
    assert (answer.code, answer.out, answer.err) == (0, "", f"quipu: wrote {name}\n")
    ours, back = load_experiment(heat), read_experiment(tmp_path / name)
    assert back.parameters == ours.parameters
    assert back.points.tolist() == ours.points.tolist()
    labels = {back.tree.label(node): node for node in range(len(back.tree))}
    for node in range(len(ours.tree)):
        for metric, values in ours.values.items():
            assert np.array_equal(back.values[metric][labels[ours.tree.label(node)]], values[node])
    assert {metric: entry.kind for metric, entry in back.metrics.items()} == {
        metric: entry.kind for metric, entry in ours.metrics.items()
    }
    again = quipu_here("export", heat, *options)
    assert again.code == 0  # over an export there may be another


def test_the_suffix_chooses_the_format(quipu_here: Quipu, runs: Path, tmp_path: Path) -> None:
    assert quipu_here("export", runs, "-o", "x.jsonl", "--inclusive").code == 0
    first = json.loads((tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first.pop("exporter") == "quipu"
    assert first == {"params": {"p": 4}, "callpath": "main", "metric": "time", "value": [19.0, 19.0]}


@pytest.mark.parametrize("chosen", ["folded", "speedscope", "chrome-trace", "pprof", "hatchet"])
def test_call_trees_for_viewers(chosen: str, quipu_here: Quipu, heat: Path, runs: Path, tmp_path: Path) -> None:
    name = f"p=4,n=64.r1{STACKS[chosen]}"
    for _ in range(2):  # over an export there may be another
        answer = quipu_here("export", heat / "p=4,n=64.r1", "-f", chosen)
        metrics = "time" if chosen in ("folded", "chrome-trace") else "time, visits, blocks, bytes_sent"
        metrics += ", comm_size" if chosen == "hatchet" else ""
        assert (answer.code, answer.out) == (0, "")
        assert answer.err == f"quipu: wrote {name}: {metrics}; mean over ranks\n"
    again = quipu_here("export", heat / "p=4,n=64.r1", "-o", f"other{STACKS[chosen]}")
    assert again.code == 0  # the suffix chooses the format
    assert (tmp_path / name).read_bytes() == (tmp_path / f"other{STACKS[chosen]}").read_bytes()
    single = quipu_here("export", runs, "-f", chosen, "--at", "p=8", "-o", "out")
    values = "p=8, median of 2 repetitions, mean over ranks"
    assert single.code == 0 and single.err.endswith(f"wrote out: time; {values}\n")
    assert quipu_here("export", runs, "-f", "extrap-json", "-o", "out").code == 2
    largest = quipu_here("export", heat, "-f", chosen, "--at", "p=4,n=64", "--over-ranks", "max", "-o", "largest")
    assert largest.err.endswith("; p=4, n=64, median of 2 repetitions, max over ranks\n")


def test_measurements_of_caliper_are_not_written_over(quipu_here: Quipu, runs: Path, tmp_path: Path) -> None:
    measured = (
        "__rec=node,id=12,attr=8,data=time,parent=3\n__rec=ctx,ref=12,attr=13,data=1\n__rec=globals,attr=14,data=x\n"
    )
    (tmp_path / "mine").mkdir()
    mine = tmp_path / "mine" / "heat.p4.cali"
    mine.write_text(measured, encoding="utf-8")
    assert "is not an export to Caliper" in quipu_here("export", runs, "-f", "thicket", "-o", "mine").err
    at = ("--at", ",".join(f"{name}={value:g}" for name, value in _first_point(runs).items()))
    assert (
        "contains no export to caliper"
        in quipu_here("export", runs, "-f", "caliper", *at, "-o", "mine/heat.p4.cali").err
    )
    assert mine.read_text(encoding="utf-8") == measured
    for _ in range(2):  # over exports of its own it is written again
        assert quipu_here("export", runs, "-f", "thicket", "-o", "all").code == 0
        assert quipu_here("export", runs, "-f", "caliper", *at, "-o", "one.cali").code == 0


def test_an_export_for_thicket_has_no_runs_that_are_gone(quipu_here: Quipu, runs: Path, tmp_path: Path) -> None:
    def export(*more: str) -> str:
        answer = quipu_here("export", "mine.txt", "-f", "thicket", "-o", "all", *more)
        assert answer.code == 0
        return answer.err

    (tmp_path / "mine.txt").write_text(_TEXT)
    assert "removed" not in export()
    first = {path.name for path in (tmp_path / "all").iterdir()}
    (tmp_path / "other.txt").write_text(_TEXT)  # whose runs are put beside them
    assert quipu_here("export", "other.txt", "-f", "thicket", "-o", "all").code == 0
    others = {path.name for path in (tmp_path / "all").iterdir()} - first
    (tmp_path / "all" / "mine.p=7.r1.cali").write_text("measured")
    (tmp_path / "mine.txt").write_text(_TEXT.replace("POINTS 4 8", "POINTS 5 8"))
    assert "is not an export to Caliper" in quipu_here("export", "mine.txt", "-f", "thicket", "-o", "all").err
    assert first <= {path.name for path in (tmp_path / "all").iterdir()}
    assert "removed 2 files that an earlier export wrote for runs that mine no longer has" in export("--force")
    there = {path.name for path in (tmp_path / "all").iterdir()}
    assert others and first - there == {"mine.p=4.r1.cali", "mine.p=4.r2.cali"}
    assert there - first - others == {"mine.p=5.r1.cali", "mine.p=5.r2.cali", "mine.p=7.r1.cali"}


@pytest.mark.parametrize("before", [False, True])
def test_a_full_disk_leaves_no_part_of_a_folder_for_thicket(
    quipu_here: Quipu, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    if before:
        assert quipu_here("export", runs, "-f", "thicket", "-o", "all").code == 0
    there = {path: path.read_bytes() for path in tmp_path.rglob("*.cali")}
    written: list[int] = []

    def sync(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", sync)
    answer = quipu_here("export", runs, "-f", "thicket", "-o", "all")
    assert answer.code == 1
    assert "No space left on device (the disk is full" in answer.err
    assert (tmp_path / "all").exists() == before
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.cali")} == there


def _first_point(runs: Path) -> dict[str, float]:
    experiment = read_experiment(runs)
    return dict(zip(experiment.parameters, experiment.points[0].tolist(), strict=True))


def test_ranks_and_metrics_of_call_trees(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    run = heat / "p=4,n=64.r1"
    assert quipu_here("export", run, "-o", "b.folded", "--metric", "blocks", "--over-ranks", "sum").code == 0
    blocks = [line.rpartition(" ") for line in (tmp_path / "b.folded").read_text(encoding="utf-8").splitlines()]
    assert [(stack, int(number)) for stack, _, number in blocks] == [
        ("main", 48),
        ("main;sweep", 4 * 30 * 64**3 // 4),
        ("main;exchange", 160),
    ]
    apart = quipu_here("export", run, "-o", "r.speedscope.json", "--ranks", "--metric", "blocks")
    assert apart.err.endswith("wrote r.speedscope.json: blocks; 4 ranks, one sample each\n")
    profiles = json.loads((tmp_path / "r.speedscope.json").read_text(encoding="utf-8"))["profiles"]
    assert [profile["name"] for profile in profiles] == [f"blocks, rank {rank}" for rank in range(4)]
    assert {profile["endValue"] for profile in profiles} == {12 + 30 * 64**3 // 4 + 40}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["export", "nowhere"], 1, "nowhere: the experiment does not exist"),
        (["export", "models.json"], 1, "models.json: contains models, not measurements"),
        (
            ["export", "{runs}", "--format", "cube"],
            2,
            "--format 'cube': choose one of extrap-json, extrap-jsonl, csv, parquet, thicket",
        ),
        (
            ["export", "{runs}", "--metric", "time"],
            2,
            "--metric: a file of --format extrap-json always contains all metrics",
        ),
        (["export", "{runs}", "-f", "folded", "--at", "p=5"], 2, "--at: this configuration was not measured"),
        (["export", "{runs}", "-f", "folded", "--metric", "flops"], 1, "has no metric 'flops'; choose one of: time"),
        (["export", "{runs}", "-f", "folded", "--metric", "time,visits"], 2, "a file of --format folded has one"),
        (["export", "{runs}", "-f", "pprof", "--ranks"], 2, "--ranks: choose one of --format speedscope, chrome-trace"),
        (["export", "{runs}", "-f", "speedscope", "--ranks"], 2, "is an experiment: give the folder of one run"),
        (["export", "{runs}", "-f", "hatchet", "--inclusive"], 2, "belong to the formats of Extra-P, not to hatchet"),
        (
            ["export", "{runs}", "-f", "pprof", "-o", "precious.txt"],
            2,
            "precious.txt exists and contains no export to pprof",
        ),
        (["export", "{runs}", "-f", "folded", "-o", "precious.txt"], 2, "exists and contains no export to folded"),
        (
            ["export", "{runs}", "-f", "thicket", "-o", "precious.txt"],
            2,
            "precious.txt is a file, but Thicket reads a folder of files",
        ),
        (
            ["export", "{runs}", "-f", "thicket", "--metric", "time"],
            2,
            "--metric: a folder of --format thicket always contains all",
        ),
        (["export", "{runs}", "-o", "precious.txt"], 2, "precious.txt exists and contains no export of measurements"),
        (["export", "{runs}", "-o", "other.json"], 2, "other.json exists and contains no export of measurements"),
        (["export", "{runs}", "--over-ranks", "max"], 2, "--over-ranks max: "),
        (["export", "empty"], 1, "empty: contains no run archive"),
        (["model", "broken.json"], 1, "broken.json:2: is not JSON"),
        (["model", "broken.txt"], 1, "broken.txt:2: POINTS before any PARAMETER"),
        pytest.param(["show", "cubes"], 1, "profile.cubex: cannot be read as a Cube profile", marks=needs("pycubexr")),
        (["predict", "precious.txt", "--at", "p=1"], 1, "precious.txt: contains no measurements"),
    ],
)
def test_one_message(
    arguments: list[str], code: int, words: str, *, quipu_here: Quipu, runs: Path, tmp_path: Path
) -> None:
    for name, text in {
        "precious.txt": "# notes of years\n",
        "other.json": '{"parameters": ["p"], "measurements": {}}\n',  # of another tool
        "models.json": '{\n "format": "quipu-models",\n',
        "broken.json": '{"parameters":\n',
        "broken.txt": "\nPOINTS 4\n",
        "cubes/x.p4/profile.cubex": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "empty").mkdir()
    answer = quipu_here(*(argument.replace("{runs}", str(runs)) for argument in arguments))
    assert answer.code == code
    assert answer.err.startswith("quipu: error: ")
    assert words in answer.err
    assert (tmp_path / "precious.txt").read_text(encoding="utf-8") == "# notes of years\n"


def test_points_that_were_not_measured_can_be_shown(quipu_here: Quipu, tmp_path: Path) -> None:
    lines = ["PARAMETER p", "POINTS 2 4", "METRIC time", "REGION f", "DATA 3", "DATA nan", "METRIC visits", "REGION f"]
    (tmp_path / "gap.txt").write_text("\n".join([*lines, "DATA 7", "DATA 7"]) + "\n", encoding="utf-8")
    for at, visible in (("p=2", "3.00 s"), ("p=4", "visits")):
        answer = quipu_here("show", "gap.txt", "--at", at)
        assert answer.code == 0
        assert visible in answer.out
    exported = quipu_here("export", "gap.txt")
    assert "left out, because Extra-P needs every metric at every point: time of f" in exported.err


@needs("pandas")
def test_tables_are_read_by_pandas(quipu_here: Quipu, runs: Path, tmp_path: Path) -> None:
    import pandas

    experiment = read_experiment(runs)
    for suffix, read in (("csv", pandas.read_csv), ("parquet", pandas.read_parquet)):
        for _ in range(2):  # over an export of its own it is written again
            assert quipu_here("export", runs, "-o", f"all.{suffix}").code == 0
        table = read(tmp_path / f"all.{suffix}").set_index(["callpath", *experiment.parameters, "repetition"])
        assert set(table.columns) == set(experiment.metrics)
        for metric in experiment.metrics:
            wanted = experiment.frame(metric)[metric]
            found = table[metric].dropna().sort_index()
            pandas.testing.assert_series_equal(
                found, wanted.sort_index(), rtol=0.0, check_dtype=False, check_index_type=False
            )
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert "contains no export to csv" in quipu_here("export", runs, "-o", "mine.csv").err
    pandas.DataFrame({"a": [1.0]}).to_parquet(tmp_path / "mine.parquet")
    assert "contains no export to parquet" in quipu_here("export", runs, "-o", "mine.parquet").err
    assert pandas.read_parquet(tmp_path / "mine.parquet").columns.tolist() == ["a"]
    assert "contains exclusive values" in quipu_here("export", runs, "-f", "csv", "--inclusive").err


def _clashing(path: Path) -> Path:
    """An experiment whose parameters and metrics are called like columns, like each other, and like formulas."""
    lines = []
    for visits, callpath in ((2, 1), (4, 1), (2, 3), (4, 3)):
        for metric, value in (("visits", visits * callpath), ("Repetition", 5), ("=1+1", 7)):
            params = {"visits": visits, "callpath": callpath}
            lines.append({"params": params, "callpath": "=cmd->\x1b]0;x\x07\u202ef", "metric": metric, "value": value})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@needs("pandas")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_all_columns_of_a_table_differ(suffix: str, quipu_here: Quipu, tmp_path: Path) -> None:
    import pandas

    source = _clashing(tmp_path / "clash.jsonl")
    said = quipu_here("export", source, "-o", f"all.{suffix}").err
    assert "the parameter callpath is the column 'parameter callpath': another column has its name" in said
    assert "the metric Repetition is the column 'metric Repetition': another column has its name" in said
    table = {"csv": pandas.read_csv, "parquet": pandas.read_parquet}[suffix](tmp_path / f"all.{suffix}")
    formula = "'=1+1" if suffix == "csv" else "=1+1"
    names = ["callpath", "visits", "parameter callpath", "repetition", "metric visits", "metric Repetition", formula]
    assert table.columns.tolist() == names
    assert (table["metric visits"] == table["visits"] * table["parameter callpath"]).all()
    assert (table["metric Repetition"] == 5).all()
    assert (table[formula] == 7).all()
    frame = read_experiment(source).frame("visits")
    assert frame.index.names == ["callpath", "visits", "parameter callpath", "repetition"]
    assert frame.columns.tolist() == ["metric visits"]


def test_a_table_holds_no_formula_and_nothing_that_steers_a_terminal(quipu_here: Quipu, tmp_path: Path) -> None:
    quipu_here("export", _clashing(tmp_path / "clash.jsonl"), "-o", "all.csv")
    rows = list(csv.reader((tmp_path / "all.csv").read_text(encoding="utf-8").splitlines()))
    assert {row[0] for row in rows[1:]} == {"'=cmd->?]0;x??f"}
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]


def test_thicket_keeps_parameters_and_metrics_of_one_name(quipu_here: Quipu, tmp_path: Path) -> None:
    source = _clashing(tmp_path / "clash.jsonl")
    assert quipu_here("export", source, "--format", "thicket", "-o", "runs").code == 0
    again, before = read_experiment(tmp_path / "runs"), read_experiment(source)
    assert set(again.parameters) == {"visits", "callpath"}
    assert set(again.values) == set(before.values)
    places = [list(before.parameters).index(name) for name in again.parameters]
    order = [before.points[:, places].tolist().index(point) for point in again.points.tolist()]
    for name, values in before.values.items():
        assert np.nansum(again.values[name], axis=0).tolist() == np.nansum(values, axis=0)[order].tolist()
