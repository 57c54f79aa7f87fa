# SPDX-License-Identifier: Apache-2.0
"""`quipu efficiency`: planted efficiencies in archives, measured and predicted, in every kind of output."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from quipu.agent.archive.fingerprint import Fingerprint
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import RankRecord, RunArchive, RunValues
from quipu.agent.archive.write import write_archive
from quipu.agent.merge.statistics import cells_of, statistics_of
from quipu.modeling.experiment import CallTree, Metric, Region, RegionKind

from .conftest import Quipu
from .runs import write_counts, write_run

METRICS = (
    Metric("visits", "1", "effort", "sum", ""),
    Metric("time", "s", "cost", "sum", ""),
    Metric("wait_time", "s", "cost", "sum", ""),
    Metric("instructions", "1", "effort", "sum", ""),
    Metric("comm_size", "1", "effort", "max", ""),
)
REGIONS = (
    Region("main", "main", file="app.c", line=9),
    Region("solve", "solve", file="app.c", line=3),
    Region("MPI_Allreduce", "MPI_Allreduce", RegionKind.MPI),
)
TREE = CallTree(REGIONS, np.arange(3), np.array([-1, 0, 0]))
UNEVEN = 0.25
"""The last rank works 25 % longer than the mean, the first 25 % shorter: the load balance is 1 / 1.25."""
RATE = 1e-9


def transfer(p: int) -> float:
    return 2e-2 * math.log2(p)


def planted(p: int, n: int) -> dict[str, float]:
    """Return the efficiencies of p ranks: n instructions are divided among them, and a hundredth is done by each."""
    total = n * (1.0 + 0.01 * p)
    most = RATE * total / p * (1.0 + UNEVEN)
    elapsed = most + transfer(p)
    found = {
        "load_balance": 1.0 / (1.0 + UNEVEN),
        "communication": most / elapsed,
        "serialization": 1.0,
        "transfer": most / elapsed,
        "instruction": n * (1.0 + 0.01 * 2) / total,
    }
    found["parallel"] = found["load_balance"] * found["communication"]
    return {**found, "global": found["parallel"] * found["instruction"]}


def write(
    folder: Path,
    p: int,
    n: int,
    wait: str = "all",
    ranks_kept: bool = True,
    repetition: int = 1,
    effort: str = "instructions",
) -> Path:
    metrics = tuple(replace(one, name=effort) if one.name == "instructions" else one for one in METRICS)
    share = np.linspace(1.0 - UNEVEN, 1.0 + UNEVEN, p)
    work = np.rint(n * (1.0 + 0.01 * p) / p * share)
    useful = RATE * work
    elapsed = useful.max() + transfer(p)
    rows = {
        "visits": [np.ones(p), np.ones(p), np.ones(p)],
        "time": [np.zeros(p), useful, elapsed - useful],
        "wait_time": [np.zeros(p), np.zeros(p), useful.max() - useful if wait == "all" else np.zeros(p)],
        effort: [np.zeros(p), work, np.zeros(p)],
        "comm_size": [np.zeros(p), np.zeros(p), np.full(p, p)],
    }
    values = RunValues(
        np.repeat(np.arange(3), p),
        np.tile(np.arange(p), 3),
        np.zeros(3 * p, dtype=np.int64),
        {
            metric.name: np.concatenate(rows[metric.name]).astype(np.float64)
            if metric.unit == "s"
            else np.concatenate(rows[metric.name]).astype(np.int64)
            for metric in metrics
        },
    )
    metadata = RunMetadata(
        parameters={"p": p, "n": n},
        repetition=repetition,
        command=("mpirun", "-n", str(p), "./app", str(n)),
        seconds=1.0,
        exit_code=0,
        ranks=p,
        metrics=metrics,
        rank_columns=ranks_kept,
        fingerprint=Fingerprint({"--mpi-wait": wait}),
    )
    records = tuple(RankRecord(rank, f"node{rank // 4}", 100 + rank) for rank in range(p))
    statistics = statistics_of(cells_of(values, metrics, np.arange(p), 3).cells, metrics)
    kept = values if ranks_kept else None
    return write_archive(RunArchive(metadata, TREE, kept, statistics, records), folder).path


def write_all(folder: Path, **options: object) -> Path:
    for p in (2, 4, 8, 16, 32):
        for n in (10**9, 2 * 10**9, 4 * 10**9):
            write(folder, p, n, **options)  # type: ignore[arg-type]
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_all(tmp_path_factory.mktemp("planted") / "app")


def test_measured_efficiencies_are_the_planted_ones(quipu_here: Quipu, runs: Path) -> None:
    document = json.loads(quipu_here("efficiency", runs, "--json").out)
    assert len(document["configurations"]) == len(document["runs"]) == 15
    for column in document["configurations"]:
        p, n = column["ranks"], int(column["point"]["n"])
        found = {name: factor["value"] for name, factor in column["factors"].items()}
        for name, value in planted(p, n).items():
            assert found[name] == pytest.approx(value, rel=1e-6), (p, n, name)
        assert found["work_balance"] == pytest.approx(0.8, rel=1e-6)
        assert column["missing"] == {}
        assert column["scaling"] == ("none" if p == 2 else "strong")
        assert column["reference"] == ("" if p == 2 else f"p=2, n={n} (2 processors)")
    losses = document["losses"]
    column = document["configurations"][losses["configuration"]]
    lost = sum(one["total"] for one in losses["call_paths"]) + losses["rest"]
    assert lost / losses["elapsed"] == pytest.approx(1.0 - column["factors"]["global"]["value"])
    assert losses["slowest_rank"] == 31
    assert {tuple(one["path"]) for one in losses["call_paths"]} == {("main", "solve"), ("main", "MPI_Allreduce")}


@pytest.mark.parametrize(("p", "n"), [(256, 4 * 10**9), (128, 8 * 10**9), (16, 3 * 10**9)])
def test_predicted_efficiencies_are_the_planted_ones(quipu_here: Quipu, runs: Path, p: int, n: int) -> None:
    document = json.loads(quipu_here("efficiency", runs, "--at", f"p={p},n={n}", "--json").out)
    column = document["configurations"][-1]
    assert column["predicted"]
    assert column["run"] is None
    assert (column["ranks"], column["threads"], column["scaling"]) == (p, 1, "strong")
    assert ("predicted" in column["reference"]) == (n not in (10**9, 2 * 10**9, 4 * 10**9))
    factors = {name: factor["value"] for name, factor in column["factors"].items()}
    assert factors["parallel"] == pytest.approx(factors["load_balance"] * factors["communication"])
    assert factors["global"] == pytest.approx(factors["parallel"] * factors["computation"])
    for name, value in planted(p, n).items():
        factor = column["factors"][name]
        assert factor["value"] == pytest.approx(value, rel=0.01), name
        assert factor["low"] <= factor["value"] <= factor["high"]


def test_what_is_not_separated_is_said(quipu_here: Quipu, tmp_path: Path) -> None:
    folder = write_all(tmp_path / "local", wait="local")
    answer = quipu_here("efficiency", folder, "--at", "p=64,n=1e9")
    assert "serialization" not in answer.out.split("global")[1]
    assert "not separated" in answer.out
    assert "--mpi-wait all" in answer.out.replace("\n", " ")
    write_all(tmp_path / "ideal", wait="local")
    separated = quipu_here("efficiency", folder, "--ideal-network", tmp_path / "ideal").out
    assert separated.count("100.0%") > answer.out.count("100.0%")
    assert "serialization " in separated


def test_statistics_have_bounds(quipu_here: Quipu, tmp_path: Path) -> None:
    write(tmp_path / "many", 16, 10**9, ranks_kept=False)
    document = json.loads(quipu_here("efficiency", tmp_path / "many", "--json").out)
    factors = document["configurations"][0]["factors"]
    for name in ("load_balance", "communication", "parallel"):
        value = planted(16, 10**9)[name]
        assert factors[name]["low"] - 1e-9 <= value <= factors[name]["high"] + 1e-9
    assert document["losses"] is None
    assert any("values of single ranks" in note for note in document["notes"])
    answer = quipu_here("efficiency", tmp_path / "many", "--at", "p=64,n=1e9")
    assert answer.code == 1
    assert "--rank-columns" in answer.err


def test_a_prediction_does_without_the_runs_of_which_ranks_are_not_known(quipu_here: Quipu, tmp_path: Path) -> None:
    folder = write_all(tmp_path / "app")
    for n in (10**9, 2 * 10**9, 4 * 10**9):
        write(folder, 64, n, ranks_kept=False)
    document = json.loads(quipu_here("efficiency", folder, "--at", "p=256,n=1e9", "--json").out)
    column = document["configurations"][-1]
    for name in ("load_balance", "communication", "parallel", "global"):
        assert column["factors"][name]["value"] == pytest.approx(planted(256, 10**9)[name], rel=0.01), name


def test_the_table(quipu_here: Quipu, tmp_path: Path) -> None:
    for p in (2, 4):
        write(tmp_path / "app", p, 10**9)
    out = quipu_here("efficiency", tmp_path / "app", "--at", "p=4,n=1e9").out
    assert out.startswith("app: efficiency\n")
    assert "scaling  strong, relative to p=2, n=1000000000 (2 processors)" in out
    for p in (2, 4):
        write(tmp_path / "app", p, 2 * 10**9)
    assert "same other parameters" in " ".join(quipu_here("efficiency", tmp_path / "app").out.split())
    assert "  load balance " in out
    assert "      transfer " in out
    assert out.index("load balance") < out.index("communication efficiency") < out.index("computation scalability")
    lost = next(line for line in out.splitlines() if line.startswith("lost at"))
    assert "rank 3 has the most time outside of MPI" in lost
    assert "app.c:3" in next(line for line in out.splitlines() if line.startswith("main->solve"))


def test_call_paths(quipu_here: Quipu, runs: Path) -> None:
    answer = quipu_here("efficiency", runs, "--path", "solve")
    assert "\nmain->solve\n" in answer.out
    assert "lost at" not in answer.out
    assert quipu_here("efficiency", runs, "--path", "main->*").out.count("parallel efficiency") == 2
    assert "no call path matches" in quipu_here("efficiency", runs, "--path", "nothing").err


def test_the_layout_of_talp(quipu_here: Quipu, tmp_path: Path) -> None:
    write(tmp_path / "app", 8, 10**9)
    write(tmp_path / "app", 8, 10**9, repetition=2)
    rows = list(csv.DictReader(StringIO(quipu_here("efficiency", tmp_path / "app", "--csv").out)))
    assert [row["name"] for row in rows] == ["Global", "Global"]
    row, planned = rows[0], planted(8, 10**9)
    assert (row["numCpus"], row["numMpiRanks"], row["numNodes"]) == ("8", "8", "2")
    assert (row["numMpiCalls"], row["numMeasurements"]) == ("8", "8")
    assert float(row["parallelEfficiency"]) == pytest.approx(planned["parallel"], abs=1e-4)
    assert float(row["mpiParallelEfficiency"]) == pytest.approx(planned["parallel"], abs=1e-4)
    assert float(row["mpiLoadBalance"]) == pytest.approx(0.8, abs=1e-4)
    inside, outside = float(row["mpiLoadBalanceIn"]), float(row["mpiLoadBalanceOut"])
    assert inside * outside == pytest.approx(0.8, abs=1e-3)
    assert inside == pytest.approx(np.linspace(0.75, 1.25, 8)[4:].mean() / 1.25, abs=1e-4)
    elapsed, useful, mpi = (float(row[name]) for name in ("elapsedTime", "usefulTime", "mpiTime"))
    assert useful + mpi == pytest.approx(8 * elapsed)
    assert useful / (8 * elapsed) == pytest.approx(planned["parallel"], rel=1e-4)
    scoped = quipu_here("efficiency", tmp_path / "app", "--csv", "--path", "solve").out
    assert scoped.splitlines()[1].startswith('"main->solve",8,0,8,2,8.0,0,0,0,8,0,')


def test_wrong_usage(quipu_here: Quipu, runs: Path, tmp_path: Path) -> None:
    assert quipu_here("efficiency", runs, "--json", "--csv").code == 2
    assert "--scaling 'some'" in quipu_here("efficiency", runs, "--scaling", "some").err
    assert quipu_here("efficiency", runs, "--at", "p=0.5,n=3").code == 2
    other = tmp_path / "other.json"
    other.write_text('{"measurements": []}')
    assert "efficiencies need run archives" in quipu_here("efficiency", other).err


def test_what_ranks_wait_for(quipu_here: Quipu, runs: Path) -> None:
    """In every view: the last rank has a quarter more to do than the mean, and the first a quarter less."""
    waiting = json.loads(quipu_here("efficiency", runs, "--json").out)["waiting"]
    assert [one["path"] for one in waiting] == [["main", "MPI_Allreduce"]]
    assert waiting[0]["unexplained"] == pytest.approx(0.0, abs=1e-9)
    (cause,) = waiting[0]["causes"]
    assert (cause["path"], cause["rank"], cause["more_work"]) == (["main", "solve"], 31, True)
    assert cause["seconds"] == pytest.approx(waiting[0]["seconds"])
    useful = RATE * 4e9 * 1.32 / 32
    assert waiting[0]["seconds"] == pytest.approx(UNEVEN * useful, rel=1e-6)
    for command in (("efficiency", runs), ("diagnose", runs)):
        rows = [line.split() for line in quipu_here(*command).out.splitlines()]
        at = next(number for number, row in enumerate(rows) if row[:1] == ["main->MPI_Allreduce"] and len(row) == 4)
        waits, cause = rows[at : at + 2]
        assert cause[0] == "main->solve" and cause[4:] == ["31", "more", "work", "app.c:3"]
        assert cause[1:4] == waits[1:]
    assert "operations in which ranks wait at p=32, n=4000000000, as measured" in quipu_here("diagnose", runs).out
    document = json.loads(quipu_here("diagnose", runs, "--json").out)
    assert document["waiting"] == waiting


def test_the_excess_of_effort_is_shown_and_modeled(quipu_here: Quipu, tmp_path: Path) -> None:
    folder = write_all(tmp_path / "app", effort="blocks")
    out = quipu_here("show", folder, "--metric", "effort_excess", "--exclusive", "--at", "p=4,n=1e9").out
    excess = 1e9 * 1.04 / 4 * UNEVEN
    assert f"{excess / 1e6:.1f} M" in next(line for line in out.splitlines() if "solve" in line)
    assert quipu_here("show", folder).out.count("effort_excess") == 0  # where nobody asks for it
    document = json.loads(
        quipu_here("predict", folder, "--metric", "effort_excess", "--at", "p=256,n=1e9", "--json").out
    )
    assert document["program"]["value"] == pytest.approx(1e9 * (1.0 / 256 + 0.01) * UNEVEN, rel=0.01)
    assert "solve" in quipu_here("model", folder, "--metric", "effort_excess").out
    assert (
        "basic blocks of each rank"
        in quipu_here("predict", folder, "--over-ranks", "max", "--metric", "effort_excess", "--at", "p=4,n=1e9").err
    )


def test_the_delay_that_call_paths_cause_is_shown_and_predicted(quipu_here: Quipu, runs: Path, tmp_path: Path) -> None:
    out = quipu_here("show", runs, "--metric", "delay_caused", "--exclusive", "--at", "p=4,n=1e9").out
    seconds = RATE * 1e9 * 1.04 / 4 * UNEVEN
    lines = out.splitlines()
    assert f"{1e3 * seconds:.1f} ms" in next(line for line in lines if "solve" in line)
    assert "0 s" in next(line for line in lines if "MPI_Allreduce" in line)
    point = ("--at", "p=256,n=1e9", "--json")
    document = json.loads(quipu_here("predict", runs, "--metric", "delay_caused", *point).out)
    expected = RATE * 1e9 * (1.0 / 256 + 0.01) * UNEVEN
    assert document["program"]["value"] == pytest.approx(expected, rel=0.1)
    assert quipu_here("show", runs / "p=4,n=1000000000.r1", "--metric", "delay_caused").code == 0
    write(tmp_path / "many", 16, 10**9, ranks_kept=False)
    assert "--rank-columns" in quipu_here("show", tmp_path / "many", "--metric", "delay_caused").err


def test_runs_that_only_counted_are_left_out(quipu_here: Quipu, tmp_path: Path) -> None:
    folder = tmp_path / "heat"
    for p in (1, 2, 4, 8):
        write_run(folder, p, 64)
    write_counts(folder, 32, 64)
    document = json.loads(quipu_here("efficiency", folder, "--at", "p=64,n=64", "--json").out)
    assert [column["ranks"] for column in document["configurations"]] == [1, 2, 4, 8, 64]
    for metric in ("effort_excess", "delay_caused"):
        assert quipu_here("predict", folder, "--metric", metric, "--at", "p=16,n=64").code == 0
        assert quipu_here("show", folder, "--metric", metric).code == 0
