# SPDX-License-Identifier: Apache-2.0
"""Kernels: planted counters are found again, in time of instructions, memory, messages and waiting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from apmt_comparators import fit_analytical, fit_empirical
from quipu.modeling.errors import FormatError, ModelingError
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region, RegionKind
from quipu.modeling.kernels import KernelKind, model_program
from quipu.modeling.kernels.counts import Counts
from quipu.modeling.kernels.identify import identify
from quipu.modeling.kernels.limits import limit_of_group, limit_of_kernel
from quipu.modeling.kernels.other_machine import moved
from quipu.modeling.kernels.refinement import refined
from quipu.modeling.kernels.variables import variables_of
from quipu.modeling.machine import Cache, Machine, Network, from_document, to_document
from quipu.modeling.message import code_of
from quipu.report.kernel_views import kernel_facts, kernel_notes

GHZ = 2e9
MACHINE = Machine(
    "here",
    "a processor",
    4,
    GHZ,
    GHZ,
    (Cache(1, 32768, 64, 8, 1, 2e-9), Cache(2, 1 << 20, 64, 16, 1, 7e-9), Cache(3, 1 << 25, 64, 16, 4, 2e-8)),
    1e-7,
    network=(Network("ping-pong", 2, 1e-6, 1e-10),),
)
TREE = CallTree(
    (
        Region("main", "main"),
        Region("sweep", "sweep"),
        Region("setup", "setup"),
        Region("small", "small"),
        Region("MPI_Send", "MPI_Send", RegionKind.MPI),
        Region("MPI_Allreduce", "MPI_Allreduce", RegionKind.MPI),
        Region("MPI_Init", "MPI_Init", RegionKind.MPI),
    ),
    np.arange(7),
    np.array([-1, 0, 0, 0, 0, 0, 0]),
)


def planted(p: FloatArray, size: FloatArray, memory: bool = False) -> Experiment:
    """sweep: 100 instructions of 0.5 cycles per element; setup: the same everywhere; messages and an Allreduce."""
    nothing, one = np.zeros_like(p), np.ones_like(p)
    x = size / p
    misses = np.maximum(0.0, x - 4000) / 8
    instructions = np.stack([40 * one, 100 * x, 30000 * one, 20 * x, nothing, nothing, nothing])
    time = 0.5 * instructions / GHZ
    if memory:
        time[1] += 0.3 * (2e-9 * (10 * x - misses) + 1e-7 * misses)
    messages, sent = 20 * one, 800 * np.sqrt(x)
    time[4] = 2e-6 * messages + 1e-9 * sent
    time[5] = 3e-6 * np.log2(p) * 10 + 1e-9 * 80 + 1e-6 * 10
    time[6] = 0.1
    wait = np.zeros_like(time)
    wait[4] = 0.2 * time[1] * p ** (1 / 3)
    time[4] += wait[4]
    values = {
        "time": time,
        "wait_time": wait,
        "instructions": instructions,
        "visits": np.stack([one, one, one, one, messages, 10 * one, one]),
        "bytes_sent": np.stack([nothing] * 4 + [sent, 80 * one, nothing]),
        "messages_sent": np.stack([nothing] * 4 + [messages, 10 * one, nothing]),
        "comm_size": np.stack([nothing] * 4 + [p, p, p]),
    }
    if memory:
        values["l1_hits"] = np.stack([nothing, 10 * x - misses, *[nothing] * 5])
        values["memory_accesses"] = np.stack([nothing, misses, *[nothing] * 5])
    costs = ("time", "wait_time", "l1_hits", "memory_accesses")
    metrics = {
        name: Metric(name, "1", "cost" if name in costs else "effort", "max" if name == "comm_size" else "sum")
        for name in values
    }
    points = np.stack([p, size], axis=1)
    return Experiment("planted", ("p", "D"), points, TREE, metrics, {k: v[:, :, None] for k, v in values.items()})


STRONG = planted(np.array([4.0, 8, 16]), np.full(3, 1e6))


def test_three_kinds_of_kernels() -> None:
    kernels = identify(STRONG, variables_of(STRONG))
    assert [(kernel.name, kernel.kind) for kernel in kernels] == [
        ("sweep", KernelKind.KEY),
        ("small", KernelKind.KEY),
        ("setup", KernelKind.NON_SCALABLE),
        ("all other functions", KernelKind.REST),
    ]
    assert sorted(path for kernel in kernels for path in kernel.paths) == [0, 1, 2, 3]
    few = planted(np.array([4.0, 8]), np.full(2, 1e6))
    with pytest.raises(ModelingError, match="at least 3"):
        identify(few, variables_of(few))


def test_strong_scaling_is_predicted_with_its_parts() -> None:
    model = model_program(planted(np.array([2.0, 4, 8, 16, 32]), np.full(5, 1e6)), clock=GHZ)
    point = {"p": 128.0, "D": 1e6}
    found, true = model.at(point), planted(np.array([128.0]), np.array([1e6]))
    expected = true.values["time"][:6, 0, 0]
    assert found.compute.value == pytest.approx(expected[:4].sum(), rel=0.03)
    assert found.communication.value == pytest.approx(expected[4:].sum(), rel=0.1)
    assert found.total.value == pytest.approx(expected.sum(), rel=0.05)
    assert found.others.value == pytest.approx(0.1)
    sweep = next(kernel for kernel in found.kernels if kernel.kernel.name == "sweep")
    assert sweep.model.cpi == pytest.approx([0.5] * 5)
    assert limit_of_kernel(model, sweep, point).cause == "instructions"
    setup = next(kernel for kernel in found.kernels if kernel.kernel.name == "setup")
    assert limit_of_kernel(model, setup, point).cause == "not divided among ranks"
    assert {limit_of_group(group, point).cause for group in found.groups} == {"waiting", "latency"}


@pytest.mark.parametrize(
    "points", [[(2, 1e5), (4, 4e5), (8, 2e5)], [(p, 1e5 * s) for p in (2, 4, 8) for s in (1, 2, 4)]]
)
def test_the_start_and_end_of_mpi_does_not_depend_on_which_parameter_is_the_size(
    points: list[tuple[float, float]],
) -> None:
    p, size = np.array(points).T
    whole = planted(p, size)
    time = whole.values["time"].copy()
    time[6, :, 0] = 0.1 + 0.02 * p
    named = replace(whole, parameters=("p", "n"), values={**whole.values, "time": time})
    models = [model_program(named, clock=GHZ, size=name) for name in (None, "n")]
    point = {"p": 32.0, "n": 1e6}
    without, with_size = (model.at(point).others for model in models)
    assert without == with_size
    assert without.value == pytest.approx(0.74, rel=0.01)
    assert all(6 not in group.group.paths for model in models for group in model.groups)


def test_times_of_oversubscribed_configurations_are_left_out_where_the_others_are_enough() -> None:
    wide = planted(np.array([1.0, 2, 4, 8, 16]), np.full(5, 1e6))
    over = np.array([False, False, False, True, True])
    waited = np.where(over, 9.0, 1.0)[:, None]
    values = wide.values | {name: wide.values[name] * waited for name in ("time", "wait_time")}
    model = model_program(replace(wide, values=values, oversubscribed=over), clock=GHZ)
    true = planted(np.array([128.0]), np.array([1e6])).values["time"][:4, 0, 0].sum()
    assert model.at({"p": 128.0, "D": 1e6}).compute.value == pytest.approx(true, rel=0.1)
    assert any("only their counts are in the models" in note for note in model.notes)
    # Of two configurations no growth could be learned: all are used, and the note says so.
    few = model_program(
        replace(wide, values=values, oversubscribed=np.array([False, False, True, True, True])), clock=GHZ
    )
    assert any("more ranks than processors" in note and "they are in the models" in note for note in few.notes)
    assert "oversubscribed-kernels" not in map(code_of, model_program(STRONG, clock=GHZ).notes)


def test_memory_is_found_by_least_squares_over_problem_sizes() -> None:
    sizes = np.array([1e4, 2e4, 1e5, 4e5])
    experiment = planted(np.ones(4), sizes, memory=True)
    model = model_program(experiment, MACHINE)
    sweep = next(kernel for kernel in model.kernels if kernel.kernel.name == "sweep")
    assert sweep.blocking == pytest.approx(0.3, rel=1e-3)
    assert sweep.cpi == pytest.approx([0.5] * 4, rel=1e-3)
    assert sweep.counts.criterion > 1e-4
    assert "memory-contention" in map(code_of, model.notes)
    found = model.at({"p": 1.0, "D": 4e6})
    true = planted(np.ones(1), np.array([4e6]), memory=True)
    kernel = next(kernel for kernel in found.kernels if kernel.kernel.name == "sweep")
    assert kernel.total.value == pytest.approx(true.values["time"][1, 0, 0], rel=0.01)
    assert kernel.memory.value == pytest.approx(kernel.total.value - 100 * 4e6 * 0.5 / GHZ, rel=0.02)


def test_another_machine_scales_instructions_and_memory_apart() -> None:
    experiment = planted(np.ones(4), np.array([1e4, 2e4, 1e5, 4e5]), memory=True)
    model = model_program(experiment, MACHINE)
    slower = Machine("there", "another", 4, GHZ / 2, GHZ / 2, MACHINE.caches, 2e-7)
    point = {"p": 1.0, "D": 1e6}
    here, there = model.at(point), moved(model, MACHINE, slower).at(point)
    first, second = (next(k for k in found.kernels if k.kernel.name == "sweep") for found in (here, there))
    assert second.compute.value == pytest.approx(2 * first.compute.value)
    assert first.memory.value < second.memory.value < 2 * first.memory.value
    assert there.total.lower < there.total.value < there.total.upper


def test_times_of_what_was_not_counted_grow_without_a_part_below_zero() -> None:
    """Functions of Python have no instructions; of three noisy times a·√x - b would fit better than a·x."""
    p, size = np.ones(3), np.array([65536.0, 102400.0, 160000.0])
    experiment = planted(p, size)
    times = np.tile(np.zeros((7, 3))[:, :, None], 5)
    scatter = np.array([0.0, 0.01, 0.02, 0.03, 0.05])
    times[1] = np.array([0.01261, 0.02176, 0.03278])[:, None] * (1 + scatter)
    times[2] = np.array([0.00491, 0.00504, 0.00489])[:, None] * (1 + scatter)
    effort = {name: np.zeros_like(times) for name in experiment.values if name not in ("instructions", "visits")}
    found = model_program(replace(experiment, values={**effort, "time": times})).at({"p": 1.0, "D": 1279161.0})
    seconds = {kernel.kernel.name: kernel.total.value for kernel in found.kernels}
    assert seconds["sweep"] == pytest.approx(0.26, rel=0.05)
    assert seconds["setup"] == pytest.approx(0.00495, rel=0.05)


def test_of_times_alone_no_cause_is_named() -> None:
    model = model_program(replace(STRONG, values={"time": STRONG.values["time"]}))
    found = model.at({"p": 16.0, "D": 1e6})
    limits = {kernel.kernel.name: limit_of_kernel(model, kernel, found.point) for kernel in found.kernels}
    assert {limit.cause for limit in limits.values()} == {"not known"}
    assert "no counted instructions" in limits["sweep"].advice
    assert {limit_of_group(group, found.point).cause for group in found.groups} == {"not known"}
    assert (found.compute.value, found.memory.value) == (0, 0) and found.unexplained.value > 0
    assert found.total.value == pytest.approx(STRONG.values["time"][:6, 2].sum(), rel=0.15)
    assert dict(kernel_facts(model, found))["of it"].startswith("communication ")
    assert "the sum of the kernels below" in dict(kernel_facts(model, found))["program"]
    assert "not known (times without counts) " in dict(kernel_facts(model, found))["of it"]
    assert "no-instructions" in map(code_of, kernel_notes(model, found.point))


def test_what_takes_longer_than_instructions_do_is_not_limited_by_them() -> None:
    waits = np.ones((7, 1, 1))
    waits[1] = 40.0  # 20 cycles per instruction of sweep
    model = model_program(replace(STRONG, values=STRONG.values | {"time": waits * STRONG.values["time"]}), clock=GHZ)
    found = model.at({"p": 128.0, "D": 1e6})
    limits = {kernel.kernel.name: limit_of_kernel(model, kernel, found.point) for kernel in found.kernels}
    assert limits["sweep"].cause == "uncounted" and "20 cycles each" in limits["sweep"].advice
    waits[1] = 4e4
    model = model_program(replace(STRONG, values=STRONG.values | {"time": waits * STRONG.values["time"]}), clock=GHZ)
    advice = [limit_of_kernel(model, kernel, found.point).advice for kernel in model.at(found.point).kernels]
    assert any("20000 cycles each" in one for one in advice)
    assert limits["all other functions"].cause == "instructions"


def test_equation_6() -> None:
    # CPI of 2.26 and 2.21 where memory takes 6 and 4 cycles an instruction, at 3 and 2 GHz.
    clocks, cpi, instructions = np.array([3e9, 2e9]), np.array([2.26, 2.21]), np.full(2, 1e9)
    counts = Counts(instructions * cpi / clocks, instructions, True, {"memory": 0.02 * instructions}, None, {})
    found = refined([counts], {"memory": 1e-7}, clocks, None)
    assert (found.cpi, found.blocking) == pytest.approx((2.11, 0.025))


def test_a_clock_that_is_a_parameter_tells_memory_and_computation_apart() -> None:
    clock, size = (axis.ravel() for axis in np.meshgrid([1.5e9, 2.0e9, 3.0e9], [1e4, 4e4]))
    usual = planted(np.ones(6), size, memory=True)
    waited = 0.3 * (2e-9 * usual.values["l1_hits"] + 1e-7 * usual.values["memory_accesses"])
    values = usual.values | {"time": waited + (usual.values["time"] - waited) * (GHZ / clock[:, None])}
    points = np.stack([usual.points[:, 0], size, clock], axis=1)
    experiment = replace(usual, parameters=("p", "D", "f"), points=points, values=values)
    model = model_program(experiment, MACHINE, frequency="f")
    sweep = next(kernel for kernel in model.kernels if kernel.kernel.name == "sweep")
    assert sweep.blocking == pytest.approx(0.3, rel=1e-3)
    assert sweep.cpi == pytest.approx([0.5] * 6, rel=1e-3)
    slow, fast = ({"p": 1.0, "D": 4e4, "f": hertz} for hertz in (1e9, 4e9))
    assert sweep.compute(slow).value == pytest.approx(4 * sweep.compute(fast).value)
    assert sweep.memory(slow).value == pytest.approx(sweep.memory(fast).value)
    with pytest.raises(ModelingError, match="f cannot be both the clock frequency and another quantity"):
        model_program(experiment, MACHINE, size="f", frequency="f")
    with pytest.raises(ModelingError, match="D=10000 cannot be the clock of a core"):
        model_program(experiment, MACHINE, frequency="D")
    with pytest.raises(ModelingError, match="the clock frequency is a parameter"):
        moved(model, MACHINE, MACHINE)


def test_comparators() -> None:
    p = np.array([4.0, 8, 16])
    assert fit_analytical(p, np.full(3, 100.0), 2 * 100 / p + 3).at(64, 100) == pytest.approx(2 * 100 / 64 + 3)
    more = np.array([2.0, 4, 8, 16, 32])
    found = fit_empirical(more, np.ones(5), 8 / more + 0.1 * more)
    assert found.at(64, 1) == pytest.approx(8 / 64 + 6.4, rel=0.05)


def test_a_machine_comes_back_from_its_file() -> None:
    document = to_document(MACHINE)
    assert from_document(document, "m.json") == MACHINE
    with pytest.raises(FormatError, match="schema 9"):
        from_document({**document, "schema": 9}, "m.json")
    with pytest.raises(FormatError, match="memory"):
        from_document({**document, "memory": "slow"}, "m.json")
    with pytest.raises(FormatError, match="is not a description of a machine"):
        from_document({}, "m.json")
