# SPDX-License-Identifier: Apache-2.0
"""Fitted hypotheses of many call paths, and pools of the best hypotheses of each call path.

Shapes: N call paths, H or P hypotheses per call path, K products per hypothesis, m parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from .tables import Specification

_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Hypotheses fitted to call paths. Rejected hypotheses have residual inf.

    specification: (N, H, K, m), or (H, K, m) if all call paths have the same hypotheses. coefficients: (N, H, 1 + K),
    the constant first. They belong to the scaled columns of Tables: divide the others by Tables.divisor.
    residual, left_out, worst: (N, H), the errors of fitter.Fits.
    """

    specification: Specification
    coefficients: FloatArray
    residual: FloatArray
    left_out: FloatArray
    worst: FloatArray

    def rows(self, rows: NDArray[np.bool_]) -> Fitted:
        """Return the hypotheses of the call paths in the mask `rows` (N,). Needs a specification (N, H, K, m)."""
        return Fitted(*(array[rows] for array in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Pool:
    """The P best hypotheses of every call path, best first. Missing hypotheses have score inf.

    specification: (N, P, K, m); coefficients: (N, P, 1 + K), as in Fitted; residual, left_out: (N, P); score: (N, P),
    lower is better.
    """

    specification: Specification
    coefficients: FloatArray
    residual: FloatArray
    left_out: FloatArray
    score: FloatArray

    def rows(self, rows: NDArray[np.bool_] | tuple[Any, Any]) -> Pool:
        """Return the pool of the call paths in a mask (N,).

        A tuple (call paths, hypotheses), as for indexing in NumPy, selects hypotheses, too.
        """
        return Pool(*(array[rows] for array in vars(self).values()))

    def followed_by(self, other: Pool) -> Pool:
        """Return the pool of the call paths of both pools, which must have the same numbers P and K."""
        return Pool(*map(np.concatenate, zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def fitted(self) -> Fitted:
        """Return the hypotheses as Fitted.

        A pool does not keep the largest residuals; `worst` is the root mean square residual instead.
        """
        return Fitted(self.specification, self.coefficients, self.residual, self.left_out, self.residual)


def of_each_form(pool: Pool) -> Iterator[tuple[int, bool, NDArray[np.int64], NDArray[np.int64]]]:
    """Yield groups of hypotheses with the same number of products, and all with or all without a constant.

    Yields (number of products, whether there is a constant, path, place): hypothesis i of the group is that of call
    path path[i] at place[i] of the pool; both (M,). Groups with few products come first. Missing hypotheses and those
    without product and constant are left out.
    """
    widths = (pool.specification >= 0).any(axis=3).sum(axis=2)
    keys = np.where(np.isfinite(pool.score), 2 * widths + (pool.coefficients[:, :, 0] != 0.0), 0)
    for key in np.unique(keys[keys > 0]).tolist():
        width, constant = divmod(key, 2)
        path, rank = np.nonzero(keys == key)
        yield width, bool(constant), path, rank


def _empty(paths: int, size: int, width: int, parameters: int) -> Pool:
    infinite = (np.full((paths, size), np.inf) for _ in range(3))
    specification = np.full((paths, size, width, parameters), -1, dtype=np.int16)
    return Pool(specification, np.zeros((paths, size, width + 1)), *infinite)


def nothing(paths: int, parameters: int) -> Pool:
    """Return a pool of `paths` call paths without any hypothesis."""
    return _empty(paths, 1, 0, parameters)


def spread(pool: Pool, rows: NDArray[np.bool_]) -> Pool:
    """Return a pool of all N call paths in which the call paths of the mask `rows` (N,) have the hypotheses of `pool`.

    pool: of these call paths only. The other call paths have no hypothesis.
    """
    result = _empty(rows.size, *pool.specification.shape[1:])
    for target, source in zip(vars(result).values(), vars(pool).values(), strict=True):
        target[rows] = source
    return result


def replaced(pool: Pool, rows: NDArray[np.bool_], found: Pool) -> Pool:
    """Return the pool in which the call paths of the mask `rows` (N,) have the hypotheses of `found` instead.

    found: a pool of these call paths only. The result is padded to the larger numbers of hypotheses and products.
    """
    width = max(pool.specification.shape[2], found.specification.shape[2])
    size = max(pool.score.shape[1], found.score.shape[1])
    result = _empty(rows.size, size, width, pool.specification.shape[3])
    for part, where in ((pool.rows(~rows), ~rows), (found, rows)):
        kept, products = part.specification.shape[1:3]
        result.specification[where, :kept, :products] = part.specification
        result.coefficients[where, :kept, : products + 1] = part.coefficients
        for name in ("residual", "left_out", "score"):
            getattr(result, name)[where, :kept] = getattr(part, name)
    return result


def to_pool(fitted: Fitted, scores: FloatArray, size: int) -> Pool:
    """Return a pool of the `size` best hypotheses of each call path. scores: (N, H), lower is better."""
    size = min(size, scores.shape[1])
    everything = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    best = np.argpartition(scores, size - 1, axis=1)[:, :size] if size < scores.shape[1] else everything
    rows = np.arange(scores.shape[0])[:, None]
    specification = fitted.specification
    chosen = specification[rows, best] if specification.ndim == 4 else specification[best]
    arrays = (array[rows, best] for array in (fitted.coefficients, fitted.residual, fitted.left_out, scores))
    return best_first(Pool(chosen, *arrays), size)


def ranked(path: NDArray[np.int64], fitted: Fitted, scores: FloatArray, paths: int, size: int) -> Pool:
    """Return a pool of `paths` call paths with the `size` best hypotheses of each.

    fitted: M hypotheses, specification (M, 1, K, m). Hypothesis i belongs to call path path[i] and has scores[i]; both
    (M,). Lower scores are better; hypotheses with infinite scores are left out.
    """
    order = np.flatnonzero(np.isfinite(scores))
    order = order[np.argsort(scores[order], kind="stable")]
    small = path[order].astype(np.min_scalar_type(paths))  # 16 bits use a radix sort, which is faster
    order = order[np.argsort(small, kind="stable")]
    rows, places = path[order], np.arange(order.size)
    begins = np.diff(rows, prepend=-1) != 0
    rank = places - np.maximum.accumulate(np.where(begins, places, 0))
    best = rank < size
    rows, kept, order = rows[best], rank[best], order[best]
    result = _empty(paths, size, *fitted.specification.shape[2:])
    own = fitted.specification, fitted.coefficients, fitted.residual, fitted.left_out, scores[:, None]
    arrays: tuple[NDArray[Any], ...] = own
    for target, source in zip(vars(result).values(), arrays, strict=True):
        target[rows, kept] = source[order, 0]
    return result


def merge(pools: Sequence[Pool], size: int) -> Pool:
    """Return the `size` best hypotheses of each call path out of several pools of the same call paths.

    Hypotheses with fewer products are padded.
    """
    if len(pools) == 1:
        return pools[0].rows((slice(None), slice(0, size)))
    width = max(pool.specification.shape[2] for pool in pools)
    specification = widened([p.specification for p in pools], 2)
    coefficients = np.concatenate([_pad(p.coefficients, 2, width + 1, 0) for p in pools], axis=1)
    errors = (np.concatenate([getattr(p, name) for p in pools], axis=1) for name in ("residual", "left_out", "score"))
    both = Pool(specification, coefficients, *errors)
    return best_first(both, size)


def best_first(pool: Pool, size: int) -> Pool:
    """Return the `size` best hypotheses of each call path, lowest score first."""
    order = np.argsort(pool.score, axis=1, kind="stable")[:, :size]
    return pool.rows((np.arange(order.shape[0])[:, None], order))


def widened(specifications: Sequence[Specification], products: int) -> Specification:
    """Concatenate specifications along the axis of the hypotheses, which precedes the axis number `products`.

    Hypotheses with fewer products are padded with missing ones (-1).
    """
    width = max(own.shape[products] for own in specifications)
    return np.concatenate([_pad(own, products, width, -1) for own in specifications], axis=products - 1)


def _pad(array: NDArray[_Number], axis: int, width: int, value: int) -> NDArray[_Number]:
    """Return the array, padded with `value` at the end of an axis up to the length `width`."""
    missing = width - array.shape[axis]
    if not missing:
        return array
    more = np.full((*array.shape[:axis], missing, *array.shape[axis + 1 :]), value, dtype=array.dtype)
    return np.concatenate([array, more], axis=axis)
