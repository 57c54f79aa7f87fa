# SPDX-License-Identifier: Apache-2.0
"""Times as rates times known counts: one call path, and whole programs with known counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.class_vectors import ClassVectors, Place
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region, RegionKind, TimedPart
from quipu.modeling.metrics import METRICS
from quipu.modeling.priors.untimed import with_times_at_callers
from quipu.modeling.times.rates import Work, rates

SLOW, FAST = 1e9, 4e10  # bytes per second, below and above what memory gives


def _at(seconds: FloatArray, work: FloatArray, more: float, bandwidth: float = SLOW) -> tuple[float, float]:
    """Mean and standard deviation of ln time at `more` times the largest work, by the likeliest rate."""
    found = rates(seconds, [Work("instructions", work)], np.ones(work.size), bandwidth, 0.03)
    best = max(found, key=lambda rate: rate.ln_weight)
    return best.at(float(work.max()) * more, 1.0)


WORK = 1e6 * np.array([8.0, 27.0, 64.0, 216.0])


def test_time_in_proportion_to_work_stays_in_proportion() -> None:
    mean, deviation = _at((3e-10 * WORK)[:, None], WORK, 8.0)
    assert math.exp(mean) == pytest.approx(3e-10 * 8 * WORK.max(), rel=0.06)
    assert deviation < 0.15


def test_one_slow_repetition_has_no_effect() -> None:
    seconds = np.repeat((3e-10 * WORK)[:, None], 3, axis=1)
    clean, _ = _at(seconds, WORK, 8.0)
    seconds[1, 2] *= 10
    assert _at(seconds, WORK, 8.0)[0] == pytest.approx(clean, abs=1e-6)


def test_work_that_uses_more_than_the_bandwidth_of_memory_may_slow_down() -> None:
    seconds = (3e-11 * WORK)[:, None]
    steady, sure = _at(seconds, WORK, 8.0, SLOW)
    fast, unsure = _at(seconds, WORK, 8.0, FAST)
    assert fast > steady
    assert unsure > sure
    # at worst by what the bandwidth is beyond that of memory
    assert fast - steady < math.log(FAST / 5e9)


def test_uncertainty_grows_with_the_distance() -> None:
    seconds = (3e-10 * WORK)[:, None]
    deviations = [_at(seconds, WORK, more)[1] for more in (1.0, 4.0, 64.0)]
    assert deviations == sorted(deviations)


def test_nothing_measured_has_no_rate() -> None:
    assert rates(np.full((4, 2), np.nan), [Work("instructions", WORK)], np.ones(4), SLOW, 0.03) == []
    assert rates((3e-10 * WORK)[:, None], [Work("bytes", np.zeros(4))], np.ones(4), SLOW, 0.03) == []


@dataclass(frozen=True)
class _Known:
    """Classes that are known."""

    vectors: ClassVectors | None


TREE = CallTree(
    (
        Region("main", "main"),
        Region("solve", "solve"),
        Region("cell", "cell"),
        Region("MPI_Barrier", "MPI_Barrier", RegionKind.MPI),
    ),
    np.array([0, 1, 2, 3]),
    np.array([-1, 0, 1, 0]),
)


def _program(points: FloatArray) -> Experiment:
    """A program whose `solve` has 90·n³ instructions of 0.4 ns in all ranks, `cell` 10·n³ of 1 ns; noise of 2 %."""
    p, n = points.T
    random = np.random.default_rng(3)
    cells = n**3 / p
    nothing = np.zeros(len(points))
    counts = {
        "instructions": np.stack([nothing + 20, 90 * cells, 10 * cells, nothing]),
        "visits": np.stack([nothing + 1, nothing + 1, cells, nothing + 1]),
        "bytes_loaded": np.stack([nothing, 8 * cells, nothing, nothing]),
        "bytes_stored": np.stack([nothing, 8 * cells, nothing, nothing]),
        "blocks": np.stack([nothing + 2, 9 * cells, cells, nothing]),
    }
    seconds = np.stack([nothing + 1e-5, 0.4e-9 * 90 * cells, 1e-9 * 10 * cells, nothing + 1e-6])
    noise = 1 + 0.02 * random.standard_normal((*seconds.shape, 3))
    values = {name: np.repeat(own[:, :, None], 3, axis=2) for name, own in counts.items()}
    values["time"] = seconds[:, :, None] * noise
    rows = ClassVectors(
        np.array([0, 1, 2]),
        np.stack([p, n**3, n**3]),
        np.full(3, -1),
        {
            "instructions": np.array([20.0, 90, 10]),
            "blocks": np.array([2.0, 9, 1]),
            "bytes_loaded": np.array([0.0, 8, 0]),
            "bytes_stored": np.array([0.0, 8, 0]),
        },
        (Place("main", "a.c", 1, 0), Place("solve", "a.c", 2, 3), Place("cell", "a.c", 3, 0)),
        p,
    )
    metrics = {name: METRICS[name] for name in values}
    return Experiment("program", ("p", "n"), points, TREE, metrics, values, classes=_Known(rows))


POINTS = np.array([(p, n) for p in (1.0, 2.0) for n in (40.0, 60.0, 90.0, 130.0)])
FAR = {"p": 2.0, "n": 260.0}


def test_prediction_of_a_program_is_rates_times_counts() -> None:
    found = evaluate(analyze(_program(POINTS)), FAR)
    cells = 260**3 / 2
    assert found.exclusive[1].value == pytest.approx(0.4e-9 * 90 * cells, rel=0.08)
    assert found.exclusive[2].value == pytest.approx(1e-9 * 10 * cells, rel=0.08)
    assert found.exclusive[1].lower < 0.4e-9 * 90 * cells < found.exclusive[1].upper
    rows = {one.path: one.model for one in found.ranking()}
    assert rows[1].endswith("ns · instructions")
    assert "µs · calls" in rows[3]


def test_runs_that_only_counted_tell_the_amount_of_work() -> None:
    """Of the runs that kept time, none has more than one rank: counts at the target come from the others."""
    whole = _program(POINTS)
    alone = np.flatnonzero(POINTS[:, 0] == 1)
    timed = replace(
        whole,
        points=POINTS[alone],
        values={name: own[:, alone] for name, own in whole.values.items()},
        classes=None,
    )
    counted = replace(whole.only([name for name in whole.metrics if name != "time"]), classes=whole.classes)
    experiment = replace(counted, metrics=whole.metrics, timed=TimedPart(timed, np.arange(len(TREE), dtype=np.int64)))
    found = evaluate(analyze(experiment), FAR)
    assert found.exclusive[1].value == pytest.approx(0.4e-9 * 90 * 260**3 / 2, rel=0.15)


def test_a_time_that_one_run_lost_is_that_of_the_caller_in_all() -> None:
    """A budget takes the time of a call path during a run: its caller has it there, so that it has it everywhere."""
    whole = _program(POINTS)
    seconds = whole.values["time"].copy()
    seconds[1, 3] += seconds[2, 3]
    seconds[2, 3] = 0.0
    moved = with_times_at_callers(replace(whole, values={**whole.values, "time": seconds}))
    assert not moved.values["time"][2].any()
    np.testing.assert_allclose(moved.values["time"][1], whole.values["time"][1] + whole.values["time"][2])
    found = evaluate(analyze(replace(whole, values={**whole.values, "time": seconds})), FAR)
    assert found.exclusive[1].value == pytest.approx((36e-9 + 10e-9) * 260**3 / 2, rel=0.08)
    assert found.exclusive[2].value == 0.0


def test_without_counts_of_loops_formulas_predict() -> None:
    experiment = replace(_program(POINTS), classes=None)
    analysis = analyze(experiment)
    assert analysis.times is None
    assert "ns ·" not in evaluate(analysis, FAR).ranking()[0].model


def test_a_start_that_does_not_depend_on_work_does_not_grow() -> None:
    """Memory is touched for the first time: 40 ms at all sizes, and the rate is constant beyond that."""
    seconds = (0.04 + 3e-10 * 1e2 * WORK)[:, None]
    (found,) = [
        rate
        for rate in rates(seconds, [Work("instructions", 1e2 * WORK)], np.ones(WORK.size), SLOW, 0.03)
        if rate.start > 0
    ]
    mean, _ = found.at(8e2 * float(WORK.max()), 1.0)
    assert found.start + math.exp(mean) == pytest.approx(0.04 + 3e-10 * 8e2 * WORK.max(), rel=0.1)


def test_no_rank_waits_longer_in_a_call_than_the_call_takes() -> None:
    whole = _program(POINTS)
    seconds = whole.values["time"].copy()
    seconds[3] += 1e-12 * POINTS[:, 1, None] ** 4
    waiting = np.zeros_like(seconds)
    waiting[3] = 0.9 * seconds[3]
    values = {**whole.values, "time": seconds, "wait_time": waiting}
    analysis = analyze(replace(whole, values=values, metrics={name: METRICS[name] for name in values}))
    far = {"p": 2.0, "n": 2600.0}
    waits, takes = evaluate(analysis, far, "wait_time").exclusive[3], evaluate(analysis, far).exclusive[3]
    assert 0 < waits.value <= takes.value
    assert waits.upper <= takes.upper
