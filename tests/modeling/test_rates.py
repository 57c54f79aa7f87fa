# SPDX-License-Identifier: Apache-2.0
"""Rates: planted seconds per unit of effort are found, and unknown ones come from the function or program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.errors import FormatError, ModelingError
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region, RegionKind
from quipu.modeling.rate_fit import fit_rates
from quipu.modeling.rates import PathRates, Rates, from_document, runtime_text, to_document

N = np.array([16.0, 24, 32, 48, 64])
TREE = CallTree(
    (
        Region("main", "main"),
        Region("work", "work()"),
        Region("MPI_Send", "MPI_Send", RegionKind.MPI),
        Region("s", "s"),
    ),
    np.array([0, 1, 2, 3, 1]),
    np.array([-1, 0, 0, 1, 3]),
)
"""main, main->work, main->MPI_Send, main->work->s (without a separate time), main->work->s->work (little time)."""
EVERYWHERE = np.ones(N.size, dtype=bool)


def _experiment(noise: FloatArray | None = None) -> Experiment:
    """Work takes 0.3 ns per instruction and 0.1 ns per byte; five repetitions, of which `noise` is a factor."""
    nothing, cube, square = np.zeros(N.size), N**3, N**2
    instructions = np.stack([100 + nothing, 10 * cube + 50 * square, nothing, 2 * cube, 30 + nothing])
    loaded = np.stack([800 + nothing, 1000 * square, nothing, nothing, 240 + nothing])
    flops = np.stack([1 + nothing, nothing, nothing, nothing, nothing])
    time = 0.3e-9 * instructions + 0.1e-9 * loaded
    time[1] += time[3]
    time[2], time[3], time[4] = 1e-3, 0, 1e-7
    factor = np.ones((1, 1, 5)) if noise is None else noise
    values = {"instructions": instructions[:, :, None], "bytes_loaded": loaded[:, :, None], "flops": flops[:, :, None]}
    values = {name: np.repeat(value, 5, axis=2) for name, value in values.items()} | {"time": time[:, :, None] * factor}
    metrics = {name: Metric(name, "1", "cost" if name == "time" else "effort") for name in values}
    return Experiment("planted", ("n",), N[:, None], TREE, metrics, values)


def test_planted_rates_are_found() -> None:
    rates = fit_rates(_experiment(), EVERYWHERE)
    assert rates.metrics == ("instructions", "flops", "bytes_loaded")
    work = next(entry for entry in rates.callpaths if entry.names == ("main", "work"))
    assert work.rates == pytest.approx((0.3e-9, 0, 0.1e-9), rel=0.02)
    assert work.label == "main->work()"
    assert work.residual < 2e-3
    assert work.measurements == N.size
    # MPI has no rates, what has no time of its own is part of its caller, and a single flop is worth nothing.
    assert {entry.names for entry in rates.callpaths} == {("main",), ("main", "work"), ("main", "work", "s", "work")}
    assert rates.program.rates[1] == 0


def test_shares_are_those_of_all_configurations() -> None:
    """A call path that is executed at half of the sizes has half of its share."""
    whole = _experiment()
    times, everywhere = whole.values["time"].copy(), fit_rates(whole, EVERYWHERE)
    there = N > 40
    times[[1, 3]] *= there[:, None]
    rates = fit_rates(replace(whole, values={**whole.values, "time": times}), EVERYWHERE)
    assert rates.program.share == pytest.approx(1)
    for entries in (everywhere.callpaths, everywhere.functions, rates.callpaths, rates.functions):
        assert sum(entry.share for entry in entries) == pytest.approx(1)
    (work,) = (entry for entry in rates.callpaths if entry.names == ("main", "work"))
    of_time = times[1, :, 0] / np.delete(times, 2, axis=0).sum(axis=0)[:, 0]
    assert work.measurements == there.sum() and work.share == pytest.approx(of_time.mean())
    assert work.residual < 0.02


def test_calls_of_mpi_have_rates_of_their_own() -> None:
    """At two call paths of an operation a call takes 0.4 us and 0.1 ns per byte; at the second, with little time, that
    of the operation counts. The start of MPI has none."""
    whole = _experiment()
    mpi = RegionKind.MPI
    send, init = Region("MPI_Isend", "MPI_Isend", mpi), Region("MPI_Init", "MPI_Init", mpi)
    regions = (Region("main", "main"), send, Region("f", "f"), init)
    tree = CallTree(regions, np.array([0, 1, 2, 1, 3]), np.array([-1, 0, 0, 2, 0]))
    values = dict(whole.values)
    visits, sent = np.zeros((5, N.size)), np.zeros((5, N.size))
    visits[1], visits[3], visits[4], sent[1], sent[3] = 1000.0, 2.0, 1.0, 8000 * N**2, 16 * N**2
    time = 0.4e-6 * visits + 0.1e-9 * sent
    time[0], time[2], time[4] = 1e-3, 1e-4, 1.0
    time[3] *= 3  # a few calls, slow by chance
    values |= {
        name: np.repeat(value[:, :, None], 5, axis=2)
        for name, value in (("visits", visits), ("bytes_sent", sent), ("time", time))
    }
    values["instructions"][1:2] = values["instructions"][3:] = 0.0
    values["bytes_loaded"][1:2] = values["bytes_loaded"][3:] = 0.0
    metrics = {name: Metric(name, "1", "cost" if name == "time" else "effort") for name in values}
    rates = fit_rates(Experiment("sends", ("n",), N[:, None], tree, metrics, values), EVERYWHERE)
    (operation,) = rates.operations
    assert operation.names == ("MPI_Isend",)
    assert operation.rates == pytest.approx((0.4e-6, 0.1e-9), rel=0.02)
    usual, little = rates.calls
    assert usual.names == ("main", "MPI_Isend") and little.names == ("main", "f", "MPI_Isend")
    assert usual.rates == pytest.approx((0.4e-6, 0.1e-9), rel=0.02)
    assert 0.4e-6 < little.rates[0] < 1.3e-6
    lines = [line.split("\t") for line in runtime_text(rates).splitlines()]
    assert [line[:2] for line in lines if line[0] in ("operation", "call")] == [
        ["operation", "MPI_Isend"],
        ["call", "main\x1fMPI_Isend"],
        ["call", "main\x1ff\x1fMPI_Isend"],
    ]
    assert from_document(to_document(rates), "some.rates") == rates


def test_messages_of_one_size_take_the_time_of_calls() -> None:
    """What gathers 4 bytes on one rank gathers thousands on others: its 2 us are of the call, not half of the bytes."""
    whole = _experiment()
    visits, sent = np.zeros((5, N.size, 5)), np.zeros((5, N.size, 5))
    visits[2], sent[2] = 1000.0, 8000.0
    time = whole.values["time"].copy()
    time[2] = 2e-6 * visits[2]
    values = whole.values | {"visits": visits, "bytes_sent": sent, "time": time}
    metrics = {name: Metric(name, "1", "cost" if name == "time" else "effort") for name in values}
    rates = fit_rates(replace(whole, metrics=metrics, values=values), EVERYWHERE)
    assert rates.operations[0].rates == rates.calls[0].rates == pytest.approx((2e-6, 0))


def test_bytes_take_no_longer_than_a_slow_copy() -> None:
    """Calls with 8 to 16 bytes differ by 0.5 us by chance; the rate is limited to 10 ns per byte."""
    whole = _experiment()
    visits, sent = np.full((5, N.size, 5), 0.0), np.zeros((5, N.size, 5))
    visits[2], sent[2] = 1000.0, np.linspace(8e3, 16e3, N.size)[:, None]
    time = whole.values["time"].copy()
    time[2] = 1e-6 * visits[2] + 6e-8 * sent[2]
    values = whole.values | {"visits": visits, "bytes_sent": sent, "time": time}
    metrics = {name: Metric(name, "1", "cost" if name == "time" else "effort") for name in values}
    rates = fit_rates(replace(whole, metrics=metrics, values=values), EVERYWHERE)
    assert rates.operations[0].rates[1] <= 1e-8 and rates.operations[0].rates[0] > 1e-6


def test_what_takes_nothing_of_the_time_has_no_rate() -> None:
    """A rounding error of a billionth of the time gives no rate."""
    whole = _experiment()
    visits, sent = np.zeros((5, N.size, 5)), np.zeros((5, N.size, 5))
    visits[2], sent[2] = 1000.0, 8000.0 * N[:, None] ** 2
    time = whole.values["time"].copy()
    time[2] = 0.4e-6 * visits[2] + 1e-20 * sent[2]
    values = whole.values | {"visits": visits, "bytes_sent": sent, "time": time}
    metrics = {name: Metric(name, "1", "cost" if name == "time" else "effort") for name in values}
    rates = fit_rates(replace(whole, metrics=metrics, values=values), EVERYWHERE)
    (operation,), (call,) = rates.operations, rates.calls
    assert operation.rates == call.rates == pytest.approx((0.4e-6, 0), rel=1e-6)
    assert operation.rates[1] == call.rates[1] == 0


def test_what_takes_little_time_has_the_rates_of_its_function() -> None:
    rates = fit_rates(_experiment(), EVERYWHERE)
    little = next(entry for entry in rates.callpaths if entry.names == ("main", "work", "s", "work"))
    work = next(entry for entry in rates.callpaths if entry.names == ("main", "work"))
    alone = 1e-7 / 30  # seconds per instruction that its time would say
    assert little.rates[0] < 0.5 * alone
    assert little.share < 1e-2 < work.share


def test_few_instructions_do_not_get_what_is_left_of_the_time_of_a_copy() -> None:
    """Beside a copy of all bytes, whose time is a little off, are 100 instructions; elsewhere they are millions."""
    whole = _experiment()
    tree = CallTree(
        (Region("main", "main"), Region("work", "work()"), Region("copy", "copy")), np.arange(3), np.array([-1, 0, 0])
    )
    copied = 2000.0 * N**2
    off = np.array([1.0, 1.03, 0.98, 1.02, 0.99])
    values = {name: np.repeat(whole.values[name][:3], 1, axis=2) for name in ("instructions", "bytes_loaded", "time")}
    values["instructions"][2], values["bytes_loaded"][2] = 100.0, copied[:, None]
    values["time"][2] = (0.2e-9 * copied * off + 2e-6)[:, None]
    metrics = {name: whole.metrics[name] for name in values}
    rates = fit_rates(Experiment("copies", ("n",), N[:, None], tree, metrics, values), EVERYWHERE)
    copy = next(entry for entry in rates.callpaths if entry.names == ("main", "copy"))
    assert copy.share > 0.02
    assert copy.rates[1] == pytest.approx(0.2e-9, rel=0.2)
    assert copy.rates[0] < 1e-8


def test_disturbed_repetitions_change_nothing() -> None:
    noise = np.ones((1, 1, 5))
    noise[..., 1:4] = (1.5, 3.0, 20.0)
    calm, disturbed = fit_rates(_experiment(), EVERYWHERE), fit_rates(_experiment(noise), EVERYWHERE)
    assert [entry.rates for entry in calm.callpaths] == [entry.rates for entry in disturbed.callpaths]


def test_only_ranks_that_ran_alone_count() -> None:
    rates = fit_rates(_experiment(), EVERYWHERE & (N < 40))
    assert [point["n"] for point in rates.points] == [16, 24, 32]
    with pytest.raises(ModelingError, match="rates need a run of one rank"):
        fit_rates(_experiment(), ~EVERYWHERE)


def test_several_ranks_give_no_rates_of_what_waits() -> None:
    whole = _experiment()
    times, visits = whole.values["time"].copy(), np.ones((5, N.size, 5))
    times[2] = 10.0
    measured = replace(
        whole,
        values={**whole.values, "time": times, "visits": visits},
        metrics={**whole.metrics, "visits": Metric("visits", "1", "effort")},
    )
    alone, several = fit_rates(measured, EVERYWHERE), fit_rates(measured, EVERYWHERE, several=True)
    assert [entry.names for entry in alone.operations] == [("MPI_Send",)]
    assert several.operations == several.calls == ()
    assert several.callpaths == alone.callpaths
    assert "means over ranks" in several.notes[-1]


def test_runs_without_effort_or_time_are_refused() -> None:
    whole = _experiment()
    for missing in ("instructions", "time"):
        values = {name: value for name, value in whole.values.items() if name != missing}
        part = Experiment("part", whole.parameters, whole.points, TREE, whole.metrics, values)
        with pytest.raises(ModelingError, match=f"has no {missing}"):
            fit_rates(part, EVERYWHERE)


def test_files_of_rates() -> None:
    rates = fit_rates(_experiment(), EVERYWHERE)
    assert from_document(to_document(rates), "some.rates") == rates
    lines = [line.split("\t") for line in runtime_text(rates).splitlines()]
    assert lines[0] == ["metrics", *rates.metrics]
    assert [float(number) for number in lines[1][1:]] == list(rates.program.rates)
    assert ["path", "main\x1fwork"] in [line[:2] for line in lines]
    assert ["region", "work"] in [line[:2] for line in lines]
    for change, words in (
        ({"metrics": 3}, "metrics must be a list"),
        ({"program": {**to_document(rates)["program"], "rates": [-1.0, 0, 0]}}, "program.rates"),
        ({"schema": 7}, "schema 7"),
        ({"metrics": ["blocks", "blocks", "loads"]}, "metrics must be different ones of blocks, .*, not 'blocks'"),
        ({"metrics": ["blocks", "flips", "loads"]}, "not 'flips'"),
        ({"metrics": []}, "not nothing"),
        ({"program": {**to_document(rates)["program"], "share": -1}}, "program.share"),
        ({"program": {**to_document(rates)["program"], "residual": -1}}, "program.residual"),
    ):
        with pytest.raises(FormatError, match=words):
            from_document({**to_document(rates), **change}, "some.rates")


def test_which_call_paths_have_rates() -> None:
    entry = PathRates(("main", "work"), (1e-9,), 1.0, 0.0, 1)
    program = PathRates((), (1e-9,), 1.0, 0.0, 1)
    rates = Rates(("instructions",), program, (PathRates(("work",), (1e-9,), 1.0, 0.0, 1),), (entry,))
    paths = [("main", "work"), ("main", "f", "work"), ("main", "f")]
    assert rates.without(paths) == ([("main", "f", "work")], [("main", "f")])


def test_a_simulation_starts_the_main_program_of_fortran_itself() -> None:
    def entry(*names: str) -> PathRates:
        return PathRates(names, (1e-9, 0.0), 1.0, 0.0, 1)

    callpaths = (entry("main"), entry("main", "_QQmain"), entry("main", "_QQmain", "work_"), entry("main", "work_"))
    calls = (entry("main", "_QQmain", "work_", "MPI_Barrier"),)
    rates = Rates(("instructions", "visits"), entry(), (entry("work_"),), callpaths, calls=calls)
    names = [line.split("\t")[1] for line in runtime_text(rates).splitlines() if line.startswith(("path", "call"))]
    assert [tuple(text.split("\x1f")) for text in names] == [
        ("main",),
        ("_QQmain",),
        ("_QQmain", "work_"),
        ("main", "work_"),
        ("_QQmain", "work_", "MPI_Barrier"),
    ]
    assert rates.without([("_QQmain",), ("_QQmain", "work_"), ("main", "work_")]) == ([], [])
    assert rates.without([("_QQmain", "other_", "work_")]) == ([("_QQmain", "other_", "work_")], [])


def test_time_without_effort_is_that_of_visits() -> None:
    """A function takes 5 us per visit and has few instructions; their rates stay as usual."""
    whole = _experiment()
    values, nothing = dict(whole.values), np.zeros((5, N.size, 5))
    values["visits"] = nothing + np.array([1.0, 1, 0, 100, 100])[:, None, None]
    values["time"] = values["time"].copy()
    values["time"][4] = 5e-6 * 100
    values["instructions"] = values["instructions"].copy()
    values["instructions"][4] = 3000.0
    metrics = whole.metrics | {"visits": Metric("visits", "1", "effort")}
    rates = fit_rates(Experiment("visited", ("n",), N[:, None], TREE, metrics, values), EVERYWHERE)
    assert rates.metrics[-1] == "visits" and rates.program.rates[-1] == 0
    by_path = {entry.names: entry for entry in rates.callpaths}
    idle = by_path["main", "work", "s", "work"]
    assert idle.rates[-1] == pytest.approx(5e-6, rel=0.1)
    assert idle.rates[0] < 1e-9
    assert by_path["main", "work"].rates == pytest.approx((0.3e-9, 0, 0.1e-9, 0), rel=0.02)
    assert from_document(to_document(rates), "rates") == rates
    assert runtime_text(rates).startswith("metrics\tinstructions\tflops\tbytes_loaded\tvisits\n")
