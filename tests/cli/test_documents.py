# SPDX-License-Identifier: Apache-2.0
"""`--json` of every command prints one document of documents.toml and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.cli.main import application
from quipu.agent.launch.raw_folder import write_launch
from quipu.report.documents import documents, json_schema, parts

from .conftest import Quipu
from .test_chain import program

WITHOUT = {"completion": "a script of the shell", "callgraph": "JSON is what it prints"}


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield before + name, command


def test_every_command_has_it() -> None:
    found = dict(commands(typer.main.get_command(application())))
    without = {name for name, one in found.items() if not any("--json" in option.opts for option in one.params)}
    assert without == set(WITHOUT)


def test_every_type_is_known() -> None:
    known = set(json_schema()["$defs"])
    assert {one.name for one in (*documents(), *parts())} == known
    references = {line.split('"')[0] for line in json.dumps(json_schema()).split("#/$defs/")[1:]}
    assert references <= known
    assert all(key.text for one in (*documents(), *parts()) for key in one.keys)


@pytest.mark.parametrize("kind", ["extrap-json", "extrap-jsonl", "csv", "parquet", "folded", "hatchet", "thicket"])
def test_what_was_exported(quipu_here: Quipu, heat: Path, tmp_path: Path, kind: str) -> None:
    document = json.loads(quipu_here("export", heat, "--format", kind, "-o", "there", "--json").out)
    assert document["export_format"] == kind
    assert document["title"].startswith("heat")
    assert (tmp_path / document["file"]).exists()


def test_what_was_written(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    report = json.loads(quipu_here("report", heat, "-o", "r.html", "--json").out)
    assert report["bytes"] == (tmp_path / "r.html").stat().st_size
    generated = json.loads(quipu_here("generate", "--functions", 3, "-o", "bench", "--json").out)
    assert generated["functions"] == json.loads((tmp_path / "bench" / "complexity.json").read_text())["functions"]


CAMPAIGN = """
[experiment]
name = "sizes"
repetitions = 2
command = "./app {n}"
[parameters]
n = [10, 20]
"""


def test_runs_and_a_campaign_of_a_program_that_prints(quipu: Quipu, tmp_path: Path) -> None:
    program(tmp_path)
    answer = quipu("run", "--json", "-p", "n=10", "--rep", 2, "-o", "runs", "--", "./app", 10)
    document = json.loads(answer.out)
    assert [(run["parameters"], run["repetition"], run["partial"]) for run in document["runs"]] == [
        ({"n": 10}, 1, False),
        ({"n": 10}, 2, False),
    ]
    assert document["error"] is None
    assert answer.err.splitlines()[-2:] == ["100", "100"]  # what the program prints
    failing = quipu("run", "--json", "-p", "n=20", "--rep", 2, "-o", "runs", "--", "./app", 20, "x")
    document = json.loads(failing.out)
    assert failing.code == 3
    assert [(run["exit_code"], run["partial"]) for run in document["runs"]] == [(3, True)]
    assert "ended with exit code 3" in document["error"]
    (tmp_path / "app.toml").write_text(CAMPAIGN, encoding="utf-8")
    for before, runs in ((0, 4), (4, 0)):
        document = json.loads(quipu("campaign", "app.toml", "--json").out)
        assert (document["complete"], document["complete_before"], len(document["runs"])) == (4, before, runs)


def test_a_quiet_campaign_says_what_fails_and_nothing_else(quipu: Quipu, tmp_path: Path) -> None:
    program(tmp_path)
    (tmp_path / "app.toml").write_text(CAMPAIGN.replace("{n}", "{n} x"), encoding="utf-8")
    answer = quipu("campaign", "app.toml", "--quiet")
    said = [line for line in answer.err.splitlines() if line.startswith("quipu: ")]
    assert answer.code != 0
    assert said
    assert all(line.startswith("quipu: error: app ended with exit code 3") for line in said)


def test_merged_runs(quipu_here: Quipu, tmp_path: Path) -> None:
    for number in (1, 2):
        raw = tmp_path / f".raw-{number}"
        raw.mkdir()
        rank_profile(0).write(raw)
        write_launch(raw, RunMetadata({"p": 1}, command=("./app",), exit_code=0))
    answer = quipu_here("merge", ".raw-1", ".raw-2", "-o", "app", "--json")
    document = json.loads(answer.out)
    assert answer.code == 0
    assert document["title"] == "app"
    assert [(Path(run["path"]).name, run["repetition"]) for run in document["runs"]] == [("p=1.r1", 1), ("p=1.r2", 2)]
