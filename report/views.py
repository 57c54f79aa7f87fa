# SPDX-License-Identifier: Apache-2.0
"""What the views of a run or an experiment show: small frozen data, made by the command line or a notebook."""

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
    """Values of call paths over samples: the ranks of one run, or the repetitions of one configuration.

    values:  per metric exclusive values, shape (call paths, samples); NaN: not measured.
    samples: what the second axis is, as a word for people ("ranks", "repetitions").
    over:    how samples become one value.
    facts:   (label, text) pairs for the head of the view.
    spread:  per metric statistics over samples of exclusive values, where those of the single samples were not kept.
    oversubscribed: it was measured with more ranks than processors, so that times contain waiting for one.
    largest: per metric inclusive values, shape (call paths, samples), that are no sums of `values` (maxima over ranks).
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
        """Return a metric that has values, or raise ModelingError that lists the names there are."""
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

    imbalance: (max - mean) / max * n / (n - 1), 0 for perfect balance and 1 if one of n samples has everything.
    """

    value: FloatArray
    min: FloatArray
    mean: FloatArray
    max: FloatArray
    imbalance: FloatArray


def statistics(values: FloatArray, over: OverSamples) -> Statistics:
    """Return statistics of values of shape (call paths, samples) over the samples."""
    count = np.sum(~np.isnan(values), axis=1)
    some = count > 0
    nothing = np.full(values.shape[0], np.nan)
    low, high, total = (nothing.copy() for _ in range(3))
    if some.any():  # there may be no samples at all, and numpy has no minimum of nothing
        low[some] = np.nanmin(values[some], axis=1)
        high[some] = np.nanmax(values[some], axis=1)
    total[some] = np.nansum(values[some], axis=1)
    mean = np.divide(total, count, out=nothing.copy(), where=some)
    value = median_over_repetitions(values) if over == "median" else {"mean": mean, "max": high, "sum": total}[over]
    return Statistics(value, low, mean, high, imbalance(mean, high, count))


def imbalance(mean: FloatArray, high: FloatArray, count: IntArray) -> FloatArray:
    """Return the imbalance of so many samples with this mean and maximum, as `Statistics` has it."""
    result = np.where(np.isnan(high), np.nan, 0.0)
    several = (count > 1) & (high > 0)
    result[several] = (high[several] - mean[several]) / high[several] * count[several] / (count[several] - 1)
    return result


@dataclass(frozen=True)
class TreeOptions:
    """What of a call tree is shown.

    metrics: names in the order of columns; empty: time, visits, blocks and bytes as far as they are not zero.
    scope:   inclusive, exclusive, or None: inclusive and exclusive for cost, exclusive visits, inclusive effort.
    depth:   levels below the roots that are shown; None: all.
    sort:    metric that orders siblings (largest first); None: the first column.
    spread:  min, mean, max over the samples and the imbalance in place of one value; of the first metric if none
             is asked for.
    top:     how many call paths are shown, those with most of the first column's metric without what they call; their
             callers are shown, too. None: all.
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

    path: displayed region names from the root. error: SMAPE of the fit in percent, NaN if it has none. basis: what
    the model rests on. notes: what a reader must know, or why there is no model. oversubscribed: it rests on runs with
    more ranks than processors. start_and_end: the call path is the start or the end of MPI, no part of the program.
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
        """All notes as one text."""
        return "; ".join(self.notes)


@dataclass(frozen=True)
class ChangeRow:
    """Where a metric of a call path changes its behaviour: between which values, and the models on both sides."""

    path: tuple[str, ...]
    metric: str
    between: str
    below: str
    above: str


@dataclass(frozen=True)
class NoiseRow:
    """Noise of a metric of a call path, as fractions of the mean of a configuration.

    level: median of the ranges of repetitions; low, high: 5 and 95 % quantiles of the deviations; worst: the largest
    absolute deviation, at the configuration `place`. warning: why repetitions do not support a model.
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
    """A call path in a ranking at a point: predicted value and interval in the metric's unit, share of the program.

    path: displayed region names from the root. beyond: how many times the point is beyond what the model was made from,
    by parameter. oversubscribed: the model rests on runs with more ranks than processors. share: NaN for the start and
    the end of MPI, which are no part of the program.
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
        """Whether the point is beyond what the model was made from."""
        return bool(self.beyond)

    @property
    def is_nothing(self) -> bool:
        """Whether the call path has none of the metric, such as time of an inlined function that only has counts."""
        return self.value == self.low == self.high == 0


@dataclass(frozen=True)
class ConfigurationRow:
    """A measured configuration: total of a metric over the program, and its relative spread over repetitions.

    spread: (largest - smallest) / mean, NaN of a single repetition. start_and_end: the same metric of the start and the
    end of MPI, mean over repetitions. oversubscribed: it had more ranks than processors. counts_only: its runs kept no
    time, and the total of time is NaN.
    """

    point: tuple[float, ...]
    repetitions: int
    total: float
    unit: str
    spread: float
    start_and_end: float = 0.0
    oversubscribed: bool = False
    counts_only: bool = False


@dataclass(frozen=True)
class Check:
    """Something that Quipu needs or can use, whether it is there, what for, and the command that installs it.

    state "warning": missing, but most of Quipu works without it.
    """

    name: str
    state: Literal["ok", "warning", "missing"]
    found: str = ""
    needed_for: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class RunView:
    """The outcome of one run. `problems` and `node_use`, what whole nodes used: texts for a person."""

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
    """A model of the exclusive values of one metric of one call path; None with the `reason` why there is none.

    basis: what it was fitted to, in words. prior: its form without coefficients, if that comes from effort.
    oversubscribed: that were runs with more ranks than processors. lower: the model from effort alone, where time grows
    beyond it.
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
    """A moment of a campaign: runs done of all, the run that begins or ended, and how.

    outcome: empty when the run begins. seconds: how long it took. left: estimated seconds to the end of the campaign.
    """

    done: int
    total: int
    name: str
    outcome: Literal["", "ok", "partial", "failed"] = ""
    seconds: float = 0.0
    left: float | None = None
