"""Everything that the models of one experiment can tell: per metric, exclusive and inclusive, and rankings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from .errors import ModelingError
from .experiment import CallTree, Experiment, Metric
from .pmnf.model import Model, Prediction, add
from .pmnf.modeler import DEFAULT, NoModel, Options, fit_models
from .priors.choices import executed
from .priors.effort_time import PathModel, model_time

MEASURED, SUM = "measured", "sum"


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


@dataclass(frozen=True)
class Ranking:
    """Call paths by predicted value at one point, largest first; call paths without a model come last.

    total: predicted value of the whole program, the sum over all call paths that have a model.
    """

    metric: Metric
    inclusive: bool
    point: dict[str, float]
    total: Prediction
    entries: tuple[Ranked, ...]

    @property
    def extrapolates(self) -> bool:
        """Whether the point lies outside of the measured range."""
        return self.total.extrapolates


@dataclass(frozen=True, eq=False)
class Analysis:
    """The models of an experiment.

    exclusive: per metric one entry per call path, as in `tree`. ranges: per parameter the measured range.
    """

    name: str
    parameters: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...]
    tree: CallTree
    metrics: dict[str, Metric]
    exclusive: dict[str, tuple[PathModel, ...]]
    over_ranks: str = "mean"
    notes: tuple[str, ...] = ()

    def models(self, metric: str, inclusive: bool = False) -> tuple[PathModel, ...]:
        """Return the models of a metric for all call paths; ModelingError that lists the metrics if unknown."""
        if metric not in self.exclusive:
            known = ", ".join(sorted(self.exclusive)) or "none"
            raise ModelingError(f"{self.name}: no models of metric {metric!r}; there are models of: {known}")
        return self._inclusive[metric] if inclusive else self.exclusive[metric]

    @cached_property
    def _inclusive(self) -> dict[str, tuple[PathModel, ...]]:
        return {name: self._sum_up(name) for name in self.exclusive}

    def _sum_up(self, metric: str) -> tuple[PathModel, ...]:
        own = self.exclusive[metric]
        if self.metrics[metric].over_locations == "max":
            return own
        result = []
        for path in range(len(self.tree)):
            below = self.subtree(path)
            models = [entry.model for number in below if isinstance((entry := own[number]).model, Model)]
            parts = [model for model in models if isinstance(model, Model)]
            if len(below) == 1:
                result.append(own[path])
            elif not parts:
                result.append(PathModel(NoModel("no call path below has a model"), SUM))
            else:
                total = add(parts)
                missing = len(below) - len(parts)
                notes = (f"{missing} of {len(below)} call paths have no model",) if missing else ()
                model = Model(
                    self.parameters, total.constant, total.terms, None, self.ranges, total.covariance, (), notes
                )
                result.append(PathModel(model, SUM))
        return tuple(result)

    def subtree(self, path: int) -> tuple[int, ...]:
        """Return the call path and all below it."""
        found, stack = [], [path]
        while stack:
            node = stack.pop()
            found.append(node)
            stack.extend(self.tree.children[node])
        return tuple(sorted(found))

    def check_point(self, point: Mapping[str, float]) -> dict[str, float]:
        """Return the point with its values as numbers, in the order of the parameters.

        Raises ModelingError that names what is missing, unknown, or no number above 0.
        """
        missing = [name for name in self.parameters if name not in point]
        unknown = [name for name in point if name not in self.parameters]
        if missing or unknown:
            problems = [f"no value of {', '.join(missing)}"] if missing else []
            problems += [f"unknown parameter {', '.join(unknown)}"] if unknown else []
            known = ", ".join(self.parameters) or "none"
            raise ModelingError(f"{self.name}: {'; '.join(problems)} (parameters of this experiment: {known})")
        values = {name: float(point[name]) for name in self.parameters}
        for name, value in values.items():
            if not math.isfinite(value) or value <= 0:
                raise ModelingError(f"{self.name}: parameter {name} must be a number above 0, not {value:g}")
        return values

    def rank_at(self, point: Mapping[str, float], metric: str = "time", inclusive: bool = False) -> Ranking:
        """Return call paths by predicted value of a metric at a point given as name → value.

        Inclusive values are sums of the predictions of the parts, whose errors count as independent. The share is
        that of the whole program. Raises ModelingError if the point does not fit the experiment.
        """
        own = self.models(metric)
        values = self.check_point(point)
        place = tuple(values.values())
        outside = any(not low <= x <= high for x, (low, high) in zip(place, self.ranges, strict=True))
        predictions = [_predict(entry.model, place) for entry in own]
        everything = _sum([p for p in predictions if p is not None], outside)
        entries = []
        for path in range(len(self.tree)):
            entry, prediction = own[path], predictions[path]
            if inclusive and self.metrics[metric].over_locations != "max":
                entry = self.models(metric, True)[path]
                parts = [p for number in self.subtree(path) if (p := predictions[number]) is not None]
                prediction = _sum(parts, outside) if parts else None
            entries.append(self._ranked(path, entry, prediction, everything.value))
        order = sorted(entries, key=lambda e: (math.isnan(e.value), -e.value if e.value == e.value else 0.0, e.path))
        return Ranking(self.metrics[metric], inclusive, values, everything, tuple(order))

    def _ranked(self, path: int, entry: PathModel, prediction: Prediction | None, total: float) -> Ranked:
        label = self.tree.label(path)
        if prediction is None or isinstance(entry.model, NoModel):
            reason = entry.model.reason if isinstance(entry.model, NoModel) else "no finite prediction at this point"
            return Ranked(path, label, math.nan, math.nan, math.nan, 0.0, False, "", entry.basis, reason)
        share = prediction.value / total if total > 0 else 0.0
        note = "; ".join(entry.model.notes)
        return Ranked(
            path,
            label,
            prediction.value,
            prediction.lower,
            prediction.upper,
            share,
            prediction.extrapolates,
            str(entry.model),
            entry.basis,
            note,
        )


def _predict(model: Model | NoModel, place: tuple[float, ...]) -> Prediction | None:
    """Predict; a value below 0 means that the growth of something else was mistaken for a decrease: 0."""
    if isinstance(model, NoModel):
        return None
    try:
        found = model.predict(place)
    except ModelingError:
        return None
    return Prediction(max(found.value, 0.0), max(found.lower, 0.0), max(found.upper, 0.0), found.extrapolates)


def _sum(parts: list[Prediction], outside: bool) -> Prediction:
    """Return the sum of predictions with independent errors."""
    value = sum(part.value for part in parts)
    below = math.sqrt(sum((part.value - part.lower) ** 2 for part in parts))
    above = math.sqrt(sum((part.upper - part.value) ** 2 for part in parts))
    return Prediction(value, max(value - below, 0.0), value + above, outside)


def analyze(experiment: Experiment, options: Options = DEFAULT) -> Analysis:
    """Model every metric of an experiment: effort exactly, time under the priors of effort, the rest as cost.

    Other selectors than "evidence" are for comparison: they model time from time alone.
    Raises ModelingError if there is nothing to model.
    """
    if not len(experiment.tree) or not experiment.configurations:
        raise ModelingError(f"experiment {experiment.name} is empty: it has no call paths or no configurations")
    happened = executed(experiment)
    plain: dict[str, list[Model | NoModel]] = {}
    with_priors = options.selector == "evidence"
    for name, metric in experiment.metrics.items():
        if name in experiment.values and not (name == "time" and with_priors):
            values = experiment.values[name]
            plain[name] = fit_models(experiment.points, values, metric, experiment.parameters, options, happened)
    exclusive = {name: tuple(PathModel(model, MEASURED) for model in models) for name, models in plain.items()}
    if "time" in experiment.values and with_priors:
        exclusive["time"] = tuple(model_time(experiment, plain, options))
    ranges = tuple(
        (float(low), float(high))
        for low, high in zip(experiment.points.min(axis=0), experiment.points.max(axis=0), strict=True)
    )
    return Analysis(
        experiment.name,
        experiment.parameters,
        ranges,
        experiment.tree,
        {name: experiment.metrics[name] for name in exclusive},
        exclusive,
        experiment.over_ranks,
        experiment.notes,
    )
