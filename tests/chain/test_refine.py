"""The cycle of `quipu refine` on a real program: what it keeps and drops, its files, and going on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from quipu.agent.campaign.campaign import LOCK_FILE
from quipu.agent.campaign.file import read_campaign
from quipu.agent.campaign.refinement import refine
from quipu.agent.campaign.task import Silent
from quipu.agent.installation import native_file
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.errors import FormatError, MeasurementError
from quipu.report.formats import read_filter

SOURCE = """
#include <cstdio>
#include <cstdlib>
__attribute__((noinline)) double often(double x, int n) {
    for (int i = 0; i < n; i++)
        x = x * 0.5 + 1;
    return x;
}
__attribute__((noinline)) double sweep(int n) {
    double x = 0;
    for (long i = 0; i < 4000L * n; i++)
        x = often(x, 2);
    return x;
}
int main(int argc, char **argv) { printf("%g\\n", sweep(atoi(argv[1]))); }
"""

CAMPAIGN = """
[experiment]
name = "cycle"
build = "{compiler} -O1 program.cpp -o program"
command = "./program {{n}}"
[parameters]
n = [100, 200, 300]
[refine]
{more}
"""


def declare(folder: Path, more: str) -> Path:
    (folder / "program.cpp").write_text(SOURCE)
    path = folder / "cycle.toml"
    path.write_text(CAMPAIGN.format(compiler=native_file("quipu-c++"), more=more))
    return path


def test_the_cycle_drops_what_is_entered_too_often(tmp_path: Path) -> None:
    campaign = read_campaign(declare(tmp_path, "iterations = 1\nat = {n = 400}"))
    result = refine(campaign)
    kept = read_filter(result.filter_file).region_rules
    assert {rule.pattern for rule in kept if not rule.exclude} == {"main", "_Z5sweepi"}
    (iteration,) = result.iterations
    assert (iteration.marked, iteration.executed) == (2, 2)
    folder = tmp_path / "cycle"
    experiment = load_experiment(folder / "iteration-1")
    assert experiment.configurations == 3
    assert {region.name for region in experiment.tree.regions} == {"main", "_Z5sweepi"}
    assert (folder / "iteration-1" / "n=200.r1" / "run.json").is_file()
    assert "measurements" in json.loads((folder / "iteration-1.json").read_text())
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.*") if path.name != LOCK_FILE}
    again = refine(campaign)
    assert again.names == result.names
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path in before} == before


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("overhead = 2", "refine.overhead|overhead must be"),
        ("at = {p = 3}", "refine.at needs a value for each of: n"),
        ('strategy = "best"', "refine.strategy: 'best' is none of budget, filter, expand, static"),
        ('strategy = "static"', "refine.program is missing"),
        ('statements = "mean"', "refine.statements: 'mean' is none of"),
        ("speed = 1", "refine.speed is unknown"),
    ],
)
def test_mistakes_in_the_file(tmp_path: Path, more: str, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        read_campaign(declare(tmp_path, more))


def test_a_program_that_does_not_build(tmp_path: Path) -> None:
    campaign = read_campaign(declare(tmp_path, ""))
    (tmp_path / "program.cpp").write_text("int main( {")
    with pytest.raises(MeasurementError, match=r"cycle\.toml: build: .* ended with exit code 1"):
        refine(campaign, Silent())
