# SPDX-License-Identifier: Apache-2.0
"""`quipu show` of a run: annotated source lines, inlined functions, and overhead."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from class_counts import classes_of
from quipu.agent.archive.run import RunArchive, SourceEffort, SourceLine
from quipu.agent.archive.write import write_archive
from quipu.agent.merge.statistics import cells_of, statistics_of
from quipu.agent.profile.overhead import OVERHEAD
from quipu.modeling.experiment import Metric

from .conftest import Quipu
from .runs import METRICS, TREE, write_run

CODE = """double at(const double *x, long i) {
    return x[i];
}

void sweep(double *x, long n) {
    for (long i = 0; i < n; i++)
        // relax
        x[i] = 0.5 * at(x, i);
    done(x);



    done(x);
}
"""
EFFORT = ("instructions", "flops", "flops_single", "flops_double", "loads", "stores", "bytes_loaded", "bytes_stored")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path)


def make_run(tmp_path: Path, pair: float = 2e-8) -> Path:
    """Write a run of two ranks with source lines, of which measuring was a large part. pair: seconds of a visit."""
    source = tmp_path / "heat.c"
    source.write_text(CODE)
    os.utime(source, (1, 1))
    written = write_run(tmp_path / "plain", 2, 32)
    added = tuple(Metric(name, "B" if name.startswith("bytes") else "1", "effort", "sum", name) for name in EFFORT)
    metrics = (*METRICS[:3], *added, *METRICS[3:], OVERHEAD)
    values = written.values
    assert values is not None
    columns = {name: np.zeros(10, dtype=np.int64) for name in EFFORT}
    columns["instructions"][[0, 1, 2, 3]] = [50, 50, 1000, 3000]  # main and sweep, ranks 0 and 1
    overhead = np.zeros(10)
    overhead[[2, 3]] = 2e-4
    values = replace(values, metrics={**values.metrics, **columns, OVERHEAD.name: overhead})
    lines = (
        SourceLine("sweep(double*, long)", "sweep", str(source), 6),
        SourceLine("sweep(double*, long)", "sweep", str(source), 8),
        SourceLine("sweep(double*, long)", "sweep", str(source), 13),
        SourceLine("at(double const*, long)", "at", str(source), 2),
        SourceLine("gone()", "gone", "/nowhere/gone.c", 4),
    )
    rows = {name: np.zeros(6, dtype=np.int64) for name in ("blocks", *EFFORT)}
    rows["instructions"][:] = [100, 1500, 500, 4, 1796, 100]
    rows["flops"][:] = [0, 0, 300, 0, 0, 0]
    effort = SourceEffort(np.array([0, 1, 1, 1, 1, 1]), np.array([4, 0, 1, 2, 3, 4]), lines, rows)
    costs = {
        "visits": 82.0,
        "pair": pair,
        "outside": 1e-8,
        "counters": 1e-5,
        "total": 4e-4,
        "time": 2e-3,
        "agents": 0.1,
    }
    changed = RunArchive(
        replace(written.metadata, metrics=metrics, overhead=costs),
        TREE,
        values,
        statistics_of(cells_of(values, metrics, np.arange(2), len(TREE)).cells, metrics),
        written.ranks,
        classes=classes_of(effort),
    )
    return write_archive(changed, tmp_path / "runs").path


def test_annotated_source(quipu_here: Quipu, run: Path) -> None:
    """Files below the current folder are named relative to it."""
    answer = quipu_here("show", run, "--source")
    assert answer.code == 0
    assert answer.err == ""
    notes, *listings = answer.out.split("\n\n")
    assert "note: /nowhere/gone.c: the source file does not exist" in notes
    assert [listing.rstrip() for listing in listings] == [
        """heat.c: sweep(double*, long)
instructions 1002, flops 150, 48.9% of the run
line  instructions  flops  share  source
   6           750      0  36.6%      for (long i = 0; i < n; i++)
   7                                      // relax
   8           250    150  12.2%          x[i] = 0.5 * at(x, i);
   …
  13             2      0   0.1%      done(x);""",
        """heat.c: at(double const*, long)
instructions 898, flops 0, 43.8% of the run
line  instructions  flops  share  source
   2           898      0  43.8%      return x[i];""",
        """/nowhere/gone.c: gone()
instructions 100, flops 0, 4.9% of the run
line  instructions  flops  share  source
   4           100      0   4.9%""",
    ]


def test_source_that_is_elsewhere_has_its_whole_path(
    quipu_here: Quipu, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")  # where the folder for temporary files has a long name
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert f"\n{tmp_path}/heat.c: sweep(double*, long)\n" in quipu_here("show", run, "--source").out


def test_inlined_functions(quipu_here: Quipu, run: Path) -> None:
    out = quipu_here("show", run, "--inlined", "-m", "instructions", "--path", "*sweep").out
    assert out.split("\n\n")[1] == (
        """main->sweep
instructions 2000, 97.6% of the run
instructions excl  share  came from
             1002  50.1%  sweep(double*, long)  (heat.c)
              898  44.9%  at(double const*, long)  (heat.c)
               50   2.5%  (no source line)
               50   2.5%  gone()  (gone.c)
"""
    )


@pytest.mark.parametrize("pattern", ["at", "at(*", "h*.c", "*/heat.c", "heat.c"])
def test_functions_and_files_that_fit(quipu_here: Quipu, run: Path, pattern: str) -> None:
    out = quipu_here("show", run, "--source", "--path", pattern).out
    assert "at(double const*, long)" in out
    assert "gone" not in out.split("\n\n", 1)[1]
    assert ("sweep(double*" in out) == pattern.endswith(".c")


def test_patterns_that_fit_nothing(quipu_here: Quipu, run: Path) -> None:
    for options in (["--source"], ["--inlined"], ["--source", "--json"]):
        answer = quipu_here("show", run, *options, "--path", "swee")
        assert (answer.code, answer.out) == (1, "")
        assert (
            answer.err == "quipu: error: no call path matches --path swee: write the whole name, or "
            "put * for any part of it [nothing-fits]\n"
        )


def test_json_has_the_sum_over_ranks(quipu_here: Quipu, run: Path) -> None:
    data = json.loads(quipu_here("show", run, "--source", "--json", "-m", "flops", "--over-ranks", "sum").out)
    assert data["format"] == "quipu-source"
    assert [entry["values"] for entry in data["lines"] if entry["line"] == 8] == [{"flops": 300.0}]
    assert data["call_paths"][data["lines"][-1]["callpath"]]["path"] == ["main", "sweep"]
    chosen = json.loads(quipu_here("show", run, "--inlined", "--json", "--path", "main").out)
    assert {entry["function"] for entry in chosen["lines"]} == {"gone()"}


def test_source_that_is_younger_than_the_run(quipu_here: Quipu, run: Path, tmp_path: Path) -> None:
    (tmp_path / "heat.c").write_text("short\n")
    out = quipu_here("show", run, "--source").out
    assert "heat.c was changed after the run" in out.replace("\n", " ")
    assert "   8           250    150  12.2%\n" in out


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--source", "-m", "time"], "source lines have no time; they have: blocks, instructions, flops"),
        (["--source", "--over-ranks", "max"], "choose mean or sum"),
        (["--path", "x"], "--path belongs to --source and --inlined"),
        (["--source", "--iterations", "step"], "--source and --iterations are different views"),
    ],
)
def test_options_that_do_not_fit(quipu_here: Quipu, run: Path, options: list[str], error: str) -> None:
    answer = quipu_here("show", run, *options)
    assert answer.code != 0
    assert error in answer.err


def test_runs_without_source_lines(quipu_here: Quipu, run: Path, tmp_path: Path) -> None:
    assert "has no source lines" in quipu_here("show", tmp_path / "plain" / "p=2,n=32.r1", "--inlined").err


def test_an_experiment_shows_the_source_lines_of_its_last_run(quipu_here: Quipu, run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "experiment"
    folder.mkdir()
    run.rename(folder / run.name)
    write_run(folder, 1, 16)
    answer = quipu_here("show", folder, "--source", "--path", "sweep")
    assert "heat.c: sweep" in answer.out
    assert f"this view shows one run, by default the last one (--at selects another): {folder / run.name}" in answer.err
    assert "--at p=9: not measured in" in quipu_here("show", folder, "--source", "--at", "p=9").err


def test_what_measuring_cost_and_where_it_dominates(quipu_here: Quipu, run: Path) -> None:
    answer = quipu_here("show", run, "-m", "time,overhead")
    lines = " ".join(answer.out.split("\n\n")[0].split())
    assert "measuring about 400 µs (20.0% of the time): 82 visits at 20.0 ns, counters 10.0 µs; node agents" in lines
    assert "note: measuring is 61.6% of the time of main->sweep, because of counters of sweep" in lines
    assert "overhead incl" in answer.out


def test_the_rule_of_a_filter_that_leaves_out_what_costs_most(quipu_here: Quipu, tmp_path: Path) -> None:
    lines = " ".join(quipu_here("show", make_run(tmp_path, 1e-5)).out.split())
    assert (
        "of main->sweep, because of visits of sweep: exclude them by this rule of a filter: EXCLUDE MANGLED sweep"
        in lines
    )
