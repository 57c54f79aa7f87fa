"""The models of one metric at one point: what ranking, region selection and diagnosis share."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .analysis import Analysis
from .errors import ModelingError
from .experiment import FloatArray, Metric
from .pmnf.model import Model, Prediction
from .pmnf.modeler import NoModel

_UNKNOWN, _NOTHING = (Prediction(value, value, value, False) for value in (math.nan, 0.0))


@dataclass(frozen=True)
class Ranked:
    """One call path in a ranking.

    share: part of the predicted value of the whole program, 0 to 1. model: its model as text; empty if there is
    none, in which case the value is NaN and the reason is in `note`.
    """

    path: int
    label: str
    value: float
    lower: float
    upper: float
    share: float
    extrapolates: bool
    model: str
    basis: str
    note: str = ""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All models of a metric, evaluated at one point.

    point: by parameter, in the order of `analysis.parameters`. exclusive: per call path; NaN without a finite
    prediction, and 0 instead of what is below.
    """

    analysis: Analysis
    metric: Metric
    point: dict[str, float]
    exclusive: tuple[Prediction, ...]

    @cached_property
    def inclusive(self) -> tuple[Prediction, ...]:
        """Per call path the sum over it and all below it, whose errors count as independent; NaN if all are NaN.

        Of a metric that does not add up, the exclusive predictions.
        """
        if self.metric.over_locations == "max":
            return self.exclusive
        sums = self.analysis.tree.inclusive(self._parts)
        return tuple(_UNKNOWN if math.isnan(value) else self._sum(value, *squares) for value, *squares in sums.tolist())

    @cached_property
    def total(self) -> Prediction:
        """The whole program: the sum over all call paths with a prediction; of what does not add up, the largest."""
        if self.metric.over_locations == "max":
            return max(self.exclusive, key=lambda prediction: np.nan_to_num(prediction.value, nan=-1.0))
        return self._sum(*np.nansum(self._parts, axis=0).tolist())

    @property
    def extrapolates(self) -> bool:
        """Whether the point lies outside of the measured range."""
        return any(
            not low <= x <= high for x, (low, high) in zip(self.point.values(), self.analysis.ranges, strict=True)
        )

    @property
    def _parts(self) -> FloatArray:
        """Values and the squares of the distances of both ends of the intervals from them, shape (call paths, 3)."""
        parts = [(p.value, (p.value - p.lower) ** 2, (p.upper - p.value) ** 2) for p in self.exclusive]
        return np.array(parts, dtype=np.float64).reshape(-1, 3)

    def _sum(self, value: float, below: float, above: float) -> Prediction:
        return Prediction(value, max(value - math.sqrt(below), 0.0), value + math.sqrt(above), self.extrapolates)

    def share(self, prediction: Prediction) -> float:
        """Return a prediction as part of the whole program, 0 if there is none."""
        total = self.total.value
        return prediction.value / total if total > 0 and not math.isnan(prediction.value) else 0.0

    def without(self, paths: Collection[int]) -> Evaluation:
        """Return the same of a program in which these call paths take nothing."""
        exclusive = (_NOTHING if path in paths else known for path, known in enumerate(self.exclusive))
        return replace(self, exclusive=tuple(exclusive))

    def ranking(self, inclusive: bool = False) -> tuple[Ranked, ...]:
        """Return call paths by predicted value, largest first; call paths without a prediction come last."""
        predictions = self.inclusive if inclusive else self.exclusive
        models = self.analysis.models(self.metric.name, inclusive)
        entries = []
        for path, (prediction, entry) in enumerate(zip(predictions, models, strict=True)):
            if isinstance(entry.model, NoModel):
                formula, note = "", entry.model.reason
            elif math.isnan(prediction.value):
                formula, note = "", "no finite prediction at this point"
            else:
                formula, note = str(entry.model), "; ".join(entry.model.notes)
            entries.append(
                Ranked(
                    path,
                    self.analysis.tree.label(path),
                    prediction.value,
                    prediction.lower,
                    prediction.upper,
                    self.share(prediction),
                    prediction.extrapolates,
                    formula,
                    entry.basis,
                    note,
                )
            )
        return tuple(sorted(entries, key=lambda e: (math.isnan(e.value), -np.nan_to_num(e.value), e.path)))


def evaluate(analysis: Analysis, point: Mapping[str, float], metric: str = "time") -> Evaluation:
    """Return the models of a metric at a point given as name → value.

    Raises ModelingError if there are no models of the metric, or the point does not fit the experiment: a value is
    missing, unknown, or no number above 0.
    """
    models = analysis.models(metric)
    values = _checked(analysis, point)
    exclusive = tuple(_predict(entry.model, tuple(values.values())) for entry in models)
    return Evaluation(analysis, analysis.metrics[metric], values, exclusive)


def _checked(analysis: Analysis, point: Mapping[str, float]) -> dict[str, float]:
    missing = [name for name in analysis.parameters if name not in point]
    unknown = [name for name in point if name not in analysis.parameters]
    if missing or unknown:
        problems = [f"no value of {', '.join(missing)}"] if missing else []
        problems += [f"unknown parameter {', '.join(unknown)}"] if unknown else []
        known = ", ".join(analysis.parameters) or "none"
        raise ModelingError(f"{analysis.name}: {'; '.join(problems)} (parameters of this experiment: {known})")
    values = {name: float(point[name]) for name in analysis.parameters}
    for name, value in values.items():
        if not math.isfinite(value) or value <= 0:
            raise ModelingError(f"{analysis.name}: parameter {name} must be a number above 0, not {value:g}")
    return values


def _predict(model: Model | NoModel, place: tuple[float, ...]) -> Prediction:
    """Predict; a value below 0 means that the growth of something else was mistaken for a decrease: 0."""
    if isinstance(model, NoModel):
        return _UNKNOWN
    try:
        found = model.predict(place)
    except ModelingError:
        return _UNKNOWN
    return Prediction(max(found.value, 0.0), max(found.lower, 0.0), max(found.upper, 0.0), found.extrapolates)
