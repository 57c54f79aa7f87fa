# SPDX-License-Identifier: Apache-2.0
"""The efficiency hierarchy: planted efficiencies are found, factors multiply, losses add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quipu.modeling.efficiency import RunTimes, computation_factors, losses, parallel_factors, scalings, work_of
from quipu.modeling.efficiency.scaling import reference_at, size_at
from quipu.modeling.experiment import CallTree, FloatArray, Region, RegionKind
from quipu.modeling.run_times import RankColumns

REGIONS = (
    Region("main", "main"),
    Region("solve", "solve"),
    Region("MPI_Allreduce", "MPI_Allreduce", RegionKind.MPI),
    Region("MPI_Recv", "MPI_Recv", RegionKind.MPI),
    Region("omp", "omp parallel", RegionKind.OPENMP),
    Region("body", "solve (omp line 3)"),
)
TREE = CallTree(REGIONS, np.arange(6), np.array([-1, 0, 1, 0, 1, 4]))
MAIN, SOLVE, ALLREDUCE, RECV, TEAM, BODY = range(6)


def columns(rows: Mapping[int, Sequence[float]], ranks: int) -> RankColumns:
    values = np.zeros((len(TREE), ranks))
    for path, own in rows.items():
        values[path] = own
    return RankColumns.of_ranks(values)


def run_of(
    times: Mapping[int, Sequence[float]],
    waits: Mapping[int, Sequence[float]] | None = None,
    point: Mapping[str, float] | None = None,
    **changes: object,
) -> RunTimes:
    ranks = len(next(iter(times.values())))
    found = RunTimes("r", point or {"p": ranks}, 1, ranks, 1, TREE, columns(times, ranks), columns(waits or {}, ranks))
    return replace(found, **changes)  # type: ignore[arg-type]


def values(run: RunTimes, scope: int = -1, ideal: FloatArray | None = None) -> dict[str, float]:
    factors = parallel_factors(run, ideal)
    return {name: factors.of(name, scope)[0] for name in factors.values}


def test_planted_efficiencies_of_mpi() -> None:
    # Useful 4, 6, 8, 10 s; the elapsed time is 12.5 s, of which 2 s are transfer on every rank.
    useful = [4.0, 6.0, 8.0, 10.0]
    mpi = [8.5, 6.5, 4.5, 2.5]
    waits = [6.5, 4.5, 2.5, 0.5]
    run = run_of({SOLVE: useful, ALLREDUCE: mpi}, {ALLREDUCE: waits}, waits_separated=True)
    found = values(run)
    assert found["load_balance"] == pytest.approx(0.7)
    assert found["communication"] == pytest.approx(0.8)
    assert found["parallel"] == pytest.approx(0.56)
    assert found["serialization"] == pytest.approx(10.0 / 10.5)
    assert found["transfer"] == pytest.approx(10.5 / 12.5)
    assert values(run, SOLVE) == pytest.approx(found)  # all is below it
    assert values(run, MAIN) == pytest.approx(found)
    ideal = np.full(len(TREE) + 1, 10.0)  # simulated: nothing is serial
    assert values(run, ideal=ideal)["serialization"] == pytest.approx(1.0)
    assert values(run, ideal=ideal)["transfer"] == pytest.approx(0.8)


def test_serialization_needs_the_waiting_of_all_operations() -> None:
    times = {SOLVE: [1.0, 2.0], ALLREDUCE: [1.5, 0.5], RECV: [0.5, 0.5]}
    factors = parallel_factors(run_of(times, {RECV: [0.5, 0.0]}))
    assert np.isnan(factors.of("serialization")[0])
    assert set(factors.missing) == {"serialization", "transfer"}
    assert factors.of("parallel")[0] == pytest.approx(0.5)
    without = run_of({SOLVE: [1.0, 2.0], RECV: [1.5, 0.5]}, {RECV: [1.25, 0.25]})
    factors = parallel_factors(without)  # point-to-point operations measure their waiting in every mode
    assert factors.missing == {}
    assert factors.of("transfer")[0] == pytest.approx(2.25 / 2.5)
    assert factors.of("serialization")[0] == pytest.approx(2.0 / 2.25)


def test_planted_efficiencies_of_mpi_and_openmp() -> None:
    # 2 ranks × 2 threads, 10 s. Rank 0: 2 s serial, 6 s in a team whose threads work 6 and 3 s, 2 s in MPI.
    # Rank 1: 1 s serial, 4 s in a team whose threads work 4 and 4 s, 5 s in MPI.
    time = {SOLVE: [2.0, 1.0], BODY: [6.0, 4.0], ALLREDUCE: [2.0, 5.0]}
    of_threads = np.zeros((len(TREE), 2, 2))
    of_threads[SOLVE], of_threads[BODY] = [[2.0, 0.0], [1.0, 0.0]], [[6.0, 3.0], [4.0, 4.0]]
    run = run_of(time, threads=2, of_threads=of_threads, thread_time=of_threads.sum(axis=2).mean(axis=1))
    found = values(run)
    assert found["parallel"] == pytest.approx(20.0 / 40.0)
    assert found["load_balance"] == pytest.approx(5.0 / 8.0)
    assert found["communication"] == pytest.approx(8.0 / 10.0)
    assert found["mpi_parallel"] == pytest.approx(0.65)
    assert found["mpi_load_balance"] == pytest.approx(6.5 / 8.0)
    assert found["mpi_communication"] == pytest.approx(0.8)
    assert found["omp_parallel"] == pytest.approx(0.5 / 0.65)
    assert found["omp_load_balance"] * found["mpi_load_balance"] == pytest.approx(found["load_balance"])
    assert found["omp_communication"] == pytest.approx(1.0)
    lost = losses(run, scalings([run])[0])
    assert lost is not None
    assert lost.lost == pytest.approx(0.5)
    assert lost.threads[BODY] == pytest.approx(5.0 - 4.25)
    assert lost.threads[SOLVE] == pytest.approx(1.5 - 0.75)


TIMES = st.lists(st.floats(0.01, 100.0), min_size=4, max_size=4)


@given(TIMES, TIMES, TIMES, TIMES)
def test_factors_multiply_and_losses_add_up(
    main: list[float], solve: list[float], mpi: list[float], recv: list[float]
) -> None:
    first = run_of({MAIN: [1.0], SOLVE: [9.0]}, sums={"blocks": np.array([0, 90.0, 0, 0, 0, 0])})
    run = run_of(
        {MAIN: main, SOLVE: solve, ALLREDUCE: mpi, RECV: recv}, sums={"blocks": np.array([9, 90.0, 0, 0, 0, 0])}
    )
    scaling = scalings([first, run])[1]
    assert scaling.kind == "strong"
    assert scaling.reference is first
    factors = parallel_factors(run).joined(computation_factors(work_of(run), work_of(first), scaling.kind))
    of = {name: factors.of(name)[0] for name in factors.values}
    assert of["parallel"] == pytest.approx(of["load_balance"] * of["communication"])
    assert of["global"] == pytest.approx(of["parallel"] * of["computation"])
    assert of["computation"] == pytest.approx(of["instruction"] * of["rate"])
    assert 0.0 < of["load_balance"] <= 1.0
    assert 0.0 < of["communication"] <= 1.0 + 1e-12
    lost = losses(run, scaling)
    assert lost is not None
    assert lost.lost == pytest.approx(1.0 - of["global"])
    assert lost.rest >= -1e-9


@given(TIMES, TIMES, TIMES)
def test_statistics_give_bounds(main: list[float], solve: list[float], mpi: list[float]) -> None:
    whole = run_of({MAIN: main, SOLVE: solve, ALLREDUCE: mpi}, waits_separated=True)
    run = replace(whole, time=replace(whole.time, values=None), wait=replace(whole.wait, values=None))
    assert losses(run, scalings([run])[0]) is None
    for scope in range(-1, len(TREE)):
        exactly = whole.outside.low[scope]
        assert run.outside.low[scope] <= exactly + 1e-9
        assert run.outside.high[scope] >= exactly - 1e-9
        assert run.elapsed.low[scope] <= whole.elapsed.low[scope] + 1e-9
    _, low, high = parallel_factors(run).of("load_balance")
    mean = whole.useful_sum[-1] / 4
    assert low <= mean / whole.outside.low[-1] + 1e-9
    assert high >= mean / whole.outside.low[-1] - 1e-9


def counted(ranks: int, instructions: float, cycles: float, seconds: float, **point: float) -> RunTimes:
    sums = {"cpu_instructions": np.zeros(6), "cpu_cycles": np.zeros(6)}
    sums["cpu_instructions"][SOLVE], sums["cpu_cycles"][SOLVE] = instructions, cycles
    return run_of({SOLVE: [seconds / ranks] * ranks}, point={"p": ranks, **point}, sums=sums)


def test_computation_scalability_of_counters() -> None:
    # Strong: 25 % more instructions, IPC falls from 2 to 1.6, the clock from 3 to 2.7 GHz.
    runs = [counted(2, 12e9, 6e9, 2.0), counted(8, 15e9, 15e9 / 1.6, 15 / 1.6 / 2.7)]
    scaling = scalings(runs)[1]
    found = computation_factors(work_of(runs[1]), work_of(runs[0]), scaling.kind)
    assert found["instruction"][0, -1] == pytest.approx(0.8)
    assert found["ipc"][0, -1] == pytest.approx(0.8)
    assert found["frequency"][0, -1] == pytest.approx(0.9)
    assert found["computation"][0, -1] == pytest.approx(0.8 * 0.8 * 0.9)
    assert scalings(runs[:1])[0].kind == "none"


def test_weak_scaling_is_seen_from_the_work() -> None:
    runs = [counted(p, 1e9 * p * (1 + 0.01 * p), 1e9 * p, 1.0 * p, n=100.0 * p) for p in (2, 4, 8)]
    found = scalings(runs)
    assert [one.kind for one in found] == ["none", "weak", "weak"]
    assert all(one.reference is runs[0] for one in found)
    factors = computation_factors(work_of(runs[2]), work_of(runs[0]), "weak")
    assert factors["computation"][0, -1] == pytest.approx(1.0)
    assert factors["instruction"][0, -1] == pytest.approx(1.02 / 1.08)
    assert [one.kind for one in scalings(runs, "strong")] == ["none", "strong", "strong"]
    assert reference_at(runs, {"p": 64.0, "n": 6400.0}) is runs[0]
    assert size_at(runs, {"p": 64.0, "n": 6400.0}) == (64, 1)


def test_runs_of_a_grid_are_compared_with_the_same_problem() -> None:
    runs = [counted(p, n * 1e6, n * 1e6, n * 1e-3, n=float(n)) for p in (2, 4) for n in (10, 20)]
    found = scalings(runs)
    assert [one.kind for one in found] == ["none", "none", "strong", "strong"]
    assert [one.reference.point["n"] for one in found] == [10, 20, 10, 20]
    assert reference_at(runs, {"p": 64.0, "n": 20.0}) is runs[1]
    assert reference_at(runs, {"p": 64.0, "n": 40.0}) == {"p": 2, "n": 40.0}
