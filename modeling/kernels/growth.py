# SPDX-License-Identifier: Apache-2.0
"""How counters grow: models in normal form, or the fitting functions of the APMT paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..absence import PRESENT, Absence
from ..errors import ModelingError
from ..experiment import Experiment, FloatArray, Metric
from ..pmnf.calibration import EXACT_RESIDUAL
from ..pmnf.model import Model, Prediction
from ..pmnf.modeler import fit_models
from ..pmnf.options import Options
from .few import Few, fit_few
from .functions import Fitted, best_fit
from .variables import Variables, timed

Method = Literal["quipu", "paper"]
METHODS: tuple[Method, ...] = ("quipu", "paper")

_EFFORT = Metric("counter", "1", "effort")
_COST = Metric("counter", "1", "cost")
# A residual of few functions from which on a model in normal form with a smaller one is better.
_WORSE = 0.02


@dataclass(frozen=True)
class Growth:
    """A counter as a function of the configuration.

    basis: "effort" (an exact count's model in normal form), "normal form", or "fitting function" (of the amount of work
    of a process). absence: where what it counts is not executed.
    """

    model: Model | Fitted | Few
    basis: str
    variables: Variables
    absence: Absence = PRESENT

    def at(self, point: Mapping[str, float]) -> Prediction:
        """Return the value at a point, not below 0, with its 90 % interval."""
        if self.absence.holds(point):
            return Prediction(0.0, 0.0, 0.0, False)
        if isinstance(self.model, Fitted):
            return self.model.at(self.variables.amount(point))
        if isinstance(self.model, Few):
            return self.model.at(self.variables.amount(point), self.variables.number(point))
        found = self.model.predict(self.model.point({name: point[name] for name in self.model.parameters}))
        return Prediction(max(found.value, 0.0), max(found.lower, 0.0), max(found.upper, 0.0), found.extrapolates)

    def __str__(self) -> str:
        """Return the function as a person writes it; x is D / P, or 1 / P."""
        return str(self.model)


def growths(
    experiment: Experiment,
    variables: Variables,
    values: FloatArray,
    effort: bool,
    method: Method = "quipu",
    absences: Sequence[Absence] = (),
) -> list[Growth]:
    """Return the growth of N counters, values (N, C). absences: where each is not executed, none if empty.

    method "paper": the fitting function with the best R² (section 3.3). "quipu": counts that are exact get models in
    normal form; of others, and of counts that have no such model, whichever predicts better what it was not made from.
    Both are 0 where nothing is executed, and made from the other configurations.
    Raises ModelingError if there are parameters that fitting functions do not know.
    """
    if method == "paper":
        if not variables.has_amount:
            unknown = ", ".join(variables.others)
            raise ModelingError(
                f"{experiment.name}: fitting functions know the number of processes and the problem size, not "
                f"{unknown}: say which is which"
            )
        amounts = variables.amounts(experiment.parameters, experiment.points)
        return [Growth(best_fit(amounts, row), "fitting function", variables) for row in values]
    metric = _EFFORT if effort else _COST
    options = Options(grids=tuple(grid for grid in experiment.grids if grid.source))
    use = np.ones(experiment.configurations, dtype=bool) if effort else timed(experiment)
    points, values = experiment.points[use], values[:, use]
    absences = absences or [PRESENT] * len(values)
    names = experiment.parameters
    present = np.array([absence.present(names, points) for absence in absences]).reshape(values.shape)
    models = fit_models(points, values[:, :, None], metric, names, options, present)
    scatter = 0.0 if effort else experiment.scatter
    result = []
    for row, model, absence, where in zip(values, models, absences, present, strict=True):
        known = model if isinstance(model, Model) else None
        found = _better(experiment, variables, points[where], row[where], known, effort, scatter)
        result.append(replace(found, absence=absence))
    return result


def _better(
    experiment: Experiment,
    variables: Variables,
    points: FloatArray,
    values: FloatArray,
    model: Model | None,
    effort: bool,
    scatter: float,
) -> Growth:
    """Return the model in normal form where it is exact or the only one, else what rests on fewer coefficients.

    scatter: relative, of times that should be alike.
    """
    if model is not None and (not variables.has_amount or (effort and _proven(model, experiment))):
        return Growth(model, "effort" if effort else "normal form", variables)
    if not variables.has_amount:
        return Growth(Model(experiment.parameters, float(np.nanmean(values))), "mean", variables)
    amounts = variables.amounts(experiment.parameters, points)
    processes = variables.numbers(experiment.parameters, points)
    few = Growth(fit_few(amounts, processes, values, effort, scatter), "few functions", variables)
    assert isinstance(few.model, Few)
    if model is None or model.quality is None:
        return few
    worse = few.model.residual > max(_WORSE, scatter, model.quality.rms_relative) and _freedom(model) > 0
    return Growth(model, "normal form", variables) if worse else few


def _freedom(model: Model) -> int:
    return (model.quality.points if model.quality is not None else 0) - len(model.terms) - (model.constant != 0)


def _proven(model: Model, experiment: Experiment) -> bool:
    """Whether a model reproduces counts that did not have to obey it, or those of a process grid that is known."""
    if model.quality is None or model.quality.rms_relative >= EXACT_RESIDUAL:
        return model.is_constant and model.quality is None
    return _freedom(model) > 0 or any(grid.source for grid in experiment.grids)


def summed(parts: Sequence[Prediction]) -> Prediction:
    """Return the sum of predictions whose errors count as independent."""
    value = sum(part.value for part in parts)
    below = sum((part.value - part.lower) ** 2 for part in parts) ** 0.5
    above = sum((part.upper - part.value) ** 2 for part in parts) ** 0.5
    return Prediction(value, max(value - below, 0.0), value + above, any(part.extrapolates for part in parts))


def product(prediction: Prediction, factor: float, relative: float = 0.0) -> Prediction:
    """Return a prediction times a factor that is uncertain by this part of it (half of its 90 % interval)."""
    value = prediction.value * factor
    below = (((prediction.value - prediction.lower) * factor) ** 2 + (value * relative) ** 2) ** 0.5
    above = (((prediction.upper - prediction.value) * factor) ** 2 + (value * relative) ** 2) ** 0.5
    return Prediction(value, max(value - below, 0.0), value + above, prediction.extrapolates)
