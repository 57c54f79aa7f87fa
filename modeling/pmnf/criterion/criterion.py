"""The interface of criteria, and the choice among what proposers return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..fit.fitter import fit_hypotheses
from ..hypotheses.pool import Fitted, Pool, merge, nothing, ranked
from ..hypotheses.tables import Specification, Tables


@dataclass(frozen=True, eq=False)
class Candidates:
    """M hypotheses of the call paths `path` (M,): specification (M, K, m), all with a constant or all without."""

    path: NDArray[np.int64]
    specification: Specification
    constant: bool


class Criterion(Protocol):
    """What is chosen among hypotheses of call paths with `values` (N, C), fitted by least squares with `weights`."""

    values: FloatArray
    weights: FloatArray

    def scores(self, fitted: Fitted, rows: NDArray[np.int64]) -> FloatArray:
        """Return scores (M, H) of hypotheses fitted to the call paths `rows` (M,), the lowest best, inf to refuse."""
        ...


def choose(candidates: Sequence[Candidates], tables: Tables, criterion: Criterion, size: int) -> Pool:
    """Return the `size` best candidates of each call path."""
    paths = len(criterion.values)
    pools = [nothing(paths, len(tables.terms))]
    for own in candidates:
        if own.path.size:
            values, weights = criterion.values[own.path], criterion.weights[own.path]
            fitted = fit_hypotheses(tables, own.specification[:, None], values, weights, False, own.constant)
            pools.append(ranked(own.path, fitted, criterion.scores(fitted, own.path)[:, 0], paths, size))
    return merge(pools, size)
