# SPDX-License-Identifier: Apache-2.0
"""The points that every model needs first: for each parameter a line of points in which only it changes."""

from __future__ import annotations

import numpy as np

from ..errors import ModelingError
from ..experiment import FloatArray, IntArray

VALUES = 5
"""Values of each parameter that a model in normal form needs (Calotoiu et al.; Ritter et al., section II)."""


def baseline(candidates: FloatArray, costs: FloatArray) -> list[int]:
    """Return the cheapest lines, one a parameter, as numbers of candidates in ascending cost.

    candidates: (N, m); costs: (N,). A line has the cheapest five of the points in which only its parameter changes; of
    lines with fewer, those with most points count first. Lines that share points cost less: for each point through
    which they could all run the sum is taken. On a grid these are 4·m + 1 points through the cheapest corner.
    Raises ModelingError if there are no candidates.
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
    """Return the lines of a parameter, each the cheapest points of it."""
    others = np.delete(candidates, parameter, axis=1)
    _, group = np.unique(others, axis=0, return_inverse=True)
    order = np.lexsort((costs, group.reshape(-1)))
    edges = np.flatnonzero(np.diff(group.reshape(-1)[order])) + 1
    return [line[:VALUES].tolist() for line in np.split(order, edges)]


def line_of(candidates: FloatArray, costs: FloatArray, parameter: int) -> list[int]:
    """Return the longest of the cheapest lines of one parameter, as numbers of candidates in ascending cost."""
    found = _lines(candidates, costs, parameter)
    return min(found, key=lambda line: (-len(line), float(costs[line].sum())))


def has_lines(candidates: FloatArray, measured: IntArray) -> bool:
    """Whether models can be made of what was measured: a line of each parameter, with all values but one."""
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
    """Return what of the baseline is still to be measured, a repetition of all points after the other."""
    return [point for count in range(repetitions) for point in baseline_points if counts[point] <= count]
