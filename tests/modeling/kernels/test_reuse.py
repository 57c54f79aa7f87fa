# SPDX-License-Identifier: Apache-2.0
"""Growth of reuse distances, and memory times at unmeasured sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.counters import COUNTERS, MISSES, SCATTERED
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.kernels import model_program
from quipu.modeling.kernels.counts import Counts
from quipu.modeling.kernels.other_machine import moved
from quipu.modeling.kernels.refinement import refined
from quipu.modeling.kernels.reuse import SIZES, Costs, Reuse, reuse_of
from quipu.modeling.machine import Cache, Machine, Reach

GHZ = 2e9
REACH = tuple(
    Reach(float(1 << power), in_order, scattered)
    for power, in_order, scattered in ((14, 1e-10, 1e-9), (20, 1e-10, 1e-9), (22, 6e-10, 4e-9), (27, 2.1e-9, 2.1e-8))
)
MACHINE = Machine("here", "one", 1, GHZ, GHZ, (Cache(1, 32768, 64, 8, 1, 1e-9),), 1e-7, reach=REACH)


def counted(sizes: FloatArray) -> dict[str, FloatArray]:
    """D elements of 8 bytes are swept over again and again, 3 accesses each; one in 8 is of a new line, of these one
    in 4 is out of order, which seem to be 5 of 8. A table of 100 kB is read once per element.
    """
    beyond = {size: np.where(sizes * 8 > size, sizes / 8, 0.0) + np.where(size < 1e5, sizes, 0.0) for size in MISSES}
    scattered = {size: np.where(sizes * 8 > size, sizes / 8 * 0.625, 0.0) for size in SCATTERED}
    return {
        "accesses": 4 * sizes,
        **{MISSES[size]: values for size, values in beyond.items()},
        **{SCATTERED[size]: values for size, values in scattered.items()},
    }


def experiment(sizes: FloatArray) -> Experiment:
    found = counted(sizes)
    costs = Costs.of(REACH)
    assert costs is not None
    in_order, scattered = costs.at(sizes * 8)
    values = {
        "instructions": 10 * sizes,
        "time": 10 * sizes * 0.5 / GHZ + sizes / 8 * (0.75 * in_order + 0.25 * scattered),
        **found,
    }
    metrics = {name: COUNTERS.get(name, COUNTERS["accesses"]) for name in values}
    metrics["instructions"] = replace(COUNTERS["accesses"], name="instructions", kind="effort")
    tree = CallTree((Region("sweep", "sweep"),), np.array([0]), np.array([-1]))
    columns = {name: row[None, :, None] for name, row in values.items()}
    return Experiment("planted", ("p", "D"), np.stack([np.ones_like(sizes), sizes], axis=1), tree, metrics, columns)


def test_distances_grow_as_the_data_does_or_not_at_all() -> None:
    sizes = np.array([1e5, 2e5, 4e5])
    reuse = reuse_of(counted(sizes))
    assert reuse is not None
    powers = reuse.exponents(sizes, 2)
    table, sweep = np.searchsorted(SIZES, 1e5) - 1, np.searchsorted(SIZES, 3.2e6) - 1
    assert powers[table] == 0.0
    assert powers[sweep] == 1.0
    assert reuse_of({"accesses": np.zeros(3)}) is None and reuse_of({}) is None


@pytest.mark.parametrize("power", [0.0, 1 / 3, 1 / 2, 2 / 3, 1.0])
def test_planted_powers_are_found(power: float) -> None:
    random = np.random.default_rng(int(1000 * power))
    for _ in range(20):
        amounts = np.array([1.0, random.uniform(1.5, 2.5), random.uniform(3.0, 5.0)])
        largest = np.exp(random.uniform(np.log(2e5), np.log(3e6)))
        distances = largest * (amounts / amounts[2]) ** power * np.exp(0.2 * random.standard_normal((500, 1)))
        beyond = np.array([(distances > size).mean(axis=0) for size in SIZES])
        powers = Reuse(np.ones(3), beyond, np.zeros_like(beyond)).exponents(amounts, 2)
        near = np.argmax(beyond[:-1, 2] - beyond[1:, 2])
        assert powers[near] == pytest.approx(power, abs=0.17)  # the next one, at most


def test_what_the_pass_saw_walk_is_in_order() -> None:
    sizes = np.array([1e5, 2e5, 4e5])
    swept = SIZES > 1e5  # where the table does not count
    seeming = counted(sizes) | {name: counted(sizes)[MISSES[size]] for size, name in SCATTERED.items()}
    for walks in (0.75, 1.0, 3.0):
        reuse = reuse_of(seeming | {"bytes_in_order": walks * 8 * sizes})
        assert reuse is not None
        assert reuse.scattered[swept] == pytest.approx(max(1 - walks, 0.0) * reuse.misses[swept])
    # No more than valgrind's prefetcher did not foresee, and where nothing is known to walk, that alone.
    for walks, part in ((0.25, 0.625), (0.0, 0.25)):
        reuse = reuse_of(counted(sizes) | {"bytes_in_order": walks * 8 * sizes})
        assert reuse is not None
        assert reuse.scattered[-4:] == pytest.approx(part * reuse.misses[-4:], rel=0.01)


def test_sizes_that_were_not_counted_are_between_the_others() -> None:
    sizes = np.array([1e5, 2e5, 4e5])
    few = {name: row for name, row in counted(sizes).items() if name not in ("misses_768k", "misses_1536k")}
    reuse, full = reuse_of(few), reuse_of(counted(sizes))
    assert reuse is not None and full is not None
    at = int(np.searchsorted(SIZES, 768 * 1024))
    assert reuse.misses[at, 0] == pytest.approx(sizes[0] / 8 * (1 - np.log2(1.5)))  # 800 kB: from 512 KiB to 1 MiB
    assert np.delete(reuse.misses, [at, at + 2], 0) == pytest.approx(np.delete(full.misses, [at, at + 2], 0))


def test_costs_begin_at_the_nearest_cache_and_never_fall() -> None:
    disturbed = Reach(float(1 << 18), 5e-9, 5e-9)
    costs = Costs.of((*REACH, disturbed))
    assert costs is not None and Costs.of(REACH[:1]) is None
    in_order, scattered = costs.at(np.array([1.0, 2.0**20, 2.0**30]))
    assert in_order == pytest.approx([0.0, 0.0, 2e-9])
    assert scattered == pytest.approx([0.0, 0.0, 2e-8])


def test_times_that_scatter_say_little_of_the_memory_factor() -> None:
    instructions, waits = np.array([1e6, 2e6, 4e6]), np.array([1.0e-4, 2.4e-4, 4.4e-4])
    exact = instructions / GHZ + 2.0 * waits
    nothing = Counts(exact, instructions, True, {}, None, {}, None, np.zeros(3))
    clocks = np.full(3, GHZ)
    assert refined([nothing], {}, clocks, None).blocking == 1.0  # as is expected before anything is known
    found = refined([replace(nothing, waits=waits)], {}, clocks, None)
    assert 1.0 < found.blocking < 2.0
    scattered = exact * np.array([1.08, 0.92, 1.08])
    doubted = refined([replace(nothing, time=scattered, waits=waits)], {}, clocks, None)
    assert abs(doubted.blocking - 1) < abs(found.blocking - 1)
    assert doubted.blocking * doubted.doubt > found.blocking * found.doubt


def test_a_larger_problem_waits_for_memory_that_small_ones_never_saw() -> None:
    small, large = experiment(np.array([2e4, 5e4, 1e5])), experiment(np.array([1.6e6]))
    assert small.values["time"][0, :, 0] == pytest.approx(10 * small.points[:, 1] * 0.5 / GHZ)  # all in one cache
    point = {"p": 1.0, "D": 1.6e6}
    true = float(large.values["time"].sum())
    by_effort = model_program(small, clock=GHZ).at(point).total.value
    model = model_program(small, MACHINE)
    (kernel,) = model.kernels
    memory = kernel.memory(point)
    assert by_effort / true < 0.9
    assert kernel.compute(point).value + memory.value == pytest.approx(true, rel=0.05)
    assert memory.value == pytest.approx(true - by_effort, rel=0.5)
    assert memory.lower <= true - by_effort <= memory.upper
    found = model.at(point)
    assert found.total.value == pytest.approx(true, rel=0.05)
    assert found.memory.value / found.total.value == pytest.approx(memory.value / true, rel=0.05)
    slow = replace(MACHINE, reach=tuple(replace(entry, in_order=2 * entry.in_order) for entry in REACH))
    assert moved(model, MACHINE, slow).at(point).memory.value > found.memory.value
    unknown = replace(slow, reach=(), memory=2e-7)
    assert moved(model, MACHINE, unknown).at(point).total.upper > found.total.upper


def test_what_near_caches_hide_says_nothing_of_those_further_away() -> None:
    """Computation hides half of the time of the second cache at the measured sizes, and no memory time."""
    costs = Costs.of(REACH)
    assert costs is not None
    sizes = np.array([1e5, 3e5, 5e5])
    small = experiment(sizes)
    in_order, scattered = costs.at(sizes * 8)
    waits = sizes / 8 * (0.75 * in_order + 0.25 * scattered)
    small.values["time"][0, :, 0] -= 0.5 * waits
    (kernel,) = model_program(small, MACHINE).kernels
    assert 0.0 < kernel.blocking < 1.0
    (part,) = kernel.parts
    assert part.reuse is not None
    here, point = {"p": 1.0, "D": 5e5}, {"p": 1.0, "D": 4e6}
    as_measured, further = part.reuse.at(here)
    assert further.value == 0.0 and kernel.memory(here).value == pytest.approx(kernel.blocking * as_measured.value)
    as_measured, further = part.reuse.at(point)
    assert as_measured.value == pytest.approx(8 * part.reuse.at(here)[0].value) and further.value > 0.0
    assert kernel.memory(point).value == pytest.approx(kernel.blocking * as_measured.value + further.value)


def test_instructions_of_another_run_that_times_do_not_follow_are_left() -> None:
    small = experiment(np.array([2e4, 5e4, 1e5]))
    values = {name: row for name, row in small.values.items() if name != "instructions"}
    values["cpu_instructions"] = np.array([2e5, 2.5e5, 4e5])[None, :, None]
    metrics = {name: COUNTERS.get(name, COUNTERS["accesses"]) for name in values}
    others = replace(small, values=values, metrics=metrics)
    others.values["time"][0, :, 0] = 1e-4, 1.01e-4, 0.99e-4
    assert model_program(others, MACHINE).at({"p": 1.0, "D": 8e5}).total.value == pytest.approx(1e-4, rel=0.05)
