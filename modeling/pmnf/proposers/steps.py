# SPDX-License-Identifier: Apache-2.0
"""Propose exact sums with functions of one parameter that grow in steps, such as 3·n·⌈log2(n/7)⌉ + 2·n.

The measured values only show between which of them a step is. Units and bases with steps between the same values form
one class. For each class, all small sets of functions are tried: n, n², and products of these with the number of steps
k and with base^k. A sum is accepted if it reproduces whole counts exactly with coefficients of loops, and if the
evidence of the counts exceeds the number of tried sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import exp, log
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import (
    BATCH_SETS,
    EXACT,
    LEAST_WEIGHT,
    LOOP_DENOMINATOR,
    NEARLY_EXACT,
    STEPS_BEFORE_ONE,
    STEPS_LEAST,
    STEPS_MOST_TERMS,
    STEPS_MOST_UNIT,
    STEPS_TRIED,
    WHOLE,
)
from ..fit.projection import residual_bases, squares_left
from ..model import Factor, Term
from ..model.steps import BASES, Steps

# Powers of x, of base^k, and of k in the tried functions.
_PLAIN = ((1, 0, 0), (2, 0, 0))
_STEPPED = ((1, 0, 1), (0, 0, 1), (0, 1, 0), (2, 0, 1), (1, 1, 0), (0, 1, 1), (0, 0, 2), (1, 0, 2), (0, 2, 0))
Powers = tuple[int, int, int]
T = TypeVar("T")


@dataclass(frozen=True)
class SteppedSum:
    """A sum that reproduces counts. parts: coefficients, each with the powers (`Powers`) of its function."""

    steps: Steps
    constant: float
    parts: tuple[tuple[float, Powers], ...]

    @property
    def score(self) -> float:
        """Return -2 log of the prior probability: few functions, no negative coefficients, and usual steps."""
        coefficients = [self.constant, *(coefficient for coefficient, _ in self.parts)]
        return (
            EXACT.coefficient * sum(value != 0 for value in coefficients)
            + EXACT.negative * sum(value < 0 for value in coefficients)
            + unlikeliness(self.steps)
        )

    def terms(self, parameter: str) -> tuple[Term, ...]:
        """Return the terms of a model."""
        return tuple(Term(value, _factors(parameter, self.steps, powers)) for value, powers in self.parts)


def likeliest_of_alike(found: Iterable[tuple[float, bytes, T]]) -> list[tuple[float, T]]:
    """Return one item for each key, with the weight of all items of this key; the weights sum to 1.

    found: scores (-2 log of the posterior), keys, items. Unlikely items are left out; the likeliest is first.
    """
    ordered = sorted(found, key=lambda own: own[0])
    alike: dict[bytes, tuple[float, T]] = {}
    for score, key, own in ordered:
        weight, likeliest = alike.get(key, (0.0, own))
        alike[key] = weight + exp(0.5 * (ordered[0][0] - score)), likeliest
    first = max(weight for weight, _ in alike.values())
    kept = sorted((own for own in alike.values() if own[0] >= LEAST_WEIGHT * first), key=lambda own: -own[0])
    total = sum(weight for weight, _ in kept)
    return [(weight / total, own) for weight, own in kept]


def unlikeliness(steps: Steps) -> float:
    """Return -2 log of the prior probability of steps, up to a constant.

    Units are mostly powers of two; other units and bases are less likely the larger they are.
    """
    shift = (steps.unit & -steps.unit).bit_length() - 1
    return 2.0 * log((steps.unit >> shift) ** 2 * (1 + shift) * steps.base * (1 + steps.down))


class SteppedSums:
    """Proposes sums for counts of one parameter that are measured at its values `x` >= 1, (C,)."""

    def __init__(self, x: FloatArray) -> None:
        self.x = x
        self.classes = classes_of_steps(tuple(x.tolist()))

    def propose(self, values: FloatArray) -> list[list[SteppedSum]]:
        """Return all sums that reproduce each of the whole numbers `values` (N, C), with the fewest functions.

        They are sorted by their scores; there may be none.
        """
        result: list[list[SteppedSum]] = [[] for _ in values]
        variation = np.log(np.maximum(np.ptp(values, axis=1), 1.0))
        table, scale = self._table()
        tried = 0
        for family in _families():
            sets = _of_classes(family, len(self.classes))
            tried += len(sets)
            free = self.x.size - family.shape[1] - 1
            enough = free * variation >= np.log(max(tried, 1)) + 1.0
            rows = np.flatnonzero(enough & np.array([not found for found in result], dtype=bool))
            if free < 1 or not rows.size or not len(sets):
                continue
            bases = residual_bases(table, sets)
            step = max(1, BATCH_SETS // len(sets))
            for part in np.split(rows, range(step, rows.size, step)):
                own = values[part]
                limit = self.x.size * (NEARLY_EXACT * np.abs(own).max(axis=1, keepdims=True)) ** 2
                left = squares_left(bases, own)
                for row, squares, most in zip(part.tolist(), left, limit[:, 0].tolist(), strict=True):
                    near = np.flatnonzero(squares <= most)
                    near = near[np.argsort(squares[near], kind="stable")][:STEPS_TRIED]
                    result[row] = self._exact(values[row], sets[near], table, scale)
        return result

    def _exact(
        self, values: FloatArray, sets: NDArray[np.int64], table: FloatArray, scale: FloatArray
    ) -> list[SteppedSum]:
        """Return the sums of `sets` (S, K) that reproduce the values (C,), for all steps of their classes."""
        found = {}
        for chosen in sets.tolist():
            if solved(*_with_constant(table[chosen], scale[chosen]), values) is None:
                continue
            number = max((row - len(_PLAIN)) // len(_STEPPED) for row in chosen)
            powers = [_powers(row) for row in chosen]
            for steps in self.classes[number]:
                columns = np.array([_column(self.x, steps, own) for own in powers])
                coefficients = solved(*_with_constant(columns, np.ones(len(columns))), values)
                levels = np.unique(steps.number(self.x)).size
                if coefficients is not None and (_is_open(powers, levels) or min(coefficients) >= 0.0):
                    parts = tuple((value, own) for value, own in zip(coefficients[1:], powers, strict=True) if value)
                    found[steps, parts] = SteppedSum(steps, coefficients[0], parts)
        return sorted(found.values(), key=lambda own: own.score)

    def _table(self) -> tuple[FloatArray, FloatArray]:
        """Return the functions (A, C), each divided by its largest value, and these values (A,)."""
        rows = [_column(self.x, None, powers) for powers in _PLAIN]
        rows += [_column(self.x, alike[0], powers) for alike in self.classes for powers in _STEPPED]
        table = np.array(rows)
        scale = np.maximum(np.abs(table).max(axis=1), 1.0)
        return table / scale[:, None], scale


def _column(x: FloatArray, steps: Steps | None, powers: Powers) -> FloatArray:
    result: FloatArray = x ** float(powers[0])
    if steps is not None:
        number = steps.number(x)
        result = result * float(steps.base) ** (number * powers[1]) * number ** powers[2]
    return result


def _powers(row: int) -> Powers:
    """Return the powers of a row of the table."""
    return _PLAIN[row] if row < len(_PLAIN) else _STEPPED[(row - len(_PLAIN)) % len(_STEPPED)]


def _factors(parameter: str, steps: Steps, powers: Powers) -> tuple[Factor, ...]:
    plain, padded, number = powers
    factors = (Factor(parameter, Fraction(plain)),) if plain else ()
    return (*factors, Factor(parameter, Fraction(padded), number, steps=steps)) if padded or number else factors


@lru_cache(maxsize=64)
def classes_of_steps(x: tuple[float, ...]) -> list[tuple[Steps, ...]]:
    """Return classes of steps that grow between the same of the values `x`, those of the smallest unit first.

    Left out: classes of which the values show fewer than STEPS_LEAST steps, or one step and fewer than STEPS_BEFORE_ONE
    below the smallest value, and classes equal to log(x) at these values.
    """
    values = np.array(x)
    known: dict[tuple[int, bytes], list[Steps]] = {}
    for base in BASES:
        logs = np.log2(values) / (base.bit_length() - 1)
        for unit in range(1, STEPS_MOST_UNIT + 1):
            for down in (False, True):
                steps = Steps(base, unit, down)
                number = steps.number(values)
                rises = number - number[0]
                least = 1 if number.min() >= STEPS_BEFORE_ONE else STEPS_LEAST
                if np.unique(number).size <= least or np.ptp(number - logs) < WHOLE:
                    continue
                known.setdefault((base, rises.tobytes()), []).append(steps)
    return [tuple(alike) for alike in known.values()]


@lru_cache(maxsize=1)
def _families() -> tuple[NDArray[np.int64], ...]:
    """Return sets of functions of the first class, each an array (S, width): only the number of steps, then all.

    Each set has at least one function with steps, after the others.
    """
    families = [np.array([[len(_PLAIN) + _STEPPED.index((0, 0, 1))]])]
    for width in range(1, STEPS_MOST_TERMS + 1):
        sets = [own for own in combinations(range(len(_PLAIN) + len(_STEPPED)), width) if own[-1] >= len(_PLAIN)]
        families.append(np.array(sets))
    return tuple(families)


def _of_classes(family: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Return the sets (S, width) of the first class for each of so many classes, (classes · S, width)."""
    moved = family[None] + np.arange(classes)[:, None, None] * len(_STEPPED)
    result: NDArray[np.int64] = np.where(family < len(_PLAIN), family, moved).reshape(-1, family.shape[1])
    return result


def _is_open(powers: list[Powers], levels: int) -> bool:
    """Return whether functions with these powers, and the constant, have degrees of freedom at this number of levels.

    As many functions of k as values of k fit any values, times any power of x. Whole, nonnegative coefficients are then
    the evidence, as for polynomials (proposers/exact_terms.py).
    """
    of_power = Counter([0, *(plain for plain, _, _ in powers)])
    return max(of_power.values()) < levels


def _with_constant(columns: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return functions (K, C), divided by `scale` (K,), and the scale, with a constant as the first of them."""
    return np.concatenate([np.ones((1, columns.shape[1])), columns]), np.concatenate([[1.0], scale])


def solved(columns: FloatArray, scale: FloatArray, values: FloatArray) -> list[float] | None:
    """Return the coefficients that reproduce the values (C,) exactly; None if loops have no such coefficients.

    columns: (K, C), divided by `scale`.
    """
    design = columns.T
    top = np.abs(design).max(axis=0)
    found, _, rank, _ = np.linalg.lstsq(design / top, values, rcond=None)
    if rank < design.shape[1]:
        return None
    whole = LOOP_DENOMINATOR * found / top / scale
    rounded = np.round(whole)
    if np.abs(whole - rounded).max() > WHOLE * max(1.0, np.abs(whole).max()):
        return None
    fitted = design @ (rounded * scale / LOOP_DENOMINATOR)
    exact = np.abs(fitted - values).max() <= WHOLE + 1e-13 * np.abs(values).max()
    coefficients: list[float] = (rounded / LOOP_DENOMINATOR).tolist()
    return coefficients if exact else None
