# SPDX-License-Identifier: Apache-2.0
"""Alternating least squares of a CP decomposition (sum of R products of factors) with functions as factors.

A sweep fits the factor of each mode in turn while the other factors are constant. The fit uses every row at its
position, not means of cells. The factor of a mode is piecewise linear between knots, so a row affects two neighbouring
knots, and the normal equations of a mode are block-banded. The penalties are a ridge, and the second derivative along
each numeric mode. Between sweeps, factors are extrapolated as in Mitchell, Ye and De Sterck ("Nesterov acceleration of
alternating least squares for canonical tensor decomposition", 2020), with a restart if the loss grows. Rows have Huber
weights, because models are judged by the absolute error, not by the squared error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solveh_banded
from scipy.sparse import csr_array

from ..experiment import FloatArray
from ..progress import steps
from .modes import Mode

Single = NDArray[np.float32]
HUBER = 1.5
"""Residuals above this number of robust standard deviations count linearly."""
TOLERANCE = 3e-4
"""Sweeps end when the relative change of the loss is below this number."""


@dataclass(frozen=True)
class Penalty:
    """Weights of the penalties: ridge (size of the factors), and smoothness (second derivative).

    They are relative to the number of rows and to the scale of a component (`solve_mode`).
    """

    ridge: float = 1e-3
    smoothness: float = 1e-5


class Rows:
    """Rows prepared for sweeps: for each mode, the sparse matrix of hat functions, and the rows sorted by cell."""

    def __init__(self, modes: Sequence[Mode], x: FloatArray, target: FloatArray) -> None:
        self.target = target.astype(np.float32)
        self.count = len(target)
        self.bases = [_Basis(mode, x) for mode in modes]

    def values(self, factors: Sequence[FloatArray]) -> list[Single]:
        """Return the functions of each mode at the rows, one array (N, R) per mode."""
        return [basis.at(factor) for basis, factor in zip(self.bases, factors, strict=True)]

    def predicted(self, factors: Sequence[FloatArray]) -> FloatArray:
        """Return the model at the rows, shape (N,): the sum over components of the products over modes."""
        return np.asarray(
            np.prod(np.stack(self.values(factors)), axis=0, dtype=np.float32).sum(axis=1), dtype=np.float64
        )


class _Basis:
    def __init__(self, mode: Mode, x: FloatArray) -> None:
        first, weights = mode.basis(x)
        if mode.width == 1:  # each value is a knot, which has all of the weight
            first, weights = first + (weights[:, 1] > 0.5), np.maximum(weights[:, :1], weights[:, 1:])
        count, width = weights.shape
        entries = (weights.astype(np.float32).ravel(), (first[:, None] + np.arange(width)).ravel().astype(np.int32))
        self.width, self.size = width, mode.size
        self.matrix = csr_array((*entries, np.arange(0, count * width + 1, width, dtype=np.int32)), (count, mode.size))
        self.transposed = csr_array(self.matrix.T)
        self.order = np.argsort(first, kind="stable")
        self.bounds = np.searchsorted(first[self.order], np.arange(mode.size + 1))
        self.weights = weights.astype(np.float32)[self.order] if width == 2 else None

    def at(self, factor: FloatArray) -> Single:
        values: Single = self.matrix @ factor.astype(np.float32)
        return values

    def normal(self, others: Single, roots: Single | None) -> FloatArray:
        """Return the Gram matrix of each cell, shape (size, width, R, width, R).

        others: (N, R), the products of the functions of all other modes at the rows; roots: (N,), the square roots of
        the weights of the rows, None for equal weights. width: hat functions that are not zero in a cell, 1 or 2.
        """
        rank = others.shape[1]
        rows = (others if roots is None else others * roots[:, None])[self.order]
        if self.weights is not None:
            rows = np.concatenate([rows * self.weights[:, :1], rows * self.weights[:, 1:]], axis=1)
        result = np.zeros((self.size, rows.shape[1], rows.shape[1]))
        for cell in range(self.size):
            begin, end = self.bounds[cell], self.bounds[cell + 1]
            if begin < end:
                part = rows[begin:end]
                result[cell] = part.T @ part
        return result.reshape(self.size, self.width, rank, self.width, rank)


@dataclass
class Decomposition:
    """A decomposition during its fit: factors (knots, R) by mode, number of sweeps so far, and loss."""

    factors: list[FloatArray]
    sweeps: int = 0
    loss: float = field(default=np.inf)

    @property
    def rank(self) -> int:
        """Return the number of components."""
        return int(self.factors[0].shape[1])

    def sweep(self, modes: Sequence[Mode], rows: Rows, penalty: Penalty, sweeps: int, robust: bool = True) -> None:
        """Run at most `sweeps` sweeps over the modes, until the loss converges. Replaces `factors`.

        robust: whether rows have Huber weights.
        """
        previous: list[FloatArray] | None = None
        plain = self.factors
        extrapolated, step, before, scale = False, 1, np.inf, np.inf
        self.loss = np.inf
        for _ in steps("sweeps over the rows", range(sweeps)):
            values = rows.values(self.factors)
            after = _products_after(values)
            residual = np.abs(rows.target - (after[0] * values[0]).sum(axis=1))
            loss = _loss(residual, scale)
            if not loss <= self.loss and extrapolated:  # also if the loss is NaN
                self.factors, previous, extrapolated, step = plain, None, False, 1
                continue
            if abs(before - loss) < TOLERANCE * loss:
                break
            before = loss
            roots = None
            if robust:
                scale = huber_scale(residual)
                roots = huber_roots(residual, scale)
            self.loss = _loss(residual, scale)
            self._update(modes, rows, penalty, values, after, roots)
            plain = self.factors
            if previous is not None:
                momentum = step / (step + 3.0)
                self.factors = [new + momentum * (new - old) for new, old in zip(plain, previous, strict=True)]
                extrapolated, step = True, step + 1
            previous = plain
            self.sweeps += 1
        self.factors = plain

    def sweep_parts(
        self, modes: Sequence[Mode], x: FloatArray, target: FloatArray, penalty: Penalty, part: int
    ) -> None:
        """Run one sweep over more rows than memory can hold prepared.

        The normal equations are summed over parts of `part` rows, each of which is prepared separately.
        """
        for number, mode in enumerate(modes):
            gram: FloatArray | float = 0.0
            right: FloatArray | float = 0.0
            for begin in steps(f"rows of mode {number + 1} of {len(modes)}", range(0, len(x), part)):
                rows = Rows(modes, x[begin : begin + part], target[begin : begin + part])
                others = np.ones((rows.count, self.rank), dtype=np.float32)
                for other, basis in enumerate(rows.bases):
                    if other != number:
                        others *= basis.at(self.factors[other])
                residual = np.abs(rows.target - (others * rows.bases[number].at(self.factors[number])).sum(axis=1))
                scale = huber_scale(residual)
                roots = huber_roots(residual, scale)
                gram = gram + rows.bases[number].normal(others, roots)
                right = right + rows.bases[number].transposed @ (others * (rows.target * roots**2)[:, None])
            self.factors[number] = solve_mode(
                mode, np.asarray(gram), np.asarray(right, dtype=np.float64), penalty, len(x)
            )

    def _update(
        self,
        modes: Sequence[Mode],
        rows: Rows,
        penalty: Penalty,
        values: list[Single],
        after: list[Single],
        roots: Single | None,
    ) -> None:
        weighted = rows.target if roots is None else rows.target * roots * roots
        before: Single | None = None
        factors = list(self.factors)
        for number, (mode, basis) in enumerate(zip(modes, rows.bases, strict=True)):
            others = after[number] if before is None else before * after[number]
            right = (basis.transposed @ (others * weighted[:, None])).astype(np.float64)
            factors[number] = solve_mode(mode, basis.normal(others, roots), right, penalty, rows.count)
            values[number] = basis.at(factors[number])
            before = values[number] if before is None else before * values[number]
        self.factors = balanced(factors)


def huber_scale(residual: NDArray[Any]) -> float:
    """Return the absolute residual above which rows count linearly: `HUBER` robust standard deviations.

    residual: (N,) absolute residuals.
    """
    return HUBER * 1.4826 * float(np.median(residual)) + 1e-12


def huber_roots(residual: NDArray[Any], scale: float) -> NDArray[Any]:
    """Return the square roots of the Huber weights, √min(1, scale/residual), of absolute residuals (N,)."""
    return np.asarray(np.sqrt(1.0 / np.maximum(1.0, residual / residual.dtype.type(scale))))


def solve_mode(mode: Mode, gram: FloatArray, right: FloatArray, penalty: Penalty, count: int) -> FloatArray:
    """Return the factor (size, R) of a mode that solves the penalized normal equations.

    gram: (size, width, R, width, R), the Gram matrix of each cell (`_Basis.normal`). right: (size, R), right-hand side.
    count: number of rows. The penalties of a component are multiplied by the mean square of the product of its other
    factors, so that they do not depend on how the scale of the component is divided among the modes.
    """
    size, width, rank = gram.shape[:3]
    bands = width if mode.kind == "categorical" else 3
    blocks = np.zeros((bands, size, rank, rank))
    for first in range(width):
        for lag in range(width - first):
            blocks[lag, first:] += gram[: size - first, first + lag, :, first, :]
    diagonal = np.arange(rank)
    scale = np.einsum("iarbr->r", gram) / count + 1e-12
    blocks[0][:, diagonal, diagonal] += penalty.ridge * count / size * scale
    for lag, band in enumerate(mode.roughness()[:bands]):
        blocks[lag][:, diagonal, diagonal] += (penalty.smoothness * count * band)[:, None] * scale
    if bands == 1:
        return np.asarray(np.linalg.solve(blocks[0], right[:, :, None])[:, :, 0])
    return _solve_banded(blocks, right)


def _solve_banded(blocks: FloatArray, right: FloatArray) -> FloatArray:
    bands, size, rank, _ = blocks.shape
    places = np.arange(rank)
    banded = np.zeros((bands * rank, size * rank))
    low, high = np.tril_indices(rank)
    banded[(low - high)[None], (np.arange(size) * rank)[:, None] + high[None]] = blocks[0][:, low, high]
    for lag in range(1, min(bands, size)):
        shape = (size - lag, rank, rank)
        row = np.broadcast_to(lag * rank + places[:, None] - places[None, :], shape)
        column = np.broadcast_to((np.arange(size - lag) * rank)[:, None, None] + places[None, None, :], shape)
        banded[row, column] = blocks[lag][: size - lag]
    for jitter in (0.0, 1e-8, 1e-5):
        try:
            lifted = banded.copy()
            lifted[0] *= 1.0 + jitter
            lifted[0] += jitter * banded[0].mean()
            return np.asarray(solveh_banded(lifted, right.ravel(), lower=True, overwrite_ab=True)).reshape(size, rank)
        except LinAlgError:
            continue
    return np.zeros_like(right)


def balanced(factors: Sequence[FloatArray]) -> list[FloatArray]:
    """Return the factors scaled so that each component has the same norm in all modes. Products do not change."""
    norms = np.stack([np.sqrt((factor**2).mean(axis=0)) + 1e-12 for factor in factors])
    shared = np.exp(np.log(norms).mean(axis=0))
    return [factor * (shared / norm) for factor, norm in zip(factors, norms, strict=True)]


def averaged(members: Sequence[Sequence[FloatArray]]) -> list[FloatArray]:
    """Return the factors of the mean of several decompositions over the same modes.

    members: the factors of each decomposition. The mean is one decomposition with the components of all of them.
    """
    factors = [np.concatenate(parts, axis=1) for parts in zip(*members, strict=True)]
    factors[0] = factors[0] / len(members)
    return balanced(factors) if len(members) > 1 else factors


def started(modes: Sequence[Mode], rank: int, random: np.random.Generator, amplitude: float = 0.3) -> list[FloatArray]:
    """Return random starting factors (knots, R) by mode.

    They are close to one, so that each component is nearly constant along each mode; the factor of the first mode is
    multiplied by a random number of the standard deviation `amplitude` for each component.
    """
    factors = [1.0 + 0.3 * random.standard_normal((mode.size, rank)) for mode in modes]
    factors[0] *= amplitude * random.standard_normal(rank)
    return balanced(factors)


def _products_after(values: Sequence[Single]) -> list[Single]:
    """Return for each mode the product (N, R) of the values of all later modes, ones for the last mode."""
    result = [np.ones_like(values[-1])]
    for value in reversed(values[1:]):
        result.append(result[-1] * value)
    return result[::-1]


def _loss(residual: Single, scale: float) -> float:
    small = residual <= scale
    squared = np.square(residual, where=small, out=np.zeros_like(residual)).sum(dtype=np.float64)
    linear = np.where(small, 0.0, 2.0 * scale * residual - scale * scale).sum() if np.isfinite(scale) else 0.0
    return float(squared + linear) / len(residual)


def factor_at(mode: Mode, factor: Single, x: FloatArray) -> Single:
    """Return the functions of a mode at rows x (N, d), shape (N, R).

    factor: (knots, R). An unmeasured category has the mean over all categories.
    """
    first, weights = mode.basis(x)
    values: Single = factor[first]
    if mode.kind == "categorical":
        if not weights[:, 0].all():
            values[weights[:, 0] == 0.0] = factor.mean(axis=0)
        return values
    right = weights[:, 1:].astype(np.float32)
    if mode.size > 1 and right.any():
        if mode.indexed and np.all((right == 0.0) | (right == 1.0)):
            return np.asarray(factor[first + (right[:, 0] == 1.0)])
        values += right * (factor[first + 1] - values)
    return values
