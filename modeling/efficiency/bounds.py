# SPDX-License-Identifier: Apache-2.0
"""Arithmetic with intervals of positive numbers, shape (3, scopes): value, lower end, upper end. NaN: not determined.

Errors of operands are independent: the distances of the ends from the values add like standard deviations. In products
and ratios, these distances are differences of logarithms.
"""

from __future__ import annotations

import numpy as np

from ..experiment import FloatArray


def exact(values: FloatArray) -> FloatArray:
    """Return intervals of exactly known numbers (scopes,), whose ends equal the value."""
    return np.stack([values, values, values])


def ratio(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return one / other; NaN if a value is not finite, or other is 0."""
    value = _quotient(one[0], other[0])
    below = np.hypot(_log(one[0], one[1]), _log(other[2], other[0]))
    above = np.hypot(_log(one[2], one[0]), _log(other[0], other[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.stack([value, value * np.exp(-below), value * np.exp(above)])


def product(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return one · other."""
    value = one[0] * other[0]
    below = np.hypot(_log(one[0], one[1]), _log(other[0], other[1]))
    above = np.hypot(_log(one[2], one[0]), _log(other[2], other[0]))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.stack([value, value * np.exp(-below), value * np.exp(above)])


def total(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return one + other; the lower end is at least 0."""
    value = one[0] + other[0]
    below = np.hypot(one[0] - one[1], other[0] - other[1])
    above = np.hypot(one[2] - one[0], other[2] - other[0])
    return np.stack([value, np.maximum(value - below, 0.0), value + above])


def at_most_one(factor: FloatArray) -> FloatArray:
    """Return an interval with its value and ends limited to 1."""
    return np.minimum(factor, 1.0)


def _quotient(one: FloatArray, other: FloatArray) -> FloatArray:
    fits = np.isfinite(one) & np.isfinite(other) & (other > 0.0)
    return np.asarray(np.divide(one, other, out=np.full(one.shape, np.nan), where=fits))


def _log(larger: FloatArray, smaller: FloatArray) -> FloatArray:
    """Return ln(larger / smaller); infinite if only the smaller number is 0, and 0 if both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(larger / smaller)
    return np.asarray(np.where((larger == smaller) | ~(larger > 0.0), 0.0, found))
