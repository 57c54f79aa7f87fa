# SPDX-License-Identifier: Apache-2.0
"""Rank the possible process grids of a program by its effort."""

from __future__ import annotations

import numpy as np

from .experiment import Experiment, FloatArray
from .pmnf.data.lines import lines
from .pmnf.grids.calibration import GRID_OF_DOMAIN
from .pmnf.grids.exact import GridCounts
from .pmnf.hypotheses.library import Library
from .process_grid import ProcessGrid

# A domain has two dimensions if the exponent of the effort differs from 2 by at most this number. Edges and logarithms
# change the exponent by some tenths.
_OF_PLANE = 0.25
# Counts by which grids are ranked; other counts are proportional to them.
_TELLING = ("instructions", "visits", "bytes_sent")


def possible_grids(experiment: Experiment, library: Library) -> tuple[ProcessGrid, ...]:
    """Return the possible process grids of a program, the most probable first.

    Let n be the only varied parameter other than the number of processes. If the basic blocks grow like n², grids of
    three dimensions are excluded. The other grids are ranked by the bits that they save: the bits of the largest counts
    as a table, minus the bits of the counts as formulas of the grid.
    """
    grids = experiment.grids
    if len(grids) < 2 or "blocks" not in experiment.values:
        return grids
    exponent = _exponent(experiment, experiment.parameters.index(grids[0].parameter))
    if exponent is not None and abs(exponent - 2.0) <= _OF_PLANE:
        grids = tuple(grid for grid in grids if grid.dimensions < 3) or grids
    return _ranked(experiment, grids, library)


def _ranked(experiment: Experiment, grids: tuple[ProcessGrid, ...], library: Library) -> tuple[ProcessGrid, ...]:
    saved = np.zeros(len(grids))
    for values in (_largest(experiment, name) for name in _TELLING if name in experiment.values):
        if not len(values):
            continue
        counts = GridCounts(experiment.points, experiment.parameters, library, values)
        for place, grid in enumerate(grids):
            saved[place] += sum(counts.models(grid, counts.domain(grid)).saved)
    order = sorted(range(len(grids)), key=lambda place: -round(float(saved[place]), 6))
    return tuple(grids[place] for place in order)


def _largest(experiment: Experiment, metric: str) -> FloatArray:
    """Return a metric of the N call paths with the largest values, shape (N, C).

    Only call paths that were measured at all C configurations are considered.
    """
    values = experiment.values[metric]
    measured = (~np.isnan(values)).sum(axis=2)
    means: FloatArray = np.nansum(values, axis=2) / np.maximum(measured, 1)
    means = means[np.flatnonzero(measured.min(axis=1) > 0)]
    largest = np.argsort(-means.max(axis=1, initial=0.0), kind="stable")[:GRID_OF_DOMAIN]
    return means[largest][means[largest].any(axis=1)]


def _exponent(experiment: Experiment, processes: int) -> float | None:
    """Return the exponent with which the blocks of the program grow between the two largest values of n.

    processes: column of the number of processes. Returns None if not exactly one other parameter n varies, or if no
    configurations differ only in n.
    """
    points = experiment.points
    varied = [place for place in range(points.shape[1]) if np.unique(points[:, place]).size > 1]
    others = [place for place in varied if place != processes]
    if len(others) != 1:
        return None
    blocks = experiment.values["blocks"]
    repetitions = np.maximum((~np.isnan(blocks)).any(axis=0).sum(axis=1), 1)
    work = np.nansum(blocks, axis=(0, 2)) / repetitions
    found = []
    for line in lines(points[:, varied], varied.index(others[0]), least=2):
        (n0, n1), (w0, w1) = points[line[-2:], others[0]], work[line[-2:]]
        if n0 > 0 and w0 > 0 and w1 > 0:
            found.append(float(np.log(w1 / w0) / np.log(n1 / n0)))
    return float(np.median(found)) if found else None
