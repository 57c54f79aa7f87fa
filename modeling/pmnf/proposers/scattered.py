"""Proposer of models of counts that are no exact functions, at points on no lines in some parameter."""

from __future__ import annotations

import numpy as np

from ...experiment import FloatArray
from ..criterion.criterion import ALL, Candidates
from ..criterion.scattered import ScatteredCounts
from .cost import Search


def scattered_sums(points: FloatArray, criterion: ScatteredCounts) -> list[Candidates]:
    """Return what the search for models of noisy values finds at `points` (C, m), the constant among it.

    The search goes by evidence alone: one that keeps to credible hypotheses all the way ends at some of its first ones.
    """
    pool = Search(points, criterion.part(ALL), reweights=False).run()
    paths = np.arange(len(pool.score))
    result = [Candidates(paths, np.empty((paths.size, 0, points.shape[1]), dtype=np.int16), True)]
    widths = (pool.specification >= 0).any(axis=3).sum(axis=2)
    constant = pool.coefficients[:, :, 0] != 0
    for width in np.unique(widths[widths > 0]).tolist():
        for whole in (True, False):
            path, place = np.nonzero((widths == width) & (constant == whole) & np.isfinite(pool.score))
            result.append(Candidates(path, pool.specification[path, place, :width], whole))
    return result
