# SPDX-License-Identifier: Apache-2.0
"""The selections of PIRA II: by statements in the call graph, and by models at an extrapolated point.

The aggregated statements of a function include the statements of all functions that it may call (callgraph.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..analysis import Analysis
from ..callgraph import CallGraph, Function
from ..errors import ModelingError
from ..evaluation import evaluate
from ..experiment import FloatArray
from ..limits import whole_number

Threshold = Literal["unique-median", "median", "maximum"] | int
"""Smallest number of aggregated statements of a selected function. It is a number, or "median" (the median over all
functions), "unique-median" (the median of the different values), or "maximum" (half of the largest value)."""
THRESHOLDS: tuple[Literal["unique-median", "median", "maximum"], ...] = ("unique-median", "median", "maximum")
SECONDS = 0.1
"""Default of `seconds`: PIRA II keeps functions with a longer inclusive time."""


@dataclass(frozen=True)
class StaticSelection:
    """The functions that were selected from the call graph alone, and the smallest number of aggregated statements."""

    kept: tuple[Function, ...]
    threshold: float


def threshold_of(value: str | int) -> Threshold | None:
    """Return the threshold that a text or number means; None for an unknown name."""
    if isinstance(value, int):
        return value
    return next((name for name in THRESHOLDS if name == value), whole_number(value))


def statement_threshold(graph: CallGraph, threshold: Threshold, among: NDArray[np.bool_] | None = None) -> float:
    """Return a threshold as a number of aggregated statements; 0 if there are no functions.

    among: mask of the functions whose aggregated statements determine the threshold. Default: all functions with code
    that main may reach. Raises ModelingError for a threshold that is unknown or below 0.
    """
    if isinstance(threshold, int):
        if threshold < 0:
            raise ModelingError(f"a threshold of statements is 0 or more, not {threshold}")
        return float(threshold)
    values = graph.aggregated_statements[_candidates(graph) if among is None else among]
    if values.size == 0:
        return 0.0
    if threshold == "unique-median":
        return float(np.sort(np.unique(values))[np.unique(values).size // 2])
    if threshold == "median":
        return float(np.sort(values)[values.size // 2])
    if threshold == "maximum":
        return float(values.max()) / 2
    raise ModelingError(f"threshold {threshold!r} is unknown; choose one of {', '.join(THRESHOLDS)}, or give a number")


def select_statically(graph: CallGraph, threshold: Threshold = "unique-median") -> StaticSelection:
    """Return the functions with at least `threshold` aggregated statements, and all functions on paths from main."""
    least = statement_threshold(graph, threshold)
    large = np.flatnonzero(_candidates(graph) & (graph.aggregated_statements >= least))
    return StaticSelection(_functions(graph, graph.on_paths_from_main(large.tolist())), least)


def extrapolated_point(points: FloatArray, parameters: Sequence[str]) -> dict[str, float]:
    """Return the point at which PIRA II evaluates models.

    The value of a parameter is its largest value plus the mean difference of neighbouring values. A parameter with only
    one value keeps this value. points: shape (configurations, parameters).
    """
    place = {}
    for column, name in enumerate(parameters):
        values = np.unique(points[:, column])
        step = float(np.mean(np.diff(values))) if values.size > 1 else 0.0
        place[name] = float(values[-1]) + step
    return place


def refine_by_models(
    graph: CallGraph,
    analysis: Analysis,
    point: Mapping[str, float],
    seconds: float = SECONDS,
    expand: Threshold | None = None,
) -> tuple[Function, ...]:
    """Return the next selection of PIRA II.

    The selection contains all functions with an inclusive time above `seconds` at the point, and all functions on paths
    from main to these.

    expand: the selection also contains direct callees without a model, if they have at least this number of aggregated
    statements; None: no callees. Raises ModelingError as `evaluate`.
    """
    time = evaluate(analysis, point)
    modeled: set[int] = set()
    relevant: set[int] = set()
    for path, prediction in enumerate(time.inclusive):
        number = graph.of_region(analysis.tree.region_of(path))
        if number is not None:
            modeled.add(number)
            if prediction.value > seconds:
                relevant.add(number)
    if expand is not None:
        callees = graph.callees(relevant) & _candidates(graph)
        callees[sorted(modeled)] = False
        least = statement_threshold(graph, expand, callees)
        relevant |= set(np.flatnonzero(callees & (graph.aggregated_statements >= least)).tolist())
    return _functions(graph, graph.on_paths_from_main(relevant))


def _candidates(graph: CallGraph) -> NDArray[np.bool_]:
    defined = np.array([function.defined for function in graph.functions], dtype=bool)
    return np.asarray(defined & graph.reachable, dtype=bool)


def _functions(graph: CallGraph, chosen: NDArray[np.bool_]) -> tuple[Function, ...]:
    """Return main and the functions of a mask, without functions that have no code, sorted by key."""
    numbers = {int(number) for number in np.flatnonzero(chosen)} | ({graph.main} if graph.main is not None else set())
    found = [graph.functions[number] for number in numbers if graph.functions[number].defined]
    return tuple(sorted(found, key=lambda function: function.key))
