# SPDX-License-Identifier: Apache-2.0
"""Computation of simulated ranks takes effort × rate: exact, the same in every run, whatever this machine does."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.repetition import LaunchOptions, RunFailed, run
from quipu.agent.installation import native_file
from quipu.agent.launch.launchers import launch_command
from quipu.modeling.errors import FormatError, MeasurementError
from quipu.modeling.rates import PathRates, Rates, to_document

SOURCE = Path(__file__).parent / "programs" / "simulated_effort.c"
QUIET = LaunchOptions(node_agent=False, say=lambda text: None)
RATE = 2e-9  # seconds per instruction of the whole program
SLOW_RATE = 7e-9  # of the call path main->work
WORK = ("main", "work")
Times = dict[tuple[tuple[str, ...], int], float]


def rates_file(
    folder: Path,
    *callpaths: PathRates,
    metrics: tuple[str, ...] = ("instructions",),
    operations: tuple[PathRates, ...] = (),
    calls: tuple[PathRates, ...] = (),
) -> Path:
    program = PathRates((), (RATE,), 1.0, 0.0, 1, "the program")
    rates = Rates(metrics, program, callpaths=callpaths, operations=operations, calls=calls)
    path = folder / "some.rates"
    path.write_text(json.dumps(to_document(rates)), encoding="utf-8")
    return path


def of_mpi(names: tuple[str, ...], per_call: float, per_byte: float = 0.0) -> PathRates:
    return PathRates(names, (per_call, per_byte), 1.0, 0.0, 1)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("program") / "simulated_effort"
    # Without inlining of what calls MPI, and without folding of the loops.
    subprocess.run([native_file("quipu-smpicc"), "-O1", SOURCE, "-o", built], check=True)
    return built


def simulated(program: Path, folder: Path, options: LaunchOptions, *words: str) -> RunArchive:
    command = (*launch_command("smpi", [str(program), "1000"], 3, None)[:-2], *words, str(program), "1000")
    return run(command, {"p": 3}, None, folder, options)


def table(archive: RunArchive, metric: str) -> Times:
    tree, values = archive.tree, archive.values
    assert values is not None
    rows = zip(values.callpath.tolist(), values.rank.tolist(), values.metrics[metric].tolist(), strict=True)
    return {(tree.key(path), rank): value for path, rank, value in rows}


def expected(archive: RunArchive, rate_of: dict[tuple[str, ...], float]) -> Times:
    """Effort × rate where it is simulated: all but what is before MPI_Init, which is one call of work."""
    before = table(archive, "instructions")[WORK, 1] / 2
    result = {}
    for (path, rank), instructions in table(archive, "instructions").items():
        if not path[-1].startswith("MPI_"):
            result[path, rank] = (instructions - (before if path == WORK else 0)) * rate_of.get(path, RATE)
    return result


def test_rates_of_another_mpi_are_those_of_functions_with_communicators(tmp_path: Path) -> None:
    source, built = tmp_path / "handles.cpp", tmp_path / "handles"
    source.write_text(
        "#include <mpi.h>\n#include <vector>\n"
        "using Vector = std::vector<double>;\n"
        "__attribute__((noinline)) void sum(const Vector &from, Vector &to, MPI_Comm comm) {\n"
        "    for (int k = 0; k < 1000; k++) for (auto v : from) to[0] = to[0] * 0.5 + v;\n"
        "    MPI_Barrier(comm);\n}\n"
        "int main(int argc, char **argv) {\n    MPI_Init(&argc, &argv);\n    std::vector<double> a(99, 1.0), b(1);\n"
        "    sum(a, b, MPI_COMM_WORLD);\n    MPI_Finalize();\n    return b[0] < 0;\n}\n"
    )
    subprocess.run([native_file("quipu-smpicxx"), "-O1", source, "-o", built], check=True)
    real = ("main", "_Z3sumRKSt6vectorIdSaIdEERS1_P19ompi_communicator_t")
    said: list[str] = []
    options = replace(QUIET, rates=rates_file(tmp_path, PathRates(real, (SLOW_RATE,), 1.0, 0.0, 1)), say=said.append)
    archive = run(launch_command("smpi", [str(built)], 1, None), {"p": 1}, None, tmp_path / "runs", options)
    tree = archive.tree
    path = next(path for path in range(len(tree)) if tree.name(path).startswith("sum"))
    time, instructions = (float(archive.statistics[name].mean[path]) for name in ("time", "instructions"))
    assert time == pytest.approx(instructions * SLOW_RATE, abs=1e-9)
    assert not any("first main->sum" in line for line in said)


def test_methods_that_macros_of_smpi_rename_are_those_of_other_builds(tmp_path: Path) -> None:
    source, built = tmp_path / "pool.cpp", tmp_path / "pool"
    source.write_text(
        "#include <mpi.h>\n"
        "struct Pool {\n    double left = 1;\n    __attribute__((noinline)) void free(double *from) {\n"
        "        for (int k = 0; k < 1000; k++) left = left * 0.5 + from[k & 1];\n    }\n};\n"
        "int main(int argc, char **argv) {\n    MPI_Init(&argc, &argv);\n    double a[] = {1, 2};\n    Pool pool;\n"
        "    pool.free(a);\n    MPI_Finalize();\n    return pool.left < 0;\n}\n"
    )
    subprocess.run([native_file("quipu-smpicxx"), "-O1", source, "-o", built], check=True)
    own = PathRates(("main", "_ZN4Pool4freeEPd"), (SLOW_RATE,), 1.0, 0.0, 1)
    options = replace(QUIET, rates=rates_file(tmp_path, own))
    archive = run(launch_command("smpi", [str(built)], 1, None), {"p": 1}, None, tmp_path / "runs", options)
    path = next(path for path in range(len(archive.tree)) if archive.tree.name(path) == "Pool::free(double*)")
    time, instructions = (float(archive.statistics[name].mean[path]) for name in ("time", "instructions"))
    assert time == pytest.approx(instructions * SLOW_RATE, abs=1e-9)


@pytest.mark.parametrize("filtered", [False, True])
def test_each_call_path_takes_its_effort(program: Path, tmp_path: Path, filtered: bool) -> None:
    rates = rates_file(tmp_path, PathRates(WORK, (SLOW_RATE,), 1.0, 0.0, 1, "main->work"))
    options = replace(QUIET, rates=rates)
    if filtered:  # what it leaves out has no hook, and calls MPI
        left_out = tmp_path / "some.filter"
        left_out.write_text("SCOREP_REGION_NAMES_BEGIN EXCLUDE phases deeper between SCOREP_REGION_NAMES_END\n")
        options = replace(options, filter_file=left_out)
    archive = simulated(program, tmp_path, options)
    times, should = table(archive, "time"), expected(archive, {WORK: SLOW_RATE})
    # main also has the instructions before MPI_Init and after MPI_Finalize.
    slack = 60 * RATE
    for key, seconds in should.items():
        assert times[key] == pytest.approx(seconds, abs=slack if key[0] == ("main",) else 2e-9), key
    assert should[WORK, 0] > 10 * 1000 * SLOW_RATE
    # The others wait for rank 0 in the barrier after it, on the nanosecond but for the barrier itself.
    waits = table(archive, "wait_time")
    late = should[WORK, 0] - should[WORK, 1]
    for rank in (1, 2):
        assert waits[("main", "MPI_Barrier"), rank] == pytest.approx(late, rel=0.05)


def test_calls_of_mpi_take_at_least_what_the_library_needs(program: Path, tmp_path: Path) -> None:
    """Rates are given for an operation, for one of its call paths, and per byte; waiting is not prolonged."""
    barrier, own, byte = 20e-6, 50e-6, 10e-9
    phases = ("main", "phases", "MPI_Barrier")
    bare = simulated(program, tmp_path, replace(QUIET, rates=rates_file(tmp_path)))
    rates = rates_file(
        tmp_path,
        operations=(of_mpi(("MPI_Barrier",), barrier), of_mpi(("MPI_Bcast",), 1e-6, byte)),
        calls=(of_mpi(phases, own),),
    )
    archive = simulated(program, tmp_path, replace(QUIET, rates=rates))
    times, before = table(archive, "time"), table(bare, "time")
    sent, received = table(archive, "bytes_sent"), table(archive, "bytes_received")
    # the others wait there for rank 0, which has most to do for the broadcast
    assert before[phases, 0] < 3 * own / 5
    assert times[phases, 0] == pytest.approx(3 * own, abs=3e-9)
    for rank in range(3):
        broadcast = (("main", "MPI_Bcast"), rank)
        transferred = sent[broadcast] + received[broadcast]
        assert transferred >= 8000 and before[broadcast] < 4e-6
        assert times[broadcast] == pytest.approx(1e-6 + byte * transferred, abs=2e-9)
    late = before[("main", "MPI_Barrier"), 1] - before[("main", "MPI_Barrier"), 0]
    assert late > 2 * barrier
    assert times[("main", "MPI_Barrier"), 0] == pytest.approx(2 * barrier, abs=3e-9)
    assert times[("main", "MPI_Barrier"), 1] == pytest.approx(barrier + late, rel=0.05)
    # what the program computes is as it was
    assert {key: time for key, time in times.items() if "MPI_" not in key[0][-1]} == pytest.approx(
        {key: time for key, time in before.items() if "MPI_" not in key[0][-1]}, abs=3e-9
    )


def test_a_visit_that_began_before_mpi_takes_its_time_after_it(program: Path, tmp_path: Path) -> None:
    metrics, start, visit = ("instructions", "visits"), 300e-6, 5e-6
    main = PathRates(("main",), (RATE, start), 1.0, 0.0, 1, "main")
    work = PathRates(WORK, (RATE, visit), 1.0, 0.0, 1, "main->work")
    program_rates = Rates(metrics, PathRates((), (RATE, 0.0), 1.0, 0.0, 1, "the program"), callpaths=(main, work))
    rates = tmp_path / "visits.rates"
    rates.write_text(json.dumps(to_document(program_rates)), encoding="utf-8")
    archive = simulated(program, tmp_path, replace(QUIET, rates=rates))
    times, should = table(archive, "time"), expected(archive, {})
    for rank in range(3):
        assert times[("main",), rank] == pytest.approx(should[("main",), rank] + start, abs=60 * RATE)
        visits = table(archive, "visits")[WORK, rank] - 1  # that before MPI_Init has ended
        assert times[WORK, rank] == pytest.approx(should[WORK, rank] + visits * visit, abs=2e-9)


def test_the_library_of_a_faster_host_needs_less(program: Path, tmp_path: Path) -> None:
    options = replace(QUIET, rates=rates_file(tmp_path, operations=(of_mpi(("MPI_Barrier",), 50e-6),)))
    quick = table(simulated(program, tmp_path, options, "--cfg=smpi/host-speed:5Gf"), "time")
    assert quick[("main", "phases", "MPI_Barrier"), 0] == pytest.approx(3 * 25e-6, abs=3e-9)


def test_two_runs_are_the_same(program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = replace(QUIET, rates=rates_file(tmp_path))
    first, second = simulated(program, tmp_path, options), simulated(program, tmp_path, options)
    for metric in ("time", "wait_time", "instructions", "visits"):
        assert table(first, metric) == table(second, metric)
    assert first.metadata.launcher["compute"] == "effort"
    # The program's own clock is that of the simulation.
    took = [float(line.split()[1]) for line in capfd.readouterr().out.splitlines() if line.startswith("took")]
    work = table(first, "instructions")[WORK, 1] / 2
    assert took[0] == took[1] == pytest.approx(work * RATE, rel=0.01)


def test_hosts_of_twice_the_speed_take_half_the_time(program: Path, tmp_path: Path) -> None:
    options = replace(QUIET, rates=rates_file(tmp_path))
    usual = table(simulated(program, tmp_path, options), "time")
    quick = table(simulated(program, tmp_path, options, "--cfg=smpi/host-speed:5Gf"), "time")
    assert quick[WORK, 0] == pytest.approx(usual[WORK, 0] / 2, abs=2e-9)


def test_call_paths_without_rates_are_named(program: Path, tmp_path: Path) -> None:
    said: list[str] = []
    options = replace(QUIET, rates=rates_file(tmp_path), say=said.append)
    simulated(program, tmp_path, options)
    assert any("without separate rates" in text and "use the rates of the program" in text for text in said)


def test_rates_of_processes_fit_simulated_ranks_of_fortran(tmp_path: Path) -> None:
    """In a process, the C main is above the main program; a simulated rank begins with the main program."""
    program, source = tmp_path / "ring", SOURCE.with_name("simulated.f90")
    subprocess.run([native_file("quipu-smpif90"), "-O0", source, "-o", program], cwd=tmp_path, check=True)
    start, own = ("main", "_QQmain"), 100e-6
    slow = PathRates((*start, "_QMgridPwork"), (SLOW_RATE,), 1.0, 0.0, 1)
    rates = rates_file(tmp_path, slow, calls=(of_mpi((*start, "MPI_Allreduce"), own),))
    said: list[str] = []
    archive = simulated(program, tmp_path, replace(QUIET, rates=rates, say=said.append))
    times, work = table(archive, "time"), ("_QQmain", "_QMgridPwork")
    instructions = table(archive, "instructions")
    for rank in range(3):
        assert times[work, rank] == pytest.approx(instructions[work, rank] * SLOW_RATE, abs=2e-9)
    assert min(times[("_QQmain", "MPI_Allreduce"), rank] for rank in range(3)) == pytest.approx(own, abs=2e-9)
    assert not any("without separate rates" in text for text in said)
    simulated(program, tmp_path, replace(QUIET, rates=rates_file(tmp_path), say=said.append))
    assert any("first main program->grid::work) use the rates of the program" in text for text in said)


def test_rates_are_for_simulations(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="in simulations only"):
        run(["true"], {}, None, tmp_path, replace(QUIET, rates=rates_file(tmp_path)))


def test_hosts_of_unknown_speed_are_refused(program: Path, tmp_path: Path) -> None:
    platform = tmp_path / "two.xml"
    platform.write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
        '<cluster id="a" prefix="a" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="1us"/>'
        '<cluster id="b" prefix="b" suffix="" radical="0-1" speed="2Gf" bw="1GBps" lat="1us"/></platform>'
    )
    command = launch_command("smpi", [str(program)], 2, platform)
    with pytest.raises(MeasurementError, match="different speeds"):
        run(command, {}, None, tmp_path, replace(QUIET, rates=rates_file(tmp_path)))


def test_rates_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "some.rates"
    for text, words in (("{}", "contains no rates"), ("[", "not JSON"), ('{"format": "quipu-rates"}', "schema None")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(FormatError, match=words):
            run(["true"], {}, None, tmp_path, replace(QUIET, rates=path))
    path = rates_file(tmp_path, metrics=("instructions", "loads"))
    with pytest.raises(FormatError, match="1 rates for 2 metrics"):
        run(["true"], {}, None, tmp_path, replace(QUIET, rates=path))
    path = rates_file(tmp_path, calls=(PathRates(("main", "MPI_Barrier"), (1e-6,), 1.0, 0.0, 1),))
    with pytest.raises(FormatError, match="main->MPI_Barrier has 1 rates for 2 metrics"):
        run(["true"], {}, None, tmp_path, replace(QUIET, rates=path))


def test_metrics_that_nobody_counts_end_the_run(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has rates of a metric that this version does not know."""
    options = replace(QUIET, rates=rates_file(tmp_path, metrics=("watts",)))
    with pytest.raises(FormatError, match=r"metrics must be different ones of blocks, .*, not 'watts'"):
        simulated(program, tmp_path, options)
    monkeypatch.setattr("quipu.modeling.rates._RATED", ("watts",))
    with pytest.raises((RunFailed, MeasurementError)):
        simulated(program, tmp_path, options)
    assert "rates.tsv:1: names a metric that the pass does not count" in capfd.readouterr().err
