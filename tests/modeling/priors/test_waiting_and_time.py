# SPDX-License-Identifier: Apache-2.0
"""The waiting of a call path is a part of its time: both have one model, and none waits longer than the call takes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import IMBALANCE, CallTree, Experiment, FloatArray, Metric, Region, RegionKind
from quipu.modeling.pmnf.model import Alternative, Model, Quality, Term
from quipu.modeling.pmnf.model.term import Factor
from quipu.modeling.priors.path_model import PathModel
from quipu.modeling.priors.waiting import is_preferred
from quipu.modeling.priors.waiting_part import parts_that_wait

from ..waiting_program import RECEIVE, WORK, N, P, experiment, normal_noise

LINEAR = Factor("n", Fraction(1))
BYTES = Term(8e-9, (LINEAR,))
FAR = [{"p": p, "n": n} for p in (1.0, 1000.0, 1e5) for n in (50.0, 2000.0, 1e5)]


def parts_of(model: Model, wait: object) -> Model:
    """Return the model of waiting (C,) of receiving, whose time has this model."""
    measured = experiment(WORK, RECEIVE, np.asarray(wait) * np.ones_like(P))
    entry = PathModel(model, "table I: MPI_Recv")
    found = parts_that_wait(measured, {2: entry}, [[], [], []])[2]
    assert found.basis == "part of time"
    assert isinstance(found.model, Model)
    return found.model


@pytest.mark.parametrize("seed", range(3))
def test_waiting_that_time_has_a_model_of_is_predicted_by_it(seed: int) -> None:
    wait = 0.2 * WORK * P ** (1 / 3)
    found = analyze(experiment(WORK, RECEIVE + wait, wait, normal_noise(seed)))
    time, waiting = (found.models(name)[2] for name in ("time", "wait_time"))
    assert (time.basis, waiting.basis) == ("table I: MPI_Recv + waiting", "waiting")
    assert isinstance(time.model, Model)
    assert isinstance(waiting.model, Model)
    points = np.array([tuple(point.values()) for point in FAR])
    transfer = time.model.evaluate(points) - waiting.model.evaluate(points)
    assert transfer == pytest.approx(1e-5 + 8e-9 * points[:, 1], rel=0.1)
    assert len(time.model.alternatives) == len(waiting.model.alternatives)
    for point in FAR:
        assert evaluate(found, point, "wait_time").total.value < evaluate(found, point).exclusive[2].value


@pytest.mark.parametrize("seed", range(3))
def test_waiting_in_calls_that_table_i_explains_is_a_part_of_their_time(seed: int) -> None:
    """Noise of waiting alone would cause growth of waiting beyond the time of the call."""
    wait = 0.04 * RECEIVE * (1 + 0.2 * np.random.default_rng(seed).uniform(-1, 1, len(P)))
    found = analyze(experiment(WORK, RECEIVE, wait))
    assert found.models("wait_time")[2].basis == "part of time"
    for point in FAR:
        share = evaluate(found, point, "wait_time").total.value / evaluate(found, point).exclusive[2].value
        assert share == pytest.approx(0.04, rel=0.3)


def test_no_term_waits_longer_than_it_takes() -> None:
    """Each term has the same part, which is at most the whole."""
    time = Model(("p", "n"), 1e-5, (BYTES,))
    model = parts_of(time, 0.5e-5 + 4e-9 * N)
    assert (model.constant, model.terms[0].coefficient) == (pytest.approx(0.5e-5), pytest.approx(4e-9))
    assert str(parts_of(time, 1.0)) == str(time)


def test_terms_below_zero_have_the_part_of_all_others() -> None:
    time = Model(("p", "n"), -1e-7, (BYTES,))
    model = parts_of(time, 0.25 * (8e-9 * N - 1e-7))
    assert (model.constant, model.terms[0].coefficient) == (pytest.approx(-0.25e-7), pytest.approx(2e-9))


def test_other_forms_of_time_are_other_forms_of_its_waiting() -> None:
    other = Alternative(0.25, 0.0, (Term(1e-9, (LINEAR, Factor("p", log=1))),))
    model = parts_of(Model(("p", "n"), 1e-5, (BYTES,), alternatives=(other,)), 0.5 * RECEIVE)
    assert [one.weight for one in model.alternatives] == [0.25]
    assert [term.coefficient for term in model.alternatives[0].terms] == [pytest.approx(0.5e-9)]


def test_calls_that_never_wait_have_no_part() -> None:
    entry = PathModel(Model(("p", "n"), 1e-5, (BYTES,)), "table I: MPI_Recv")
    assert not parts_that_wait(experiment(WORK, RECEIVE, np.zeros_like(P)), {2: entry}, [[], [], []])


def test_configurations_that_hardly_wait_do_not_decide() -> None:
    """On 64 ranks the waiting is one nanosecond of clock resolution, to which relative errors give too much weight."""
    waits = np.where(P == 64, 1e-9, 2e-6 * np.log2(P))
    models = analyze(experiment(WORK, RECEIVE + waits, waits))
    predicted = evaluate(models, {"p": 1000.0, "n": 500.0}, "wait_time").exclusive[2]
    assert 1e-5 < predicted.value < 1e-4


RANKS = np.array([2.0, 4.0, 8.0])
LATE_TREE = CallTree(
    (Region("main", "main"), Region("sort", "sort"), Region("MPI_Bcast", "MPI_Bcast", RegionKind.MPI)),
    np.array([0, 1, 2]),
    np.array([-1, 0, 0]),
)


def late_root(waiting: FloatArray, transfer: FloatArray) -> PathModel:
    """Return the model of the time of a broadcast whose root sorts, measured with 2, 4 and 8 ranks."""
    ones, nothing = np.ones(3), np.zeros(3)
    values = {
        "visits": np.stack([ones, 10 / RANKS, 10 * ones]),
        "blocks": np.stack([ones, 1e7 / RANKS, nothing]),
        "bytes_sent": np.stack([nothing, nothing, 1e7 * ones]),
        "comm_size": np.stack([nothing, nothing, RANKS]),
        "time": np.stack([1e-6 * ones, 0.05 / RANKS, waiting + transfer]),
        "wait_time": np.stack([nothing, nothing, waiting]),
    }
    times = {name: Metric(name, "s", "cost") for name in ("time", "wait_time")}
    metrics = {name: Metric(name, "1", "effort") for name in values} | times
    columns = {name: column[:, :, None] for name, column in values.items()}
    excess = {IMBALANCE: np.stack([nothing, 1e7 * (RANKS - 1) / RANKS, nothing])[:, :, None]}
    measured = Experiment("late root", ("p",), RANKS[:, None], LATE_TREE, metrics, columns, excess=excess)
    return analyze(measured).models("time")[2]


@pytest.mark.parametrize("noise", [(1.25, 1.0, 1.22), (1.0, 1.1, 1.2), (1.02, 1.15, 1.3)])
def test_waiting_that_was_measured_is_not_given_up_for_a_slightly_better_fit_of_time_alone(
    noise: tuple[float, float, float],
) -> None:
    """All but one rank wait for 50 ms: a logarithm fits three noisy times better, but not further ones."""
    found = late_root(0.05 * (RANKS - 1) / RANKS * np.array(noise), 1e-3 * np.log2(RANKS))
    assert found.basis == "table I: MPI_Bcast + waiting"
    assert isinstance(found.model, Model)
    assert float(found.model.evaluate(np.array([[64.0]]))[0]) == pytest.approx(0.055, rel=0.25)


@pytest.mark.parametrize(
    ("parts", "alone", "preferred"),
    [
        ((10.0, 0.1), (2.0, 0.02), True),  # three points say little
        ((10.0, 0.1), (20.0, 0.2), True),
        ((30.0, 0.3), (2.0, 0.02), False),  # it misses the time
        ((30.0, 0.3), (40.0, 0.25), True),
        ((0.1, 1e-3), (0.0, 0.0), True),
    ],
)
def test_when_separate_models_are_preferred(
    parts: tuple[float, float], alone: tuple[float, float], preferred: bool
) -> None:
    both = (Quality(smape, rms, 1.0, 1.0, rms, 3) for smape, rms in (parts, alone))
    assert is_preferred(*both) is preferred


def test_many_points_say_that_time_alone_fits_better() -> None:
    parts, alone = (Quality(smape, rms, 1.0, 1.0, rms, 25) for smape, rms in ((10.0, 0.1), (2.0, 0.02)))
    assert not is_preferred(parts, alone)
