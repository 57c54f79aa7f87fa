# SPDX-License-Identifier: Apache-2.0
"""Represent a predicted count as a discrete distribution.

Several laws may explain the measured counts, and each law predicts a different value.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ATOMS = 64  # largest number of values of a distribution
_LEVELS = (np.arange(41) + 0.5) / 41  # levels of the quantiles that `Distribution.together` adds
_EQUAL = 1e-9  # values count as equal up to this part of the largest magnitude


class Distribution:
    """A discrete distribution: values, shape (atoms,), and their probabilities `weights`, same shape, with sum 1."""

    __slots__ = ("values", "weights")

    def __init__(self, values: Floats | float, weights: Floats | None = None) -> None:
        """Create a distribution. weights: any positive numbers, which are scaled to the sum 1; None: equal weights."""
        self.values = np.atleast_1d(np.asarray(values, dtype=np.float64))
        given = np.ones(self.values.size) if weights is None else np.asarray(weights, dtype=np.float64)
        self.weights = given / given.sum()

    @staticmethod
    def mixture(parts: Iterable[tuple[float, Distribution]]) -> Distribution:
        """Return the mixture of distributions, each with its weight."""
        known = list(parts)
        values = np.concatenate([part.values for _, part in known])
        return _merged(values, np.concatenate([weight * part.weights for weight, part in known]))

    def plus(self, other: Distribution) -> Distribution:
        """Return the distribution of the sum of two independent values."""
        if other.values.size == 1:
            return Distribution(self.values + other.values[0], self.weights)
        values = (self.values[:, None] + other.values).ravel()
        return _merged(values, (self.weights[:, None] * other.weights).ravel())

    def times(self, other: Distribution) -> Distribution:
        """Return the distribution of the product of two independent values."""
        if other.values.size == 1:
            return self.scaled(float(other.values[0]))
        values = (self.values[:, None] * other.values).ravel()
        return _merged(values, (self.weights[:, None] * other.weights).ravel())

    def scaled(self, factor: float) -> Distribution:
        """Return the distribution of `factor` times the value."""
        return Distribution(self.values * factor, self.weights)

    @staticmethod
    def together(parts: Iterable[tuple[float, Distribution]]) -> Distribution:
        """Return the distribution of Σ factor · value over pairs (factor, distribution).

        The dependence of the values on each other is not known. The function assumes full dependence: all values are
        large together. It therefore adds the quantiles of the same level.
        """
        known = [(factor, part) for factor, part in parts if factor]
        sure = sum(factor * float(part.values[0]) for factor, part in known if part.values.size == 1)
        rest = [factor * part.quantiles(_LEVELS) for factor, part in known if part.values.size > 1]
        return Distribution(np.sum(rest, axis=0) + sure) if rest else Distribution(float(sure))

    def quantiles(self, shares: Floats) -> Floats:
        """Return the quantiles at these levels (0 to 1); same shape as `shares`.

        The quantile at level q is the smallest value x for which the values up to x have at least the weight q.
        """
        order = np.argsort(self.values, kind="stable")
        reached = np.cumsum(self.weights[order])
        return self.values[order][np.minimum(np.searchsorted(reached, shares - _EQUAL), order.size - 1)]

    def quantile(self, share: float) -> float:
        """Return the quantile at one level (`quantiles`)."""
        return float(self.quantiles(np.array([share]))[0])


def _merged(values: Floats, weights: Floats) -> Distribution:
    """Merge equal values. If more than _ATOMS remain, merge neighbouring values into groups of about equal weight.

    The value of a group is its value of the largest weight, because no law predicts the mean of a group.
    """
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    scale = max(abs(float(values[0])), abs(float(values[-1])), 1e-300)
    new = np.append(True, np.diff(values) > _EQUAL * scale)
    if new.sum() > _ATOMS:
        share = (np.cumsum(weights) - weights / 2) / weights.sum()
        new = np.append(True, np.diff(np.minimum(share * _ATOMS, _ATOMS - 1).astype(int)) > 0)
    heaviest = np.lexsort((-weights, np.cumsum(new)))[np.flatnonzero(new)]
    return Distribution(values[heaviest], np.add.reduceat(weights, np.flatnonzero(new)))
