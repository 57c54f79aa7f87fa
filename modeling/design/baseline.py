# SPDX-License-Identifier: Apache-2.0
"""The points that every model needs first: for each parameter, a line of points that differ only in this parameter.

Candidates are the N possible points of the search space, with m parameters each.
"""

from __future__ import annotations

import numpy as np

from ..errors import ModelingError
from ..experiment import FloatArray, IntArray

VALUES = 5
"""Number of values of each parameter that a model in normal form needs (Calotoiu et al., Using Automated Performance
Modeling to Find Scalability Bugs in Complex Codes, SC 2013; Ritter et al., section II)."""


def baseline(candidates: FloatArray, costs: FloatArray) -> list[int]:
    """Return the points of the cheapest lines, one per parameter, as indices of candidates in ascending order of cost.

    candidates: (N, m). costs: (N,), core hours of one run, or relative. A line consists of the cheapest points, at most
    VALUES, that differ only in its parameter. Lines through a common point are selected, because they share the point:
    first with the largest number of points in total, then with the lowest total cost. A parameter without a line
    through the common point has its best line elsewhere. On a grid the result is 4·m + 1 points through the cheapest
    corner. Raises ModelingError if there are no candidates.
    """
    if not len(candidates):
        raise ModelingError("the search space is empty: no point fulfils all constraints")
    columns = [_lines(candidates, costs, parameter) for parameter in range(candidates.shape[1])]
    found: dict[int, list[list[int]]] = {}
    for lines in columns:
        for line in lines:
            for point in line:
                found.setdefault(point, []).append(line)

    def quality(lines: list[list[int]]) -> tuple[int, float]:
        chosen = {point for line in lines for point in line}
        return -sum(len(line) for line in lines), float(costs[list(chosen)].sum())

    best = min(found.values(), key=quality)
    missing = [lines for lines in columns if not any(line in best for line in lines)]
    chosen = {point for line in best for point in line}
    chosen.update(point for lines in missing for point in min(lines, key=lambda line: quality([line])))
    return sorted(chosen, key=lambda point: (float(costs[point]), point))


def _lines(candidates: FloatArray, costs: FloatArray, parameter: int) -> list[list[int]]:
    """Return all lines of a parameter, each as the indices of its cheapest points, at most VALUES."""
    others = np.delete(candidates, parameter, axis=1)
    _, group = np.unique(others, axis=0, return_inverse=True)
    order = np.lexsort((costs, group.reshape(-1)))
    edges = np.flatnonzero(np.diff(group.reshape(-1)[order])) + 1
    return [line[:VALUES].tolist() for line in np.split(order, edges)]


def line_of(candidates: FloatArray, costs: FloatArray, parameter: int) -> list[int]:
    """Return the line of one parameter with the most points (the cheapest of several), as indices, cheapest first."""
    found = _lines(candidates, costs, parameter)
    return min(found, key=lambda line: (-len(line), float(costs[line].sum())))


def has_lines(candidates: FloatArray, measured: IntArray) -> bool:
    """Return whether models can be fitted to the candidates with the indices `measured`.

    For each parameter, some line must have all values (VALUES if there are more) except at most one.
    """
    if not len(measured):
        return False
    known = candidates[measured]
    for parameter in range(candidates.shape[1]):
        enough = min(VALUES, len(np.unique(candidates[:, parameter]))) - 1
        _, sizes = np.unique(np.delete(known, parameter, axis=1), axis=0, return_counts=True)
        if sizes.max() < enough:
            return False
    return True


def missing_of(baseline_points: list[int], counts: IntArray, repetitions: int) -> list[int]:
    """Return the points that still need runs: all points with no run, then those with at most one, and so on.

    counts: (N,), the number of runs of each candidate. A point with several missing runs occurs several times, until it
    has `repetitions` runs.
    """
    return [point for count in range(repetitions) for point in baseline_points if counts[point] <= count]
