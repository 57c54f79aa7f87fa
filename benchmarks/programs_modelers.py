# SPDX-License-Identifier: Apache-2.0
"""Define the modelers that benchmarks/programs.py compares.

An engine is a function that predicts an experiment at points. Its arguments are an experiment, as `quipu.open` returns
it, and a list of points, which are dictionaries of parameters. For each point, it returns a dictionary from metrics to
arrays of shape (call paths, 3): value, lower and upper end of the interval. The name of the experiment is the name of
the program. An engine that learned from the corpus can therefore leave this program out.
"""

from __future__ import annotations

import importlib
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from modeling_extrap import interpreter, model_with_extrap
from modeling_layout_sets import LayoutSet
from quipu.modeling.analysis import analyze
from quipu.modeling.counts.predictions import count_models
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import Experiment, FloatArray, mean_over_repetitions

Point = dict[str, float]
Predictions = dict[str, FloatArray]
Engine = Callable[[Experiment, Sequence[Point]], list[Predictions]]


def quipu_engine(experiment: Experiment, points: Sequence[Point]) -> list[Predictions]:
    """Return the predictions of Quipu's engine."""
    analysis = analyze(experiment)
    return [
        {
            name: np.array([(own.value, own.lower, own.upper) for own in evaluate(analysis, point, name).exclusive])
            for name in experiment.values
        }
        for point in points
    ]


def formulas_engine(experiment: Experiment, points: Sequence[Point]) -> list[Predictions]:
    """Return the predictions of the formulas that `quipu model` prints, without the laws of counts."""
    analysis = replace(analyze(replace(experiment, classes=None)), counts=None)
    return [
        {
            name: np.array([(own.value, own.lower, own.upper) for own in evaluate(analysis, point, name).exclusive])
            for name in experiment.values
        }
        for point in points
    ]


def laws_engine(experiment: Experiment, points: Sequence[Point]) -> list[Predictions]:
    """Return the predictions of the laws of counts alone."""
    counts = count_models(experiment)
    names = counts.metrics if counts is not None else ()
    return [
        {
            name: np.array([(own.value, own.lower, own.upper) for own in counts.predict(point, name)])
            for name in names
            if counts is not None
        }
        for point in points
    ]


def engine_of(text: str) -> Engine:
    """Return the function that MODULE:FUNCTION names. Raises ValueError if there is none."""
    module, _, function = text.partition(":")
    try:
        engine: Engine = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--engine {text}: {error}; give MODULE:FUNCTION of a module on the Python path") from error
    return engine


class ExtraP:
    """Extra-P with its defaults, one model per metric and call path; intervals have no width. `seconds`: CPU time."""

    def __init__(self) -> None:
        self.python = interpreter()
        self.seconds = 0.0

    def __call__(self, experiment: Experiment, points: Sequence[Point]) -> list[Predictions]:
        """Return the predictions; each model is made from means over repetitions."""
        targets = np.array([[point[name] for name in experiment.parameters] for point in points])
        sets = [
            LayoutSet(
                name,
                experiment.parameters,
                experiment.points,
                np.nan_to_num(mean_over_repetitions(values))[:, :, None],
                targets,
                np.full((len(values), len(points)), np.nan),
            )
            for name, values in experiment.values.items()
        ]
        answers = model_with_extrap(sets, self.python)
        self.seconds = sum(own.seconds for own in answers.values())
        return [
            {name: np.repeat(own.predictions[:, at, None], 3, axis=1) for name, own in answers.items()}
            for at in range(len(points))
        ]


def extrap_or_none() -> ExtraP | None:
    """Return Extra-P, or None if it cannot be installed."""
    try:
        return ExtraP()
    except subprocess.CalledProcessError:
        return None
