# SPDX-License-Identifier: Apache-2.0
"""Measure the load imbalance of call paths over ranks by the three metrics of PIRA LIDe (load imbalance detection)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..callgraph import CallGraph, Function
from ..errors import ModelingError
from ..experiment import CallTree, FloatArray

Metric = Literal["percentage", "efficiency", "variation"]
METRICS: tuple[Metric, ...] = ("percentage", "efficiency", "variation")
EVEN = {"percentage": 0.0, "efficiency": 1.0, "variation": 0.0}
"""The value of each metric if all ranks are equal."""
_OF_MAIN = 0.001
"""Unmeasured callees with a smaller share of the aggregated statements of main are not selected, as in PIRA LIDe."""


@dataclass(frozen=True)
class Imbalance:
    """The metrics of one call path (number `path`), from its inclusive times on n ranks.

    - percentage: (max − mean) / max · n / (n − 1); 0 if all ranks take equally long, 1 if one rank does all work.
    - efficiency: max / mean; 1 if all ranks take equally long, otherwise larger.
    - variation: standard deviation / mean.
    - seconds: max − mean, the time that perfect balance would save.
    """

    path: int
    percentage: float
    efficiency: float
    variation: float
    seconds: float


def imbalances(times: FloatArray) -> list[Imbalance]:
    """Return the metrics of all call paths. times: inclusive seconds, shape (paths, ranks).

    Raises ModelingError for fewer than two ranks.
    """
    if times.ndim != 2 or times.shape[1] < 2:
        raise ModelingError("imbalance needs the times of at least two ranks")
    ranks = times.shape[1]
    found = []
    for path, row in enumerate(np.nan_to_num(times)):
        largest, mean = float(row.max()), float(row.mean())
        percentage = (largest - mean) / largest * ranks / (ranks - 1) if largest > 0 else 0.0
        efficiency, variation = (largest / mean, float(row.std()) / mean) if mean > 0 else (1.0, 0.0)
        found.append(Imbalance(path, percentage, efficiency, variation, largest - mean))
    return found


def imbalanced(
    tree: CallTree, times: FloatArray, least: float = 0.05, share: float = 0.01, metric: Metric = "percentage"
) -> tuple[tuple[Imbalance, ...], tuple[int, ...]]:
    """Return the imbalanced call paths, the largest loss first, and the callees that cause most of their imbalance.

    A call path is imbalanced if its `metric` is at least `least`, and perfect balance would save at least `share` of
    the time of the program. The second result contains numbers of call paths: for each imbalanced call path, the callee
    whose time on the slowest rank of the caller exceeds the mean of the callee most.

    times: exclusive seconds, shape (paths, ranks).
    """
    inclusive = tree.inclusive(times)
    total = float(tree.program_total(times).mean())
    found = imbalances(inclusive)
    chosen = {
        entry.path
        for entry in found
        if getattr(entry, metric) >= least and total > 0 and entry.seconds >= share * total
        if not tree.start_and_end[entry.path]
    }
    below = []
    for path in sorted(chosen):
        inner = [child for child in tree.children[path] if not tree.start_and_end[child]]
        slowest = int(np.argmax(inclusive[path]))
        gaps = {child: float(inclusive[child, slowest] - inclusive[child].mean()) for child in inner}
        worst = max(gaps, key=lambda child: gaps[child], default=None)
        if worst is not None and gaps[worst] > 0 and not math.isclose(gaps[worst], 0.0):
            below.append(worst)
    ordered = tuple(sorted((found[path] for path in chosen), key=lambda entry: (-entry.seconds, entry.path)))
    return ordered, tuple(dict.fromkeys(below))


def unmeasured_callees(graph: CallGraph, tree: CallTree, paths: Iterable[int]) -> tuple[Function, ...]:
    """Return the unmeasured functions that the functions of these call paths may call.

    They are candidates for the next measurement. The aggregated statements of a function are its statements and the
    statements of all functions that it may call (callgraph.py). A function is left out if it has less than the share
    _OF_MAIN of the aggregated statements of main.
    """
    measured = {number for region in tree.regions if (number := graph.of_region(region)) is not None}
    above = {number for path in paths if (number := graph.of_region(tree.region_of(path))) is not None}
    sums = graph.aggregated_statements
    least = max(1.0, _OF_MAIN * float(sums[graph.main])) if graph.main is not None else 1.0
    called = [int(number) for number in np.flatnonzero(graph.callees(above)) if int(number) not in measured]
    return tuple(graph.functions[number] for number in called if sums[number] >= least)
