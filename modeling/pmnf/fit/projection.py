# SPDX-License-Identifier: Apache-2.0
"""Compute precise residuals of unweighted least squares at few points, for many small sets of functions.

Without weights, the matrix that converts values to residuals depends on the functions and the points only, so it is
computed once for all call paths. Shapes: N call paths, S sets of K functions each, c points.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import LOST_ON_LINES

_Sets = NDArray[np.int64] | NDArray[np.int16]


def residual_bases(table: FloatArray, sets: _Sets) -> FloatArray:
    """Return orthonormal bases (S, c, c - 1 - K) of all that is orthogonal to a constant and to the functions of a set.

    table: (functions, c), the functions at the points; sets: (S, K), rows of the table.
    """
    return _bases(table.tobytes(), sets.tobytes(), (*table.shape, *sets.shape), sets.dtype.str)


def residual_makers(table: FloatArray, sets: _Sets) -> FloatArray:
    """Return symmetric matrices (S, c, c) that convert values to residuals; arguments as in `residual_bases`."""
    return _makers(table.tobytes(), sets.tobytes(), (*table.shape, *sets.shape), sets.dtype.str)


@lru_cache(maxsize=64)
def _bases(table: bytes, sets: bytes, shape: tuple[int, ...], kind: str) -> FloatArray:
    columns = np.frombuffer(table).reshape(shape[:2])[np.frombuffer(sets, dtype=kind).reshape(shape[2:])]
    columns = np.concatenate([np.ones((shape[2], 1, shape[1])), columns], axis=1)
    basis, _ = np.linalg.qr(columns.transpose(0, 2, 1), mode="complete")
    result: FloatArray = np.ascontiguousarray(basis[:, :, columns.shape[1] :])
    return result


@lru_cache(maxsize=64)
def _makers(table: bytes, sets: bytes, shape: tuple[int, ...], kind: str) -> FloatArray:
    basis = _bases(table, sets, shape, kind)
    result: FloatArray = basis @ basis.transpose(0, 2, 1)
    return result


def squared_residuals(makers: FloatArray, values: FloatArray, most: float) -> FloatArray:
    """Return the squared residuals (N, S) of values (N, L, c), summed over L lines; inf if they exceed `most`.

    makers: (S, c, c), of `residual_makers`. Each line has separate coefficients. The squares are linear in the products
    of pairs of values, so one matrix product computes all of them. These products lose digits, so the residuals that
    may be below `most` are computed again from the values.
    """
    values = values - values.mean(axis=2, keepdims=True)  # changes no residual, because each fit contains a constant
    row, column = np.triu_indices(values.shape[2])
    moments = np.einsum("nlc,nld->ncd", values, values)
    weight = np.where(row == column, 1.0, 2.0)
    squares: FloatArray = moments[:, row, column] @ (makers[:, row, column] * weight).T
    uncertain = LOST_ON_LINES * np.einsum("ncc->n", moments)
    vague = np.flatnonzero(uncertain > 1e-3)
    if vague.size:
        near, number = np.nonzero(squares[vague] <= most + uncertain[vague, None])
        path = vague[near]
        exact = values[path] @ makers[number]
        squares[path, number] = np.einsum("klc,klc->k", exact, exact)
    np.maximum(squares, 0.0, out=squares)
    squares[~(squares <= most)] = np.inf
    return squares


def squares_left(bases: FloatArray, values: FloatArray) -> FloatArray:
    """Return the squared residuals (N, S) of values (N, c) for each of the sets of functions in `residual_bases`."""
    sets, points, width = bases.shape
    found = (values @ bases.transpose(1, 2, 0).reshape(points, width * sets)).reshape(len(values), width, sets)
    result: FloatArray = np.einsum("nws,nws->ns", found, found)
    return result
