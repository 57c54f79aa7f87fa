# SPDX-License-Identifier: Apache-2.0
"""Define the modelers of the evaluation of priors: Quipu's priors, time alone, a neural network, Extra-P 4.2.5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from dnn_modeler import dnn_models
from modeling_extrap import model_with_extrap
from modeling_sets import PlantedSet
from priors_accuracy import exponent_deviation
from priors_programs import EFFORT, Floats, Measured, with_times
from quipu.modeling.analysis import fit_metrics
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import Model, Options, fit_models
from quipu.modeling.pmnf.model import Exponents
from quipu.modeling.priors import fit_time, time_priors

_TIME = Metric("time", "s", "cost")
_MEDIAN = Options(aggregation="median")
_NOTHING: Exponents = (Fraction(0), 0)


@dataclass(frozen=True, eq=False)
class Answer:
    """The answers of a modeler for F functions: predictions (F,) at the test point, leading exponents by parameter."""

    predictions: Floats
    leads: list[dict[str, Exponents]]


Modeler = Callable[[Floats], Answer]


def priors_of(measured: Measured) -> Modeler:
    """Return a modeler with the priors of the measured effort, whose input is times (F, C, R)."""
    choices = time_priors(measured.experiment, fit_metrics(measured.experiment, EFFORT))

    def model(times: Floats) -> Answer:
        found = fit_time(with_times(measured.experiment, times), choices)
        models = [found[path].model if path in found else None for path in range(len(times))]
        return _answer(models, measured)

    return model


def time_alone(measured: Measured) -> Modeler:
    """Return a modeler that only uses times, the median of the repetitions."""

    def model(times: Floats) -> Answer:
        experiment = measured.experiment
        models = fit_models(experiment.points, times, _TIME, experiment.parameters, _MEDIAN)
        return _answer(models, measured)

    return model


def dnn(measured: Measured) -> Modeler:
    """Return the DNN-based modeler with the median of the repetitions; its network must be trained (dnn_training)."""

    def model(times: Floats) -> Answer:
        experiment = measured.experiment
        return _answer(dnn_models(experiment.parameters, experiment.points, times), measured)

    return model


def extrap(measured: Measured, python: Path) -> Modeler:
    """Return Extra-P with the median of the repetitions, as in the paper."""

    def model(times: Floats) -> Answer:
        experiment = measured.experiment
        centre = np.median(times, axis=2, keepdims=True)
        target = np.array(measured.test, dtype=np.float64)
        own = PlantedSet("times", experiment.parameters, experiment.points, centre, target, measured.far, [], [])
        found = model_with_extrap([own], python)["times"]
        leads = [dict(zip(experiment.parameters, lead, strict=True)) for lead in found.leads]
        return Answer(found.predictions[:, 0], leads)

    return model


def _answer(models: Sequence[object], measured: Measured) -> Answer:
    """Use the prediction 0 and the order of a constant for a function without a model."""
    predictions, leads = [], []
    for model in models:
        known = model if isinstance(model, Model) else None
        predictions.append(float(known.evaluate([measured.test])[0]) if known else 0.0)
        leads.append({x: known.lead(x) if known else _NOTHING for x in measured.experiment.parameters})
    return Answer(np.array(predictions), leads)


def relative_errors(answer: Answer, measured: Measured) -> Floats:
    """Return RE of each function, as a share."""
    errors: Floats = np.abs(answer.predictions - measured.far) / measured.far
    return errors


def deviations(answer: Answer, measured: Measured) -> Floats:
    """Return ED (F, parameters) of each function from the stated complexity."""
    return np.array(
        [
            [float(exponent_deviation(lead[x], truth[x])) for x in measured.experiment.parameters]
            for lead, truth in zip(answer.leads, measured.truth, strict=True)
        ]
    )
