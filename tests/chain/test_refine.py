# SPDX-License-Identifier: Apache-2.0
"""The cycle of `quipu refine` on a real program: selections, files, and continuation."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from quipu.agent.archive.read import read_archive
from quipu.agent.campaign import refinement
from quipu.agent.campaign.build import build
from quipu.agent.campaign.campaign import LOCK_FILE
from quipu.agent.campaign.file import read_campaign
from quipu.agent.campaign.overhead import Overhead
from quipu.agent.campaign.refinement import refine
from quipu.agent.campaign.repetition import run as run_program
from quipu.agent.campaign.selections import target_of
from quipu.agent.campaign.task import Silent
from quipu.agent.cli.main import run_command_line
from quipu.agent.installation import native_file
from quipu.agent.merge.experiment import load_experiment, scan_runs
from quipu.modeling.errors import FormatError, MeasurementError
from quipu.modeling.experiment import RegionKind
from quipu.report.formats import read_filter

from .given import PAIR, RECORDING, Given

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
    for (long i = 0; i < 16000L * n; i++)
        x = often(x, 2);
    return x;
}
int main(int argc, char **argv) { printf("%g\\n", sweep(atoi(argv[1]))); }
"""

INLINED = """
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
double far(double x);
static double each(double x) { return far(x) + 1; }
static double kernel(int n) {
    double x = 0;
    for (long i = 0; i < 20000L * n; i++)
        x += 1 / (x + 1.5);
    return x;
}
static double other(int n) {
    double x = 0;
    for (long i = 0; i < 20000L * n; i++)
        x = each(x);
    for (long i = 0; i < 20000L * n; i++) /* what hooks in each take cannot be mistaken for all of its time */
        x += 1 / (x + 2.5);
    return x;
}
int main(int argc, char **argv) {
    const int n = atoi(argv[1]);
    if (n > 250 && access("broken", F_OK) == 0)
        return 3;
    printf("%g %g\\n", kernel(n), other(n));
}
"""

PARALLEL = """
#include <cstdlib>
#include <mpi.h>
__attribute__((noinline)) double often(double x) { return x * 0.5 + 1; }
__attribute__((noinline)) double sweep(int n, int p) {
    double x = 0;
    for (long i = 0; i < 3000L * n / p; i++)
        x = often(x);
    return x;
}
__attribute__((noinline)) double border(int n) {
    volatile double x = 0;
    for (long i = 0; i < 3000L * n; i++)
        x = x * 0.5 + 1;
    return x;
}
int main(int argc, char **argv) {
    int p;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    double x = sweep(atoi(argv[1]), p) + border(atoi(argv[1])), sum;
    MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum < 0;
}
"""

CAMPAIGN = """
[experiment]
name = "cycle"
build = "{compiler} {options} -o program"
command = "./program {{n}}"
[parameters]
n = [100, 200, 300]
[refine]
{more}
"""

# Regions that are entered this often take less time than their hooks.
GIVEN = Given(
    {
        "main": ("", lambda at: 1e-5),
        "_Z5sweepi": ("main", lambda at: 2e-4 * at["n"]),
        "_Z5oftendi": ("_Z5sweepi", lambda at: 3e-4 * at["n"]),
    }
)
GIVEN_INLINED = Given(
    {
        "main": ("", lambda at: 1e-5),
        "_ZL6kerneli": ("main", lambda at: 2e-4 * at["n"]),
        "_ZL5otheri": ("main", lambda at: 3e-4 * at["n"]),
        "_ZL4eachd": ("_ZL5otheri", lambda at: 5e-5 * at["n"]),
    }
)
GIVEN_PARALLEL = Given(
    {
        "main": ("", lambda at: 1e-5),
        "_Z5sweepii": ("main", lambda at: 1e-5 * at["n"] / at["p"]),
        "_Z5oftend": ("_Z5sweepii", lambda at: 1e-5 * at["n"] / at["p"]),
        "_Z6borderi": ("main", lambda at: 1e-5 * at["n"]),
    }
)


def declare(folder: Path, more: str, source: str = SOURCE, options: str = "-O1 program.cpp") -> Path:
    (folder / "program.cpp").write_text(source)
    path = folder / "cycle.toml"
    path.write_text(CAMPAIGN.format(compiler=native_file("quipu-c++"), options=options, more=more))
    return path


def test_the_cycle_drops_what_is_entered_too_often(tmp_path: Path) -> None:
    campaign = read_campaign(declare(tmp_path, "iterations = 1\nat = {n = 400}"))
    result = refine(campaign, measuring=GIVEN.measuring)
    kept = read_filter(result.filter_file).region_rules
    assert {rule.pattern for rule in kept if not rule.exclude} == {"main", "_Z5sweepi"}
    (iteration,) = result.iterations
    assert (iteration.marked, iteration.executed) == (2, 2)
    plain = sum(GIVEN.processor({"n": n}) for n in (100, 200, 300))
    assert iteration.overhead == pytest.approx(3 * (RECORDING + 2 * PAIR) / plain)  # main and sweep at three points
    assert iteration.coverage == pytest.approx(0.4, abs=1e-3)  # of 2 + 3 parts
    assert (result.within, result.recording) == (True, None)
    folder = tmp_path / "cycle"
    experiment = load_experiment(folder / "iteration-1")
    assert experiment.configurations == 3
    assert {region.name for region in experiment.tree.regions} == {"main", "_Z5sweepi"}
    assert (folder / "iteration-1" / "n=200.r1" / "run.json").is_file()
    assert "measurements" in json.loads((folder / "iteration-1.json").read_text())
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.*") if path.name != LOCK_FILE}
    again = refine(campaign, measuring=GIVEN.measuring)
    assert again.names == result.names
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path in before} == before


def test_a_build_that_leaves_the_instrumented_program_is_an_error(tmp_path: Path) -> None:
    declared = declare(tmp_path, "")
    build(read_campaign(declared))
    text = declared.read_text()
    declared.write_text("".join('build = "true"\n' if "build" in line else line for line in text.splitlines(True)))
    with pytest.raises(MeasurementError, match=r"build: .*program has Quipu's instrumentation .* nothing was measured"):
        refine(read_campaign(declared), measuring=GIVEN.measuring)
    assert not (tmp_path / "cycle" / "baseline.json").exists()


def test_a_build_that_takes_no_selection_is_an_error(tmp_path: Path) -> None:
    """The build line ignores the filter, so the runs still measure everything that had a hook."""
    calls = "x = often<0>(x, 2) + often<1>(x, 2) + often<2>(x, 2)"
    source = SOURCE.replace("__attr", "template <int> __attr", 1).replace("x = often(x, 2)", calls)
    declared = declare(tmp_path, "", source)
    declared.write_text(declared.read_text().replace('build = "', 'build = "test -n \\"$QUIPU_FILTER\\" || '))
    of_template = {f"_Z5oftenILi{one}EEddi": GIVEN.regions["_Z5oftendi"] for one in range(3)}
    given = Given({**GIVEN.regions, **of_template})
    with pytest.raises(
        MeasurementError, match=r"measured 3 functions that are not among the 2 .*begin in another folder"
    ):
        refine(read_campaign(declared), measuring=given.measuring)
    assert load_experiment(tmp_path / "cycle" / "iteration-1").configurations == 3


def test_inlined_functions_are_regions_if_they_are_worth_it(tmp_path: Path) -> None:
    """kernel and other are inlined into main, each into other; each is entered too often to have time."""
    (tmp_path / "far.cpp").write_text("double far(double x) { return x * 0.5; }")
    declared = declare(tmp_path, "at = {n = 400}\niterations = 1", INLINED, "-O2 program.cpp far.cpp")
    result = refine(read_campaign(declared), measuring=GIVEN_INLINED.measuring)
    assert result.names == {"main", "_ZL6kerneli", "_ZL5otheri"}
    (iteration,) = result.iterations
    assert (iteration.marked, iteration.executed) == (3, 3)
    assert iteration.coverage == pytest.approx(1.0)


def test_several_parameters_with_mpi(tmp_path: Path) -> None:
    """The target exceeds both parameters; the time of regions that are entered too often is in their callers."""
    declared = declare(tmp_path, "iterations = 1", PARALLEL, "-O1 program.cpp")
    text = declared.read_text().replace(str(native_file("quipu-c++")), str(native_file("quipu-mpic++")))
    text = text.replace("./program {n}", "mpirun -n {p} ./program {n}")
    declared.write_text(text.replace("n = [100, 200, 300]", "p = [1, 2]\nn = [200, 300]"))
    campaign = read_campaign(declared)
    result = refine(campaign, measuring=GIVEN_PARALLEL.measuring)
    assert result.names == {"main", "_Z5sweepii", "_Z6borderi"}
    (iteration,) = result.iterations
    assert iteration.executed == 3
    assert result.recording == pytest.approx(RECORDING, rel=1e-3)
    assert iteration.start_and_end == pytest.approx(24 / 35, rel=0.01)  # ms of all ranks and points
    assert 0 < iteration.overhead < 1e-3
    folder = tmp_path / "cycle"
    measured = load_experiment(folder / "iteration-1")
    assert (measured.parameters, measured.configurations) == (("p", "n"), 4)
    names = {region.name for region in measured.tree.regions}
    assert {"MPI_Allreduce", *result.names} <= names
    assert "_Z5oftend" not in names
    assert campaign.refine is not None
    assert target_of(campaign.refine, campaign) == {"p": 3, "n": 400}
    written = json.loads((folder / "iteration-1.json").read_text())
    assert written["parameters"] == ["p", "n"]


@pytest.mark.usefixtures("costly")
def test_a_cycle_that_was_stopped_goes_on(tmp_path: Path) -> None:
    (tmp_path / "far.cpp").write_text("double far(double x) { return x * 0.5; }")
    declared = declare(tmp_path, "iterations = 1\noverhead = 0.2", INLINED, "-O2 program.cpp far.cpp")
    (tmp_path / "broken").touch()
    with pytest.raises(MeasurementError, match="baseline n=300: program"):
        refine(read_campaign(declared), measuring=GIVEN_INLINED.measuring)
    folder = tmp_path / "cycle"
    before = json.loads((folder / "baseline.json").read_text())["points"]["n=200"]
    (tmp_path / "broken").unlink()
    first = refine(read_campaign(declared), measuring=GIVEN_INLINED.measuring)
    assert json.loads((folder / "baseline.json").read_text())["points"]["n=200"] == before
    # One more iteration: what there is stays as it is.
    (tmp_path / "broken").touch()
    declare(tmp_path, "iterations = 2\noverhead = 1e-9", INLINED, "-O2 program.cpp far.cpp")
    with pytest.raises(MeasurementError, match="repeat the command to continue"):
        refine(read_campaign(declared), measuring=GIVEN_INLINED.measuring)
    assert len(json.loads((folder / "refinement.json").read_text())["iterations"]) == 1
    assert (folder / "iteration-2" / "n=200.r1" / "run.json").is_file()
    (tmp_path / "broken").unlink()
    both = refine(read_campaign(declared), measuring=GIVEN_INLINED.measuring)
    assert both.iterations[0] == first.iterations[0]
    assert len(both.iterations) == 2
    assert {path.name for path in folder.glob("baseline-*")} == {"baseline-after-1.json", "baseline-after-2.json"}
    left = run_program([str(tmp_path / "program"), "1"], {}, 1, tmp_path / "left")
    assert any(region.kind is RegionKind.FUNCTION for region in left.tree.regions)  # with the last selection


def test_the_strategies_of_pira_start_from_the_call_graph(tmp_path: Path) -> None:
    """The first selection uses statements, which exclude `often`; models of its callers then add it."""
    table = 'strategy = "expand"\nprogram = "program"\nstatements = "maximum"\nseconds = 1e-6\niterations = 2'
    result = refine(read_campaign(declare(tmp_path, table)), measuring=GIVEN.measuring)
    marked = []
    for number in (1, 2):
        rules = read_filter(tmp_path / "cycle" / f"iteration-{number}.filter").region_rules
        marked.append({rule.pattern for rule in rules if not rule.exclude})
    assert marked == [{"main", "_Z5sweepi"}, {"main", "_Z5sweepi", "_Z5oftendi"}]
    assert result.names == marked[-1]
    assert [one.executed for one in result.iterations] == [2, 3]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("overhead = 2", "refine.overhead|overhead must be"),
        ("at = {p = 3}", "refine.at needs a value for each of: n"),
        ('strategy = "best"', "refine.strategy: 'best' is unknown; choose one of budget, filter, expand, static"),
        ('strategy = "static"', "refine.program is missing"),
        ('statements = "mean"', "refine.statements: 'mean' is unknown; choose one of"),
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
        refine(campaign, Silent(), measuring=GIVEN.measuring)


@pytest.fixture
def costly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each iteration measure the same overhead, above every budget below it, and a start and end of recording."""
    monkeypatch.setattr(refinement, "overhead", lambda *measured: Overhead(0.5, 0.25, None))
    monkeypatch.setattr(refinement, "start_and_end", lambda *measured: 0.004)


@pytest.fixture
def commanded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command `quipu refine` measure as given."""
    monkeypatch.setattr(refinement, "refine", functools.partial(refine, measuring=GIVEN.measuring))


@pytest.mark.usefixtures("costly", "commanded")
def test_filtered_at_run_time_all_iterations_share_a_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An ordinary build with a hook in `often`, which the filter excludes; then the table of iterations."""
    compiler = str(native_file("quipu-c++"))
    (tmp_path / "compile.sh").write_text(
        f'echo "${{QUIPU_FILTER-none}}" >> builds\n{compiler} -O1 program.cpp -o program\n'
    )
    declared = declare(tmp_path, 'iterations = 2\nat = {n = 400}\nfiltering = "run"')
    text = declared.read_text()
    declared.write_text(text.replace(f"{compiler} -O1 program.cpp -o program", "sh compile.sh"))
    result = refine(read_campaign(declared), measuring=GIVEN.measuring)
    folder = tmp_path / "cycle"
    built = (tmp_path / "builds").read_text().split()
    assert built == ["none"] * 3 + [str(folder / "recording.filter"), "none"]
    assert [one.executed for one in result.iterations] == [2, 2]
    for run in scan_runs(folder / "iteration-2")[0]:
        assert {region.name for region in read_archive(run.path, values=False).tree.regions} == {"main", "_Z5sweepi"}
    whole = read_archive(run_program([str(tmp_path / "program"), "1"], {}, 1, tmp_path / "whole").path, values=False)
    assert "_Z5oftendi" in {region.name for region in whole.tree.regions}
    assert not result.within
    rows = [dict(one, predicted=0.0312, coverage=0.975, seconds=2.5) for one in state_of(folder)["iterations"]]
    (folder / "refinement.json").write_text(json.dumps({**state_of(folder), "iterations": rows}))
    capsys.readouterr()
    assert run_command_line(["refine", str(declared), "-q"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "iteration  regions marked  executed  overhead  predicted  coverage    time",
        "        1               2         2     50.0%       3.1%     97.5%  2.50 s",
        "        2               2         2     50.0%       3.1%     97.5%  2.50 s",
    ]
    assert "of each process, 25.0% of these runs" in printed.err
    assert (
        "iteration-2.filter: 2 regions, above the budget: raise it, or the number of iterations, stable" in printed.err
    )


@pytest.mark.usefixtures("commanded")
def test_runs_that_are_faster_with_instrumentation_resolve_no_overhead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The machine became faster: the baseline is measured again, and a remaining negative overhead is unknown."""
    again: list[bool] = []

    def fast(*measured: object) -> Overhead:
        again.append(len(measured) == 4)
        return Overhead(-0.356, 0.0, 0.02)

    monkeypatch.setattr(refinement, "overhead", fast)
    assert run_command_line(["refine", str(declare(tmp_path, "iterations = 1\nat = {n = 400}")), "-q"]) == 0
    assert again == [False, True]
    assert (tmp_path / "cycle" / "baseline-after-1.json").exists()
    printed = capsys.readouterr()
    assert "0 ±35.6%" in printed.out and "-35.6%" not in printed.out
    assert (
        "the overhead is too small to be measured by these runs: they took 35.6% less time than the runs without "
        "instrumentation, and repetitions differ by 2.0%" in printed.err
    )
    assert "not known to be within the budget" in printed.err


def state_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "refinement.json").read_text())
    return content
