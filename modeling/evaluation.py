# SPDX-License-Identifier: Apache-2.0
"""Evaluate the models of one metric at one point, for rankings, region selection and diagnosis.

The program is everything between the start and the end of MPI. Shares, totals and rankings describe the program. The
start and the end of MPI have a separate total and a separate ranking.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .analysis import Analysis
from .errors import ModelingError
from .experiment import FloatArray, Metric
from .extrapolation import times_beyond
from .notebook import MOST_ROWS, data_frame, short_paths, table_html
from .pmnf.model import Model, Prediction
from .pmnf.options import NoModel
from .table_columns import CALLPATH
from .times.counted import UNKNOWN, by_law, predicted, predicted_counts

if TYPE_CHECKING:
    import pandas

# A scatter of runs below this number (of ln time) counts as 0.
_ALIKE = 1e-9
# Part of the variance of predicted times that all call paths share, if times are effort × rate. Reason: the speed of
# the machine changes the rates of all call paths together.
_SHARED = 0.25


@dataclass(frozen=True)
class Ranked:
    """One call path in a ranking.

    - path, label: number and text of the call path.
    - value, lower, upper: prediction and 90 % interval, in the unit of the metric.
    - share: part of the predicted value of the program, 0 to 1; NaN for the start and the end of MPI.
    - beyond: ratio of the point to the measured range of the model, for parameters outside of it.
    - model: the model as text. Without a model, the text is empty, the value is NaN, and `note` contains the reason.
    - basis: the measurements and priors of the model.
    - oversubscribed: the model depends on runs with more ranks than processors.
    """

    path: int
    label: str
    value: float
    lower: float
    upper: float
    share: float
    beyond: dict[str, float]
    model: str
    basis: str
    note: str = ""
    oversubscribed: bool = False

    @property
    def extrapolates(self) -> bool:
        """Return whether the point is outside of the measured range."""
        return bool(self.beyond)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All models of a metric, evaluated at one point.

    point: value of each parameter, in the order of `analysis.parameters`.

    exclusive: the prediction for each call path; NaN without a finite prediction. Negative predictions are set to 0.
    """

    analysis: Analysis
    metric: Metric
    point: dict[str, float]
    exclusive: tuple[Prediction, ...]

    @cached_property
    def inclusive(self) -> tuple[Prediction, ...]:
        """Return the inclusive prediction of each call path: the sum over the call path and all call paths below it.

        The errors of call paths are independent, except for the part `_SHARED` of the variance. A sum is NaN if all of
        its parts are NaN. For a metric that is not additive, the result is `exclusive`.
        """
        if self.metric.over_locations == "max":
            return self.exclusive
        sums = self.analysis.tree.inclusive(self._parts)
        return tuple(UNKNOWN if math.isnan(value) else self._sum(value, *ends) for value, *ends in sums.tolist())

    @cached_property
    def total(self) -> Prediction:
        """Return the prediction of the program; NaN if no call path has a prediction.

        It is the sum over the call paths of the program. For a metric that is not additive, it is the maximum.
        """
        return self._total(~self.analysis.tree.start_and_end)

    def sum_over(self, paths: Sequence[int]) -> Prediction:
        """Return the sum over the call paths with these numbers, computed as `total`."""
        chosen = np.zeros(len(self.exclusive), dtype=bool)
        chosen[list(paths)] = True
        return self._total(chosen)

    @property
    def one_run(self) -> tuple[float, float] | None:
        """Return the range (lower, upper) that contains the time of the program in nine of ten runs, in seconds.

        It is the interval of `total`, widened by the scatter of single runs. Returns None for metrics other than time,
        if repeated runs do not differ, or if too few runs were repeated.
        """
        total, apart = self.total, self.analysis.run_scatter
        if self.metric.name != "time" or apart is None or apart < _ALIKE or not total.value > 0:
            return None
        below, above = (
            math.hypot(apart, math.log(end / total.value)) if 0 < end < math.inf else math.inf
            for end in (total.lower, total.upper)
        )
        return total.value * math.exp(-below), total.value * math.exp(above)

    @cached_property
    def start_and_end(self) -> Prediction:
        """Return the prediction of the start and the end of MPI, computed as `total`; 0 if there is none."""
        return self._total(self.analysis.tree.start_and_end)

    @cached_property
    def beyond(self) -> dict[str, float]:
        """Return the ratio of the point to the measured range (`times_beyond`), for parameters outside of it."""
        return times_beyond(self.point, self.analysis.ranges_of(self.metric.name))

    @property
    def extrapolates(self) -> bool:
        """Return whether the point is outside of the measured range."""
        return bool(self.beyond)

    @property
    def oversubscribed_share(self) -> float:
        """Return the part of the program that is predicted from runs with more ranks than processors, 0 to 1."""
        entries = self.analysis.models(self.metric.name)
        flags = np.array([entry.oversubscribed for entry in entries], dtype=bool)
        total, shared = self.total, self._total(flags & ~self.analysis.tree.start_and_end)
        return shared.value / total.value if total.value > 0 else 0.0

    @property
    def _parts(self) -> FloatArray:
        """Return five numbers for each call path, shape (call paths, 5).

        The columns are the value, the distances from the value to the lower and to the upper end of the interval, and
        the squares of both distances.
        """
        ends = [(p.value, p.value - p.lower, p.upper - p.value) for p in self.exclusive]
        parts = np.array(ends, dtype=np.float64).reshape(-1, 3)
        return np.concatenate([parts, parts[:, 1:] ** 2], axis=1)

    def _total(self, paths: NDArray[np.bool_]) -> Prediction:
        if self.metric.over_locations == "max":
            chosen = [self.exclusive[path] for path in np.flatnonzero(paths)]
            nothing = Prediction(0.0, 0.0, 0.0, False)
            return max(chosen, key=lambda prediction: np.nan_to_num(prediction.value, nan=-1.0), default=nothing)
        parts = self._parts[paths]
        if len(parts) and np.isnan(parts[:, 0]).all():
            return UNKNOWN
        return self._sum(*np.nansum(parts, axis=0).tolist())

    def _sum(self, value: float, below: float, above: float, below_squared: float, above_squared: float) -> Prediction:
        """Return the prediction of a sum from the sums of the five columns of `_parts`."""
        shared = _SHARED if self.metric.name == "time" and self.analysis.times is not None else 0.0
        low = math.sqrt((1.0 - shared) * below_squared + shared * below**2)
        high = math.sqrt((1.0 - shared) * above_squared + shared * above**2)
        return Prediction(value, max(value - low, 0.0), value + high, self.extrapolates)

    def share(self, prediction: Prediction) -> float:
        """Return a prediction as a part of `total`, 0 to 1; 0 without a prediction."""
        total = self.total.value
        return prediction.value / total if total > 0 and not math.isnan(prediction.value) else 0.0

    def ranking(self, inclusive: bool = False, start_and_end: bool = False) -> tuple[Ranked, ...]:
        """Return the call paths of the program, largest prediction first; call paths without a prediction come last.

        inclusive: rank inclusive values. start_and_end: rank the call paths of the start and the end of MPI instead.
        """
        tree = self.analysis.tree
        predictions = self.inclusive if inclusive else self.exclusive
        models = self.analysis.models(self.metric.name, inclusive)
        beyond = self._factors(inclusive)
        counts, times = self.analysis.counts, self.analysis.times
        entries = []
        for path in np.flatnonzero(tree.start_and_end == start_and_end).tolist():
            prediction, entry = predictions[path], models[path]
            if isinstance(entry.model, NoModel):
                formula, note = "", entry.model.reason
            elif math.isnan(prediction.value):
                formula, note = "", "no finite prediction at this point"
            elif counts is not None and not inclusive and by_law(counts, self.metric.name, path, entry.model):
                formula, note = counts.text(self.metric.name, path), ""
            elif self.metric.name == "time" and not inclusive and times is not None and times.text(path):
                formula, note = times.text(path), ""
            else:
                formula, note = str(entry.model), "; ".join(entry.model.notes)
            entries.append(
                Ranked(
                    path,
                    tree.label(path),
                    prediction.value,
                    prediction.lower,
                    prediction.upper,
                    math.nan if start_and_end else self.share(prediction),
                    {name: x for name, x in zip(self.point, beyond[path].tolist(), strict=True) if x > 1.0},
                    formula,
                    entry.basis,
                    note,
                    entry.oversubscribed,
                )
            )
        return tuple(sorted(entries, key=lambda e: (math.isnan(e.value), -np.nan_to_num(e.value), e.path)))

    def frame(self, inclusive: bool = False) -> pandas.DataFrame:
        """Return the ranking as a data frame, indexed by call path (`tree.unique_labels`), largest value first.

        Columns: `value`, and `lower` and `upper` of its 90 % interval, in the unit of the metric; `share` of the
        program, 0 to 1; `model`, `basis`, `note`. The start and the end of MPI come last, without a share. Raises
        EnvironmentProblem without pandas.
        """
        rows = [*self.ranking(inclusive), *self.ranking(inclusive, start_and_end=True)]
        labels = self.analysis.tree.unique_labels
        numbers = {
            name: np.array([getattr(one, name) for one in rows], dtype=np.float64)
            for name in ("value", "lower", "upper", "share")
        }
        texts = {
            name: np.array([getattr(one, name) for one in rows], dtype=object) for name in ("model", "basis", "note")
        }
        paths = np.array([labels[one.path] for one in rows], dtype=object)
        return data_frame([(CALLPATH, paths)], {**numbers, **texts})

    def __repr__(self) -> str:
        return f"<Predictions of {self.analysis.name} at {self._place}: {self.metric.name} {self._text(self.total)}>"

    def _repr_html_(self) -> str:
        labels = self.analysis.tree.unique_labels
        facts = [("program", self._text(self.total))]
        if self.beyond:
            facts.append(("beyond the measurements", ", ".join(f"{x:.3g} × {name}" for name, x in self.beyond.items())))
        ranked = [one for one in self.ranking() if one.value > 0]
        if len(ranked) > MOST_ROWS:
            facts.append(("shown", f"the largest {MOST_ROWS} of {len(ranked)} call paths; all: frame()"))
            ranked = ranked[:MOST_ROWS]
        rows = [
            (name, f"{one.value:.4g}", f"{one.lower:.4g} to {one.upper:.4g}", f"{one.share:.1%}", one.model)
            for name, one in zip(short_paths([labels[one.path] for one in ranked]), ranked, strict=True)
        ]
        columns = ("call path", self._unit(self.metric.name), "90 % interval", "share", "model")
        return table_html(f"{self.metric.name} of {self.analysis.name} at {self._place}", facts, columns, rows)

    @property
    def _place(self) -> str:
        return ", ".join(f"{name}={value:g}" for name, value in self.point.items()) or "the measured point"

    def _unit(self, text: str) -> str:
        return text if self.metric.unit == "1" else f"{text} {self.metric.unit}"

    def _text(self, one: Prediction) -> str:
        return f"{self._unit(f'{one.value:.4g}')} (90 % interval: {one.lower:.4g} to {one.upper:.4g})"

    def _factors(self, inclusive: bool) -> FloatArray:
        """Return the ratio of the point to the range of each model, shape (call paths, parameters); 1 inside."""
        factors = np.ones((len(self.exclusive), len(self.point)))
        measured = self.analysis.ranges_of(self.metric.name)
        for path, entry in enumerate(self.analysis.models(self.metric.name)):
            if isinstance(entry.model, Model) and not entry.model.is_absent(tuple(self.point.values())):
                ranges = entry.model.ranges
                beyond = times_beyond(self.point, ranges if len(ranges) == len(self.point) else measured)
                factors[path] = [beyond.get(name, 1.0) for name in self.point]
        return self.analysis.tree.inclusive(factors, "max") if inclusive else factors


def evaluate(analysis: Analysis, point: Mapping[str, float], metric: str = "time") -> Evaluation:
    """Return the models of a metric evaluated at a point.

    point: value of each parameter. Raises ModelingError if there are no models of the metric, if a value is missing or
    belongs to an unknown parameter, or if a value is 0 or less. The value 0 is valid if it was measured.
    """
    models = analysis.models(metric)
    values = _checked(analysis, point)
    counts = analysis.counts
    if counts is not None and metric in counts.metrics:
        exclusive = predicted_counts(counts, metric, models, values)
    else:
        exclusive = tuple(predicted(entry.model, tuple(values.values())) for entry in models)
        if metric == "time" and analysis.times is not None:
            by_rate = analysis.times.predict(values)
            exclusive = tuple(by_rate.get(path, own) for path, own in enumerate(exclusive))
        if metric == "wait_time" and analysis.times is not None:
            by_rate = analysis.times.predict(values)
            exclusive = tuple(_part(own, by_rate.get(path)) for path, own in enumerate(exclusive))
    return Evaluation(analysis, analysis.metrics[metric], values, exclusive)


def _part(waiting: Prediction, time: Prediction | None) -> Prediction:
    """Return the predicted waiting, limited to the predicted time of its call path."""
    if time is None or not waiting.value > 0:
        return waiting
    value, lower, upper = min(waiting.value, time.value), min(waiting.lower, time.lower), min(waiting.upper, time.upper)
    return Prediction(value, lower, upper, waiting.extrapolates)


def _checked(analysis: Analysis, point: Mapping[str, float]) -> dict[str, float]:
    missing = [name for name in analysis.parameters if name not in point]
    unknown = [name for name in point if name not in analysis.parameters]
    if missing or unknown:
        problems = [f"no value of {', '.join(missing)}"] if missing else []
        problems += [f"unknown parameter {', '.join(unknown)}"] if unknown else []
        known = ", ".join(analysis.parameters) or "none"
        raise ModelingError(f"{analysis.name}: {'; '.join(problems)} (parameters of this experiment: {known})")
    values = {name: float(point[name]) for name in analysis.parameters}
    for (name, value), (low, _) in zip(values.items(), analysis.ranges, strict=True):
        if not math.isfinite(value) or value < 0 or (value == 0 and low > 0):
            raise ModelingError(f"{analysis.name}: parameter {name} must be a number above 0, not {value:g}")
    return values
