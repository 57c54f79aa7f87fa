# SPDX-License-Identifier: Apache-2.0
"""Model counts of deep loop nests as polynomials with whole coefficients, with up to one term more than measured sizes.

Loops inside loops over n may count 24·n⁴ + 48·n³ + 48·n² + 48·n + 24: more terms than tried sets of functions, and with
four sizes more terms than equations. But counts are sums of nonnegative parts, and whole multiples of the counts of
their blocks. Few polynomials have these properties, and a polynomial with small coefficients is much shorter than a
table of the counts (Rissanen, Modeling by shortest data description, Automatica 14, 1978).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from operator import mul

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..build import qualities
from ..data.noise import Repetitions
from ..data.preparation import ranges
from ..model import Alternative, Factor, Model, Term
from ..proposers.size_polynomials import lagrange
from .unexplained import unexplained

_Flags = NDArray[np.bool_]
_Whole = tuple[int, ...]
# Smallest and largest number of sizes; larger counts are no exact whole numbers.
_LEAST_SIZES, _MOST_SIZES, _LARGEST = 4, 8, float(1 << 53)
# Fewer than one in 256 random sets of counts have a polynomial that is shorter by this number of bits; polynomials of
# nearly the same length are alternatives: tests/modeling/pmnf/test_polynomials.py
_LUCK, _NEAR = 8.0, 4.0
# Highest coefficients that are tried.
_MOST_TRIED = 1000


def by_polynomials(
    models: Sequence[Model | None],
    points: FloatArray,
    values: FloatArray,
    used: _Flags,
    repetitions: Repetitions,
    names: tuple[str, ...],
) -> dict[int, Model]:
    """Return models of call paths whose counts `models` do not reproduce and such polynomials do.

    The counts depend on one parameter. values: (N, C) of one configuration each; used: (N, C), where a call path was
    measured and executed. repetitions: of the values; counts with different repetitions have no exact function.
    """
    found: dict[int, Model] = {}
    for at, former in unexplained(models, used):
        for place, name in enumerate(names):
            sizes, group = np.unique(points[at, place], return_inverse=True)
            if not _LEAST_SIZES <= sizes.size <= _MOST_SIZES or sizes[0] <= 0 or (sizes != np.round(sizes)).any():
                continue
            first = np.array([int(np.flatnonzero(group.reshape(-1) == size)[0]) for size in range(sizes.size)])
            for path, before in former.items():
                own = values[path, at]
                alone = (own == own[first][group.reshape(-1)]).all() and (own == np.round(own)).all()
                if path in found or repetitions.differ[path] or not alone or not 0 < own.max() < _LARGEST:
                    continue
                likely = polynomials(_whole(sizes), _whole(own[first]))
                if likely:
                    found[path] = _model(likely, points[at], own, names, name, before.notes)
    return found


def polynomials(sizes: _Whole, counts: _Whole) -> list[tuple[float, _Whole]]:
    """Return the shortest polynomials for counts, as weights and coefficients from the constant on.

    K counts at K sizes have one polynomial of degree K - 1, and one of degree K for each multiple of the polynomial
    that is 0 at all sizes. The result is empty if no polynomial has whole, nonnegative coefficients, or if none is
    sufficiently short.
    """
    unit = math.gcd(*counts)
    own = [count // unit for count in counts]
    matrix, below = lagrange(sizes)
    divided = [divmod(sum(map(mul, row, own)), below) for row in matrix]
    if any(rest for _, rest in divided):
        return []
    base, nothing = [*(whole for whole, _ in divided), 0], _zero_at(sizes)
    most = min(own[0] // sizes[0] ** len(sizes), _MOST_TRIED)
    tried = ([a + times * b for a, b in zip(base, nothing, strict=True)] for times in range(most + 1))
    lengths = sorted((_bits(one), tuple(one)) for one in tried if min(one) >= 0)
    table = sum(math.log2(count + 1) for count in own)
    if not lengths or lengths[0][0] > table - _LUCK:
        return []
    near = [(2.0 ** (lengths[0][0] - bits), one) for bits, one in lengths if bits <= lengths[0][0] + _NEAR]
    total = sum(weight for weight, _ in near)
    return [(weight / total, tuple(unit * value for value in one)) for weight, one in near]


def _bits(coefficients: Sequence[int]) -> float:
    """Return the length of nonnegative whole numbers in Elias' gamma code."""
    return sum(2 * ((value + 1).bit_length() - 1) + 1 for value in coefficients)


def _zero_at(sizes: _Whole) -> list[int]:
    """Return the coefficients of the polynomial that is 0 at all sizes, the constant first and the last one 1."""
    found = [1]
    for size in sizes:
        found = [a - size * b for a, b in zip([0, *found], [*found, 0], strict=True)]
    return found


def _model(
    likely: Sequence[tuple[float, _Whole]],
    points: FloatArray,
    values: FloatArray,
    names: tuple[str, ...],
    name: str,
    notes: tuple[str, ...],
) -> Model:
    (_, first), *rest = likely
    others = tuple(Alternative(weight, float(one[0]), _terms(one, name)) for weight, one in rest)
    model = Model(names, float(first[0]), _terms(first, name), None, ranges(points), (), others, notes)
    width = np.array([sum(value != 0 for value in first)])
    (quality,) = qualities(values[None], model.evaluate(points)[None], np.zeros(1), width)
    return Model(names, model.constant, model.terms, quality, model.ranges, (), others, notes)


def _terms(coefficients: _Whole, name: str) -> tuple[Term, ...]:
    powers = [(power, value) for power, value in enumerate(coefficients) if power and value]
    return tuple(Term(float(value), (Factor(name, Fraction(power)),)) for power, value in reversed(powers))


def _whole(values: FloatArray) -> _Whole:
    return tuple(int(value) for value in values.tolist())
