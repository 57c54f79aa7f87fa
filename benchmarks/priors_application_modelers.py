# SPDX-License-Identifier: Apache-2.0
"""Define the modelers that are compared on applications, whose kernels consist of one or several call paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from dnn_modeler import dnn_models
from dnn_training import base_file
from modeling_extrap import model_with_extrap
from modeling_sets import PlantedSet
from priors_application_runs import Runs
from priors_programs import EFFORT, Floats
from quipu.modeling.analysis import fit_metrics
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import Model, NoModel, Options, add, fit_models
from quipu.modeling.pmnf.model import Exponents
from quipu.modeling.priors import model_time_and_waiting, time_priors

_TIME = Metric("time", "s", "cost")
_MEDIAN = Options(aggregation="median")


@dataclass(frozen=True, eq=False)
class Answer:
    """The answers of a modeler for K kernels: predictions (K, T) at the tests, leading exponents, models as text."""

    predictions: Floats
    leads: list[dict[str, Exponents]]
    texts: list[str]


# A modeler: a function of the times of all call paths, shape (paths, C, R).
Modeler = Callable[[Floats], Answer]


def modelers_of(runs: Runs, extrap: Path | None) -> dict[str, Modeler]:
    """Return the modelers for an application; extrap: the Python of an environment with Extra-P, if it takes part."""
    found: dict[str, Modeler] = {
        "quipu": _priors(runs, 1),
        "quipu_all": _priors(runs, runs.experiment.values["time"].shape[2]),
        "classic": _time_alone(runs),
    }
    if base_file().exists():
        found["dnn"] = _dnn(runs)
    else:
        print("without the DNN-based modeler: make bench-dnn_training trains its network")
    if extrap is not None:
        found["extrap"] = _extrap(runs, extrap)
    return found


def _priors(runs: Runs, repetitions: int) -> Modeler:
    """Return Quipu: models of the call paths from their priors and the first repetitions, added per kernel.

    Noise increases waiting like the time of the call path. Orders come from the models with effort.
    """
    whole = runs.experiment
    choices = time_priors(whole, fit_metrics(whole, EFFORT))
    clean = whole.values["time"][:, :, :repetitions]
    waits = whole.values["wait_time"][:, :, :repetitions]

    def model(times: Floats) -> Answer:
        first = times[:, :, :repetitions]
        delayed = waits * np.divide(first, clean, out=np.ones_like(first), where=clean > 0)
        noisy = replace(whole, values={**whole.values, "time": first, "wait_time": delayed})
        found = model_time_and_waiting(noisy, choices).time

        def sums(parts: Sequence[Model | NoModel]) -> list[Model | None]:
            known = [
                [part for path in kernel.paths if isinstance(part := parts[path], Model)] for kernel in runs.kernels
            ]
            return [add(own) if own else None for own in known]

        return _answer(sums([entry.model for entry in found]), runs, sums([entry.from_effort for entry in found]))

    return model


def _sums(runs: Runs, times: Floats) -> Floats:
    """Return the times of kernels (K, C, R)."""
    return np.stack([times[list(kernel.paths)].sum(axis=0) for kernel in runs.kernels])


def _time_alone(runs: Runs) -> Modeler:
    def model(times: Floats) -> Answer:
        own = runs.experiment
        return _answer(fit_models(own.points, _sums(runs, times), _TIME, own.parameters, _MEDIAN), runs)

    return model


def _dnn(runs: Runs) -> Modeler:
    def model(times: Floats) -> Answer:
        own = runs.experiment
        return _answer(dnn_models(own.parameters, own.points, _sums(runs, times)), runs)

    return model


def _extrap(runs: Runs, python: Path) -> Modeler:
    def model(times: Floats) -> Answer:
        own = runs.experiment
        centre = np.median(_sums(runs, times), axis=2, keepdims=True)
        sets = [
            PlantedSet(str(number), own.parameters, own.points, centre, np.array(test, dtype=float), centre, [], [])
            for number, test in enumerate(runs.application.tests)
        ]
        found = model_with_extrap(sets, python)
        leads = [dict(zip(own.parameters, lead, strict=True)) for lead in found["0"].leads]
        predictions = np.concatenate([found[each.name].predictions for each in sets], axis=1)
        return Answer(predictions, leads, [""] * len(leads))

    return model


def _answer(
    models: Sequence[Model | NoModel | None], runs: Runs, orders: Sequence[Model | NoModel | None] | None = None
) -> Answer:
    """Use the prediction 0 and the order of a constant for a kernel without a model. orders: models of the orders."""
    parameters, tests = runs.experiment.parameters, np.array(runs.application.tests, dtype=np.float64)
    own = [model if isinstance(model, Model) else Model(parameters) for model in models]
    leading = [model if isinstance(model, Model) else Model(parameters) for model in orders or models]
    return Answer(
        np.stack([model.evaluate(tests) for model in own]),
        [{x: model.lead(x) for x in parameters} for model in leading],
        [str(model) for model in own],
    )
