# SPDX-License-Identifier: Apache-2.0
"""Call paths with their measured values: the input of the writers of all formats of stacks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import CallTree, FloatArray, Metric
from quipu.modeling.printable import one_line

from ...views import TreeView, statistics

_WHOLE_UNITS = {"s": (1e9, "nanoseconds"), "ns": (1.0, "nanoseconds"), "B": (1.0, "bytes")}
_LARGEST = 2.0**63  # viewers use signed 64-bit numbers


@dataclass(frozen=True, eq=False)
class Sample:
    """Exclusive values of one rank, or of all ranks combined.

    values: for each metric, shape (call paths,); NaN if missing.
    """

    name: str
    values: Mapping[str, FloatArray]


@dataclass(frozen=True, eq=False)
class WeightedStacks:
    """The call paths of a run or a configuration, with the values of one or several samples.

    tree: the start and the end of MPI are roots in it, because the inclusive values of their callers do not contain
    their values.
    """

    title: str
    tree: CallTree
    metrics: tuple[Metric, ...]
    samples: tuple[Sample, ...]

    def weights(self, metric: Metric, sample: Sample) -> list[int]:
        """Return the exclusive values as integers in the unit `whole_unit`. Missing values are 0.

        Each weight differs by less than 1 from its value. The sum of the weights is the rounded sum of the values
        (method of the largest remainder).

        Raises ModelingError for a metric that does not add up over call paths (a maximum), a value that is negative or
        infinite, or a sum of 2^63 or more.
        """
        if metric.over_locations == "max":
            raise ModelingError(f"{metric.name} does not add up over call paths: choose another with --metric")
        measured = np.nan_to_num(sample.values[metric.name], posinf=np.inf)
        if (wrong := np.flatnonzero(~((measured >= 0) & np.isfinite(measured)))).size:
            where = one_line(self.tree.label(int(wrong[0])))
            raise ModelingError(f"{metric.name} of {where} is {measured[wrong[0]]:g}, an impossible weight of a stack")
        scale = _WHOLE_UNITS.get(metric.unit, (1.0,))[0]
        if math.fsum((measured / _LARGEST * scale).tolist()) >= 1.0:
            raise ModelingError(f"{metric.name} adds up to more than 2^63, too much for viewers: use --format hatchet")
        values = (measured * scale).tolist()
        weights = [math.floor(value) for value in values]
        remainders = [value - weight for value, weight in zip(values, weights, strict=True)]
        largest = sorted(range(len(values)), key=lambda path: -remainders[path])
        for path in largest[: round(math.fsum(remainders))]:
            weights[path] += 1
        return weights

    def adding_up(self, only_first: bool) -> WeightedStacks:
        """Return the stacks with only the metrics that add up over call paths; with all metrics if none does.

        only_first: keep only the first of them.
        """
        found = tuple(metric for metric in self.metrics if metric.over_locations == "sum") or self.metrics
        return replace(self, metrics=found[:1] if only_first else found)

    def inclusive(self, weights: Sequence[int]) -> list[int]:
        """Return for each call path the sum of its weight and of the weights of all call paths below it."""
        sums = list(weights)
        for node in range(len(self.tree) - 1, -1, -1):
            if (parent := int(self.tree.parent[node])) >= 0:
                sums[parent] += sums[node]
        return sums

    @property
    def chains(self) -> list[tuple[int, ...]]:
        """Return for each call path its regions from the root, as indices into `tree.regions`."""
        chains: list[tuple[int, ...]] = []
        for parent, region in zip(self.tree.parent.tolist(), self.tree.region.tolist(), strict=True):
            chains.append((*chains[parent], region) if parent >= 0 else (region,))
        return chains


def whole_unit(metric: Metric) -> str:
    """Return the unit of weights: "nanoseconds" for times, "" for counts, otherwise the unit of the metric."""
    return _WHOLE_UNITS.get(metric.unit, (1.0, "" if metric.unit == "1" else metric.unit))[1]


def weighted_stacks(view: TreeView, metrics: Sequence[str], samples: Sequence[str] = ()) -> WeightedStacks:
    """Return the call paths of a view with their values.

    metrics: names; empty: all metrics that are not 0 everywhere, where metrics that add up come first, beginning with
    time. samples: names of the samples (ranks or repetitions) of the view, to keep them separate; empty: combine them.

    Raises ModelingError for an unknown metric, or if all values are 0.
    """
    chosen = [view.metric(name) for name in metrics] or sorted(
        (view.metrics[name] for name, values in view.values.items() if np.any(np.nan_to_num(values))),
        key=lambda metric: (metric.over_locations == "max", metric.name != "time"),
    )
    if not any(np.any(np.nan_to_num(view.values[metric.name])) for metric in chosen):
        what = ", ".join(metric.name for metric in chosen) or "every metric"
        raise ModelingError(
            f"{view.title}: {what} is 0 at all call paths, so the file would be empty: choose another --metric"
        )
    if samples:
        parts = [{metric.name: view.values[metric.name][:, at] for metric in chosen} for at in range(len(samples))]
    else:
        samples = (f"{view.over} over {view.samples}",)
        parts = [{metric.name: statistics(view.values[metric.name], view.over).value for metric in chosen}]
    named = tuple(Sample(name, values) for name, values in zip(samples, parts, strict=True))
    return WeightedStacks(view.title, _apart(view.tree), tuple(chosen), named)


def _apart(tree: CallTree) -> CallTree:
    """Return the tree with the start and the end of MPI as roots."""
    below = (tree.parent >= 0) & tree.start_and_end & ~tree.start_and_end[tree.parent]
    return CallTree(tree.regions, tree.region, np.where(below, -1, tree.parent))
