# SPDX-License-Identifier: Apache-2.0
"""Predict times, waiting and counts of call paths at a point, as `quipu predict` does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..evaluation import Evaluation, evaluate
from ..experiment import Experiment
from ..models import Analysis
from ..pmnf.model import Prediction


class Amount(Protocol):
    """A number that depends on the configuration."""

    def at(self, point: Mapping[str, float]) -> Prediction:
        """Return the value at a point, not below 0, with its 90 % interval."""


@dataclass(frozen=True, eq=False)
class Models:
    """The models of all call paths of an experiment.

    paths: for each call path of the runs with times, the number of the same call path in the tree of `analysis`.
    """

    analysis: Analysis
    paths: tuple[int, ...]
    _known: dict[tuple[object, ...], Evaluation] = field(default_factory=dict)

    @classmethod
    def of(cls, experiment: Experiment, analysis: Analysis) -> Models:
        """Return the amounts of an experiment that may contain count-only runs."""
        timed = experiment.timed
        paths = range(len(experiment.tree)) if timed is None else timed.paths.tolist()
        return cls(analysis, tuple(paths))

    def at(self, metric: str, point: Mapping[str, float]) -> Evaluation:
        """Return the predictions of all call paths for a metric at a point, as `evaluate` does."""
        key = (metric, *sorted(point.items()))
        if key not in self._known:
            self._known[key] = evaluate(self.analysis, point, metric)
        return self._known[key]

    def sum(self, metric: str, paths: Sequence[int], point: Mapping[str, float]) -> Prediction:
        """Return the sum of a metric over call paths at a point; 0 without models or predictions."""
        if metric not in self.analysis.metrics:
            return Prediction(0.0, 0.0, 0.0, False)
        found = self.at(metric, point).sum_over([self.paths[path] for path in paths])
        return Prediction(0.0, 0.0, 0.0, False) if math.isnan(found.value) else found

    def text(self, metric: str, paths: Sequence[int], point: Mapping[str, float]) -> str:
        """Return the models of a metric of call paths as text."""
        if metric not in self.analysis.metrics:
            return ""
        chosen = {self.paths[path] for path in paths}
        rows = self.at(metric, point).ranking()
        return "; ".join(dict.fromkeys(row.model for row in rows if row.path in chosen and row.model not in ("", "0")))


@dataclass(frozen=True, eq=False)
class Counted:
    """The sum of metrics over call paths, by the models of the experiment."""

    models: Models
    metrics: tuple[str, ...]
    paths: tuple[int, ...]

    def at(self, point: Mapping[str, float]) -> Prediction:
        """Return the value at a point with its 90 % interval."""
        parts = [self.models.sum(name, self.paths, point) for name in self.metrics]
        return parts[0] if len(parts) == 1 else summed(parts)


def summed(parts: Sequence[Prediction]) -> Prediction:
    """Return the sum of predictions, whose errors are assumed to be independent."""
    value = sum(part.value for part in parts)
    below = sum((part.value - part.lower) ** 2 for part in parts) ** 0.5
    above = sum((part.upper - part.value) ** 2 for part in parts) ** 0.5
    return Prediction(value, max(value - below, 0.0), value + above, any(part.extrapolates for part in parts))


def product(prediction: Prediction, factor: float, relative: float = 0.0) -> Prediction:
    """Return a prediction times a factor with this relative uncertainty (half of its 90 % interval)."""
    value = prediction.value * factor
    below = (((prediction.value - prediction.lower) * factor) ** 2 + (value * relative) ** 2) ** 0.5
    above = (((prediction.upper - prediction.value) * factor) ** 2 + (value * relative) ** 2) ** 0.5
    return Prediction(value, max(value - below, 0.0), value + above, prediction.extrapolates)
