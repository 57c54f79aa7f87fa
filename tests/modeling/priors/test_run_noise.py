# SPDX-License-Identifier: Apache-2.0
"""Disturbances of whole runs are recognized by common deviations of many call paths, and removed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region, RegionKind
from quipu.modeling.pmnf.model import Factor, Model, Term
from quipu.modeling.priors.path_model import PathModel
from quipu.modeling.priors.run_noise import RunNoise, run_noise

_PATHS = 8
_POINTS = np.array([(p, n) for p in (2.0, 4.0, 8.0, 16.0) for n in (8.0, 12.0, 16.0, 20.0)])
# The last two call paths do not feel what the others feel.
_LOADS = np.array([1.0, 0.5, 1.0, 2.0, 1.0, 1.5, 0.0, 0.0])
_OWN_NOISE = 0.02


def _form(path: int) -> Model:
    return Model(("p", "n"), 0.0, (Term(1.0 + path, (Factor("n", Fraction(1 + path % 3)),)),))


_BLOCKS = np.array([_form(path).evaluate(_POINTS) for path in range(_PATHS)])


def _times(disturbance: FloatArray, seed: int = 1) -> FloatArray:
    """Return times (paths, C, R) with disturbances (C, R) in logarithms, which call paths feel by their loads."""
    random = np.random.default_rng(seed)
    own = random.normal(0.0, _OWN_NOISE, (_PATHS, *disturbance.shape))
    return np.asarray(1e-6 * _BLOCKS[:, :, None] * np.exp(_LOADS[:, None, None] * disturbance + own))


def _experiment(times: FloatArray) -> Experiment:
    names = [f"kernel_{path}" for path in range(_PATHS)]
    regions = (*(Region(name, name) for name in names), Region("MPI_Init", "MPI_Init", RegionKind.MPI))
    tree = CallTree(regions, np.arange(_PATHS + 1), np.full(_PATHS + 1, -1))
    start = np.full((1, *times.shape[1:]), 0.5)
    blocks = np.concatenate([np.repeat(_BLOCKS[:, :, None], times.shape[2], axis=2), 0.0 * start])
    metrics = {"blocks": Metric("blocks", "1", "effort"), "time": Metric("time", "s", "cost")}
    values = {"blocks": blocks, "time": np.concatenate([times, start])}
    return Experiment("program", ("p", "n"), _POINTS, tree, metrics, values)


def _noise(times: FloatArray) -> RunNoise | None:
    """Return the noise of runs beside models that are the truth."""
    models = [PathModel(_form(path).scaled(1e-6), "effort") for path in range(_PATHS)]
    return run_noise(_experiment(times), dict(enumerate([*models, PathModel(Model(("p", "n"), 0.5), "time")])))


def _disturbance(repetitions: int = 5, seed: int = 2) -> FloatArray:
    return np.random.default_rng(seed).normal(0.0, 0.2, (len(_POINTS), repetitions))


def test_factors_are_those_of_the_runs_and_of_what_call_paths_feel() -> None:
    disturbance = _disturbance()
    found = _noise(_times(disturbance))
    assert found is not None
    assert found.deviation == pytest.approx(0.2, rel=0.3)
    logs = np.log(found.factors)
    assert (logs[_PATHS] == 0).all()  # the start of MPI
    for path, load in enumerate(_LOADS.tolist()):
        left = logs[path] - load * disturbance
        assert left.std() < 0.03, path


def test_waiting_is_corrected_with_the_time_that_it_is_in() -> None:
    times = _times(_disturbance())
    found = _noise(times)
    assert found is not None
    experiment = _experiment(times)
    waits = {"wait_time": Metric("wait_time", "s", "cost")}
    half = Experiment(
        "program",
        experiment.parameters,
        experiment.points,
        experiment.tree,
        {**experiment.metrics, **waits},
        {**experiment.values, "wait_time": 0.5 * experiment.values["time"]},
    )
    calm = found.without(half)
    assert np.allclose(calm.values["wait_time"], 0.5 * calm.values["time"])
    assert (calm.values["blocks"] == half.values["blocks"]).all()


def test_models_of_disturbed_runs_are_nearer_to_the_truth_and_say_so() -> None:
    disturbance = _disturbance(seed=5)
    target = np.array([[32.0, 24.0]])
    analysis = analyze(_experiment(_times(disturbance)))
    assert any("whole runs were faster or slower than others" in note for note in analysis.notes)
    for path in range(_PATHS):
        model = analysis.models("time")[path].model
        assert isinstance(model, Model)
        truth = 1e-6 * _form(path).evaluate(target)
        assert model.evaluate(target) == pytest.approx(truth, rel=0.1), path


@pytest.mark.parametrize("repetitions", [1, 2])
def test_few_repetitions_tell_nothing(repetitions: int) -> None:
    assert _noise(_times(_disturbance(repetitions))) is None


def test_noise_of_each_call_path_is_none_of_the_runs() -> None:
    assert _noise(_times(np.zeros((len(_POINTS), 5)))) is None


@pytest.mark.parametrize("miss", [0.02, 0.25])
def test_models_that_miss_the_same_configurations_are_no_noise_of_runs(miss: float) -> None:
    missed = miss * np.random.default_rng(4).standard_normal((len(_POINTS), 1))
    found = [_noise(_times(np.repeat(missed, 5, axis=1), seed)) for seed in range(20)]
    assert found.count(None) >= 19


def test_noise_of_runs_as_large_as_that_of_each_call_path_is_found() -> None:
    assert all(_noise(_times(0.1 * _disturbance(seed=seed), seed)) is not None for seed in range(5))


def test_what_all_runs_of_a_configuration_share_is_no_noise() -> None:
    growth = 0.25 * np.log2(_POINTS[:, 0] / 2.0)  # slower with every rank, which the models know nothing of
    found = _noise(_times(growth[:, None] + np.random.default_rng(3).normal(0.0, 0.05, (len(_POINTS), 5))))
    assert found is not None
    removed = np.log(found.factors[0])
    by_ranks = removed.mean(axis=1)[_POINTS[:, 0] == 16.0].mean() - removed.mean(axis=1)[_POINTS[:, 0] == 2.0].mean()
    assert abs(by_ranks) < 0.1  # of .75


def test_runs_that_are_missing_stay_missing() -> None:
    times = _times(_disturbance())
    times[:, 3, 4] = np.nan
    times[2, :4] = np.nan
    times[5, 7, 1] = 0.0
    found = _noise(times)
    assert found is not None
    assert np.isfinite(found.factors).all()
    calm = found.without(_experiment(times)).values["time"]
    assert (np.isnan(calm[:_PATHS]) == np.isnan(times)).all()
    assert (found.factors[:, 3, 4] == 1.0).all()


def test_oversubscribed_runs_are_left_as_they_are() -> None:
    times = _times(_disturbance())
    experiment = _experiment(times)
    crowded = Experiment(
        "program",
        experiment.parameters,
        experiment.points,
        experiment.tree,
        experiment.metrics,
        experiment.values,
        oversubscribed=_POINTS[:, 0] > 8,
    )
    models = [PathModel(_form(path).scaled(1e-6), "effort") for path in range(_PATHS)]
    found = run_noise(crowded, dict(enumerate([*models, PathModel(Model(("p", "n"), 0.5), "time")])))
    assert found is not None
    assert (found.factors[:, _POINTS[:, 0] > 8] == 1.0).all()
    assert (found.factors[0, _POINTS[:, 0] <= 8] != 1.0).all()
