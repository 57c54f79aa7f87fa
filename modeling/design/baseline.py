# SPDX-License-Identifier: Apache-2.0
"""The points that every model needs first: for each parameter, a line of points that differ only in this parameter."""

from __future__ import annotations

import numpy as np

from ..errors import ModelingError
from ..experiment import FloatArray, IntArray

VALUES = 5
"""Number of values of each parameter that a model in normal form needs (Calotoiu et al.; Ritter et al., section II)."""


def baseline(candidates: FloatArray, costs: FloatArray) -> list[int]:
    """Return the cheapest lines, one per parameter, as indices of candidates in ascending order of cost.

    candidates: shape (N, m). costs: shape (N,). A line consists of the cheapest five points that differ only in its
    parameter. Lines with more points are preferred over lines with fewer than five. The function minimizes the sum of
    the costs of all lines through a common point, because lines that share a point cost less. On a grid the result is
    4·m + 1 points through the cheapest corner. Raises ModelingError if there are no candidates.
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
    """Return the lines of a parameter, each with its cheapest points."""
    others = np.delete(candidates, parameter, axis=1)
    _, group = np.unique(others, axis=0, return_inverse=True)
    order = np.lexsort((costs, group.reshape(-1)))
    edges = np.flatnonzero(np.diff(group.reshape(-1)[order])) + 1
    return [line[:VALUES].tolist() for line in np.split(order, edges)]


def line_of(candidates: FloatArray, costs: FloatArray, parameter: int) -> list[int]:
    """Return the longest line of one parameter (of equal ones the cheapest), as indices in ascending order of cost."""
    found = _lines(candidates, costs, parameter)
    return min(found, key=lambda line: (-len(line), float(costs[line].sum())))


def has_lines(candidates: FloatArray, measured: IntArray) -> bool:
    """Return whether models can be fitted: there is a line of each parameter with at most one value missing."""
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
    """Return the missing runs of the baseline, repetition by repetition."""
    return [point for count in range(repetitions) for point in baseline_points if counts[point] <= count]
