# SPDX-License-Identifier: Apache-2.0
"""Data types of the views of a run or an experiment, for the command line and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from quipu.modeling.catalogue import NOT_MEASURED
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import (
    CallTree,
    FloatArray,
    IntArray,
    Metric,
    median_over_repetitions,
    with_all_repetitions,
)

if TYPE_CHECKING:
    from quipu.modeling.pmnf.model import Model

Over = Literal["mean", "max", "sum"]
OverSamples = Literal["mean", "max", "sum", "median"]
Scope = Literal["inclusive", "exclusive"]
REPETITIONS = "repetitions"


def steps(tree: CallTree, node: int) -> tuple[str, ...]:
    """Return the displayed region names of a call path from the root."""
    return tuple(tree.name(step) for step in tree.ancestry(node))


@dataclass(frozen=True, eq=False)
class TreeView:
    """The values of the call paths of a run or a configuration. The samples are its ranks or its repetitions.

    - values: exclusive values of each metric, shape (call paths, samples); NaN: not measured.
    - samples: the kind of samples, "ranks" or "repetitions". over: how samples are combined to one value.
    - facts: (label, text) pairs for the head of the view.
    - spread: statistics of exclusive values over samples, by metric, if the values of single samples are unknown.
      `values` then has one sample.
    - oversubscribed: measured with more ranks than processors, so that times contain waiting for a processor.
    - largest: inclusive values of metrics that are not the sums of `values` (the maximum over ranks of sums), shape
      (call paths, samples).
    """

    title: str
    tree: CallTree
    metrics: dict[str, Metric]
    values: dict[str, FloatArray]
    samples: str = "ranks"
    over: OverSamples = "mean"
    facts: tuple[tuple[str, str], ...] = field(default=())
    notes: tuple[str, ...] = field(default=())
    spread: Mapping[str, Statistics] | None = None
    oversubscribed: bool = False
    largest: Mapping[str, FloatArray] = field(default_factory=dict)

    def metric(self, name: str) -> Metric:
        """Return a metric by its name. Raises ModelingError with the existing names if it has no values."""
        if name not in self.values:
            known = ", ".join(sorted(self.values)) or "none"
            raise ModelingError(NOT_MEASURED(subject=self.title, metric=name, known=known))
        return self.metrics[name]

    def scoped(self, name: str, scope: Scope) -> FloatArray:
        """Return values of a metric, inclusive or exclusive, shape (call paths, samples)."""
        metric = self.metric(name)
        values = self.values[name]
        if scope == "inclusive" and name in self.largest:
            return self.largest[name]
        if scope == "exclusive":
            return values
        whole = with_all_repetitions(values) if self.samples == REPETITIONS else values
        return self.tree.inclusive(whole, metric.over_locations)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics over samples, each of shape (call paths,); NaN where nothing was measured.

    value: the samples combined as the view requests. imbalance: (max - mean) / max * n / (n - 1) of n samples: 0 for
    perfect balance, 1 if one sample has the whole value.
    """

    value: FloatArray
    min: FloatArray
    mean: FloatArray
    max: FloatArray
    imbalance: FloatArray


def statistics(values: FloatArray, over: OverSamples) -> Statistics:
    """Return the statistics of values, shape (call paths, samples), over the samples. over: how to compute `value`."""
    count = np.sum(~np.isnan(values), axis=1)
    some = count > 0
    nothing = np.full(values.shape[0], np.nan)
    low, high, total = (nothing.copy() for _ in range(3))
    if some.any():  # NumPy raises an error for the minimum of an empty array
        low[some] = np.nanmin(values[some], axis=1)
        high[some] = np.nanmax(values[some], axis=1)
    total[some] = np.nansum(values[some], axis=1)
    mean = np.divide(total, count, out=nothing.copy(), where=some)
    value = median_over_repetitions(values) if over == "median" else {"mean": mean, "max": high, "sum": total}[over]
    return Statistics(value, low, mean, high, imbalance(mean, high, count))


def imbalance(mean: FloatArray, high: FloatArray, count: IntArray) -> FloatArray:
    """Return the imbalance (see `Statistics`) of samples. mean, high (maximum), count: of each call path."""
    result = np.where(np.isnan(high), np.nan, 0.0)
    several = (count > 1) & (high > 0)
    result[several] = (high[several] - mean[several]) / high[several] * count[several] / (count[several] - 1)
    return result


@dataclass(frozen=True)
class TreeOptions:
    """The selection and order of call paths and metrics in a view of a call tree.

    - metrics: names in the order of columns; empty: time, visits, blocks and bytes, if not 0 everywhere.
    - scope: inclusive or exclusive values; None: both for costs, exclusive visits, inclusive effort.
    - depth: number of levels below the roots; None: all.
    - sort: the metric that orders call paths with the same caller, largest first; None: the metric of the first column.
    - spread: show minimum, mean, maximum and imbalance over the samples instead of one value (without `metrics`: only
      for the first metric).
    - top: show only this number of call paths, with the largest exclusive values of the sorting metric, and their
      callers; None: all.
    """

    metrics: tuple[str, ...] = ()
    scope: Scope | None = None
    depth: int | None = None
    sort: str | None = None
    spread: bool = False
    top: int | None = None


@dataclass(frozen=True)
class ModelRow:
    """A model of one metric of one call path, as text.

    - path: display names of the regions from the root.
    - formula: the model; empty if there is none. error: SMAPE of the fit in percent; NaN if unknown.
    - basis: text about the data or models from which this model was made.
    - notes: notes on the model, or why there is no model.
    - oversubscribed: whether the model depends on runs with more ranks than processors.
    - start_and_end: whether the call path belongs to the start or the end of MPI, which is not part of the program.
    """

    path: tuple[str, ...]
    metric: str
    formula: str
    error: float
    basis: str = ""
    notes: tuple[str, ...] = ()
    model: Model | None = None
    oversubscribed: bool = False
    start_and_end: bool = False

    @property
    def note(self) -> str:
        """Return all notes as one text."""
        return "; ".join(self.notes)


@dataclass(frozen=True)
class ChangeRow:
    """A change of behaviour of a metric of a call path.

    between: text about the parameter values between which the behaviour changes. below, above: models on both sides.
    """

    path: tuple[str, ...]
    metric: str
    between: str
    below: str
    above: str


@dataclass(frozen=True)
class NoiseRow:
    """The noise of a metric of a call path. Numbers are fractions of the mean of a configuration; NaN if unknown.

    repetitions: their number as text. level: median over configurations of the range (largest - smallest). low, high: 5
    and 95 % quantiles of the deviations from the mean. worst: the largest absolute deviation; place: its configuration.
    warning: why no model is reliable; empty if there is no reason.
    """

    path: tuple[str, ...]
    metric: str
    repetitions: str
    level: float
    low: float
    high: float
    worst: float
    place: str
    warning: str = ""


@dataclass(frozen=True)
class RankedRow:
    """A call path in a ranking at a point.

    - path: display names of the regions from the root. value, low, high: predicted value and 90 % interval (unit of the
      metric); None if the interval is unknown.
    - share: share of the program; NaN for the start and the end of MPI, which are not part of the program.
    - formula: the model. basis: text about the data from which it was made.
    - beyond: ratio of the point to the measured range of the model, by parameter; empty inside of the range.
    - oversubscribed: whether the model depends on runs with more ranks than processors.
    """

    path: tuple[str, ...]
    value: float
    share: float
    formula: str = ""
    low: float | None = None
    high: float | None = None
    beyond: Mapping[str, float] = field(default_factory=dict)
    basis: str = ""
    oversubscribed: bool = False

    @property
    def extrapolation(self) -> bool:
        """Return whether the point is beyond the measured range of the model."""
        return bool(self.beyond)

    @property
    def is_nothing(self) -> bool:
        """Return whether value and interval are 0, as the time of an inlined function, which has only counts."""
        return self.value == self.low == self.high == 0


@dataclass(frozen=True)
class ConfigurationRow:
    """A measured configuration.

    - point: values of the parameters. repetitions: number of runs. total: a metric summed over the program, mean over
      repetitions. unit: of the metric.
    - spread: (largest - smallest) / mean of the total over repetitions; NaN for a single repetition.
    - start_and_end: the metric of the start and the end of MPI, mean over repetitions.
    - oversubscribed: whether there were more ranks than processors.
    - loaded: whether other programs used processors that the ranks needed.
    - counts_only: whether no run has times; the total of time is then NaN.
    """

    point: tuple[float, ...]
    repetitions: int
    total: float
    unit: str
    spread: float
    start_and_end: float = 0.0
    oversubscribed: bool = False
    loaded: bool = False
    counts_only: bool = False


@dataclass(frozen=True)
class Check:
    """A component that Quipu needs or can use.

    state: "missing": Quipu does not work without it; "warning": only some functions of Quipu need it. found: version or
    path. needed_for: its purpose. remedy: the command that installs it.
    """

    name: str
    state: Literal["ok", "warning", "missing"]
    found: str = ""
    needed_for: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class RunView:
    """The outcome of one run.

    call_paths: number of call paths. seconds: wall time; NaN if unknown. partial: whether measurements are missing.
    problems: texts for the user. node_use: texts about energy and memory traffic of whole nodes.
    """

    name: str
    ranks: int
    call_paths: int
    seconds: float
    exit_code: int = 0
    partial: bool = False
    problems: tuple[str, ...] = field(default=())
    node_use: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlacedModel:
    """The model of the exclusive values of one metric of one call path.

    - path: index of the call path. model: None if there is no model; `reason` is the reason.
    - basis: text about the data of the fit. prior: the form of the model without coefficients, if it follows from
      effort.
    - oversubscribed: whether the fit uses runs with more ranks than processors.
    - lower: the model from effort alone, if time grows faster than effort; otherwise None.
    """

    path: int
    metric: str
    model: Model | None
    basis: str = ""
    prior: str = ""
    reason: str = ""
    oversubscribed: bool = False
    lower: Model | None = None


@dataclass(frozen=True)
class CampaignStep:
    """A step in the progress of a campaign: a run begins or ends.

    done, total: number of finished runs and of all runs. name: of this run. outcome: empty at the begin of the run.
    seconds: duration of the run. left: estimated seconds to the end of the campaign; None if unknown.
    """

    done: int
    total: int
    name: str
    outcome: Literal["", "ok", "partial", "failed"] = ""
    seconds: float = 0.0
    left: float | None = None
