# SPDX-License-Identifier: Apache-2.0
"""The interface of criteria, and the selection among candidates of proposers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..fit.fitter import fit_hypotheses
from ..hypotheses.pool import Fitted, Pool, merge, nothing, ranked
from ..hypotheses.tables import Specification, Tables


@dataclass(frozen=True, eq=False)
class Candidates:
    """M hypotheses of the call paths `path` (M,): specification (M, K, m). Either all or none have a constant."""

    path: NDArray[np.int64]
    specification: Specification
    constant: bool


Rows = NDArray[np.bool_] | NDArray[np.int64] | slice
ALL = slice(None)


class Criterion(ABC):
    """Selects among hypotheses of call paths with `values` (N, C), fitted by least squares with `weights`."""

    def __init__(self, tables: Tables, values: FloatArray, weights: FloatArray) -> None:
        self.tables, self.values, self.weights = tables, values, weights

    @abstractmethod
    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return scores (M, H) of hypotheses fitted to the call paths `rows` (M,).

        The lowest is best, inf is rejected.
        """

    def fit(self, specification: Specification, rows: Rows = ALL, constant: bool = True) -> Fitted:
        """Return hypotheses (H, K, m) or (M, H, K, m) fitted to the call paths `rows` (M,)."""
        return fit_hypotheses(self.tables, specification, self.values[rows], self.weights[rows], constant)

    def fit_all(self, candidates: Iterable[Candidates]) -> Iterator[tuple[NDArray[np.int64], Fitted]]:
        """Yield fitted candidates, many at once, and their call paths (M,)."""
        alike: dict[tuple[int, bool], list[Candidates]] = {}
        for each in candidates:
            if each.path.size:
                alike.setdefault((each.specification.shape[1], each.constant), []).append(each)
        for (_, constant), some in alike.items():
            path = np.concatenate([each.path for each in some])
            yield path, self.fit(np.concatenate([each.specification for each in some])[:, None], path, constant)


def choose(candidates: Iterable[Candidates], criterion: Criterion, size: int) -> Pool:
    """Return the `size` best candidates of each call path."""
    paths = len(criterion.values)
    pools = [
        ranked(path, fitted, criterion.scores(fitted, path)[:, 0], paths, size)
        for path, fitted in criterion.fit_all(candidates)
    ]
    return merge(pools or [nothing(paths, len(criterion.tables.terms))], size)
