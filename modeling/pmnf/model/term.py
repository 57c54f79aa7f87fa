# SPDX-License-Identifier: Apache-2.0
"""Terms of the performance model normal form: coefficient times a product of x^i log2^j(x) over parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor

import numpy as np

from ...documents import Real
from ...experiment import FloatArray
from ...process_grid import Axis
from .steps import Steps

Exponents = tuple[Fraction, int]
LARGEST_POWER = 16
"""Greater than any power of a parameter in a model (`steep`)."""
_ROUNDED = 1e-12
_ROUNDING = 1e-9  # of quotients that are whole numbers
SortKey = tuple[Fraction, int, tuple[tuple[str, Fraction, int], ...]]


@dataclass(frozen=True, slots=True)
class Blocks:
    """(⌈m/size⌉·size/m)^power: the factor that a product m of powers gets if work is done in whole blocks.

    Examples: chunks of a loop, tiles of a matrix, messages of a buffer. The factor tends to 1. size: at least 2.
    product: of plain factors.
    """

    size: int
    product: tuple[Factor, ...]
    power: int = 1

    def number(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return the number of blocks at the parameter values in `columns`; same shape."""
        result: FloatArray = np.ceil(self.whole(columns) / self.size)
        return result

    def whole(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return the product, corrected to a whole number if rounding prevents it."""
        result: FloatArray = np.ones(())
        for factor in self.product:
            result = result * factor.evaluate(columns[factor.parameter])
        near = np.round(result)
        return np.where(np.abs(result - near) <= _ROUNDED * near, near, result)

    def evaluate(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return the factor at the parameter values in `columns`."""
        result: FloatArray = (self.number(columns) * self.size / self.whole(columns)) ** self.power
        return result


FUNCTIONS = {"ceil": 0, "floor": 0, "above": 1, "below": 1, "positive": 0, "power": 1, "log2": 0, "levels": 3}
"""The kinds of `Function`, each with the number of its numbers."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a sum x of terms, for what is not a product of powers.

    kind and numbers:
    - ceil, floor: x rounded up or down, such as the largest part of a domain, ⌈n/px⌉.
    - above, below: 1 where x > numbers[0] or x < numbers[0], otherwise 0.
    - positive: max(x, 0).
    - power: x^numbers[0]; log2: the logarithm. Both have the value of x = 0 where x is negative.
    - levels: the sum of max(m + c, 0)^k over the sizes m = a, 2·a, ..., x of a multigrid; numbers are a, c and k.
    """

    kind: str
    argument: tuple[Term, ...]
    numbers: tuple[Real, ...] = ()

    @property
    def parameters(self) -> frozenset[str]:
        """Return the parameters of the argument."""
        return frozenset(name for term in self.argument for factor in term.factors for name in factor.parameters)

    @property
    def is_condition(self) -> bool:
        """Return whether the values are 0 and 1."""
        return self.kind in ("above", "below")

    def exponents(self, parameter: str) -> Exponents:
        """Return (i, j): the function grows like x^i log2^j(x) of a parameter x."""
        if self.is_condition:
            return Fraction(0), 0
        power, log = lead_exponents(self.argument, 0.0, parameter)
        if self.kind == "log2":
            return Fraction(0), int(power > 0)
        if self.kind in ("power", "levels"):
            by = Fraction(self.numbers[-1]).limit_denominator(LARGEST_POWER)
            return power * by, floor(log * by)
        return power, log

    def evaluate(self, columns: Mapping[str, FloatArray], shape: tuple[int, ...]) -> FloatArray:
        """Return the function at the parameter values in `columns` (arrays of `shape`)."""
        x = np.zeros(shape)
        for term in self.argument:
            x = x + term.evaluate(columns, shape)
        match self.kind:
            case "ceil":
                return np.ceil(x - _ROUNDING)
            case "floor":
                return np.floor(x + _ROUNDING)
            case "above":
                return np.asarray(x > self.numbers[0], dtype=np.float64)
            case "below":
                return np.asarray(x < self.numbers[0], dtype=np.float64)
            case "positive":
                return np.maximum(x, 0.0)
            case "power":
                return np.asarray(np.maximum(x, 0.0) ** float(self.numbers[0]), dtype=np.float64)
            case "log2":
                return np.log2(np.maximum(x, 0.0))
        return self._levels(x)

    def _levels(self, x: FloatArray) -> FloatArray:
        first, shift, power = self.numbers
        total = np.zeros_like(x)
        level = x.copy()
        while bool((there := level >= first * (1.0 - _ROUNDING)).any()):
            total += np.where(there, np.maximum(level + shift, 0.0) ** float(power), 0.0)
            level = level / 2.0
        return total


@dataclass(frozen=True, slots=True)
class Factor:
    """x^exponent · log2(x)^log · ((x-1)/x)^shares of one parameter x, or of an extent of the grid of x processes.

    several: times [x > 1], which is 1 for x > 1 and otherwise 0: work of ranks with a neighbour in a periodic
    dimension. steps: the factor is (base^k)^exponent · k^log with the number k of steps up to x. blocks: the factor
    belongs to a product of parameters in the same term; parameter is one of them. shares: number of factors (x-1)/x,
    the part of the data that leaves a process in a collective operation of x processes (Chan et al., Collective
    communication, 2007), or the ranks with a neighbour on one side. It tends to 1 and does not change the order. axis:
    the dimension of the process grid, None for the parameter. function: the factor is a power of the function;
    parameter is one of its parameters.
    """

    parameter: str
    exponent: Fraction = Fraction(0)
    log: int = 0
    shares: int = 0
    axis: Axis | None = None
    steps: Steps | None = None
    several: bool = False
    blocks: Blocks | None = None
    function: Function | None = None

    @property
    def parameters(self) -> frozenset[str]:
        """Return all parameters of the factor."""
        if self.function is not None:
            return self.function.parameters
        beside = () if self.blocks is None else (own.parameter for own in self.blocks.product)
        return frozenset((self.parameter, *beside))

    @property
    def axes(self) -> frozenset[Axis]:
        """Return the dimensions of process grids in the factor."""
        if self.function is not None:
            return frozenset(axis for term in self.function.argument for own in term.factors for axis in own.axes)
        return frozenset() if self.axis is None else frozenset((self.axis,))

    def exponents_in(self, parameter: str) -> Exponents:
        """Return (i, j) of the normal form in a parameter."""
        if self.function is not None:
            power, log = self.function.exponents(parameter)
            return power * self.exponent, floor(log * self.exponent)
        return self.exponents if parameter == self.parameter else (Fraction(0), 0)

    @property
    def exponents(self) -> Exponents:
        """Return the pair (i, j) of the normal form, in the parameter.

        An extent of d dimensions grows like its d-th root. A power of base^x counts as one power of x that is larger
        than all others.
        """
        if self.function is not None:
            return self.exponents_in(self.parameter)
        if self.steps is not None and self.steps.itself:
            return self.exponent * self.steps.bits * LARGEST_POWER, self.log
        return (self.exponent if self.axis is None else self.exponent / self.axis.dimensions), self.log

    @property
    def variable(self) -> tuple[str, int, str]:
        """Return a key of the variable: the parameter with -1, steps with -2, blocks with less, or an extent."""
        if self.function is not None:
            return self.parameter, -2, repr(self.function)
        if self.blocks is not None:
            return self.parameter, -2 - self.blocks.size, ""
        if self.steps is not None:
            return self.parameter, -2, ""
        return self.parameter, -1 if self.axis is None else self.axis.index, ""

    @property
    def is_of(self) -> tuple[object, ...]:
        """Return a key that is equal for factors that can be combined: the extent of a chain of p ranks is p."""
        if self.function is not None:
            return (self.function,)
        axis = None if self.axis is None or self.axis.dimensions == 1 else self.axis
        return self.parameter, axis, self.steps, None if self.blocks is None else replace(self.blocks, power=0)

    @property
    def is_plain(self) -> bool:
        """Return whether it is a power and a logarithm of the parameter."""
        of_itself = self.axis is None and self.steps is None and self.blocks is None and self.function is None
        return of_itself and not self.shares and not self.several

    @property
    def name(self) -> str:
        """Return the variable as text: p, or px for an extent of its grid."""
        return self.parameter if self.axis is None else self.axis.name(self.parameter)

    def at(self, columns: Mapping[str, FloatArray], shape: tuple[int, ...]) -> FloatArray:
        """Return the factor at the parameter values in `columns` (arrays of `shape`)."""
        if self.function is not None:
            found = self.function.evaluate(columns, shape)
            return found if self.exponent == 1 else found ** float(self.exponent)
        return self.evaluate(columns[self.parameter]) if self.blocks is None else self.blocks.evaluate(columns)

    def evaluate(self, x: FloatArray) -> FloatArray:
        """Return a factor without blocks or function at `x` (> 0, or >= 0 for exponents >= 0); same shape."""
        if self.axis is not None:
            x = self.axis.extent(x)
        if self.steps is not None:
            number = self.steps.number(x)
            return float(self.steps.base) ** (number * float(self.exponent)) * number**self.log
        result: FloatArray = x ** float(self.exponent) if self.exponent else np.ones_like(x)
        if self.log:
            result = result * np.log2(x) ** self.log
        if self.shares:
            result = result * ((x - 1.0) / x) ** self.shares
        if self.several:
            result = result * (x > 1.0)
        return result


@dataclass(frozen=True, slots=True)
class Term:
    """A coefficient times a product of factors, at most one per parameter, extent of its grid, and steps."""

    coefficient: Real
    factors: tuple[Factor, ...]

    @property
    def shape(self) -> tuple[Factor, ...]:
        """Return a key that is equal for like terms: the factors in the order of parameter names."""
        return tuple(sorted(self.factors, key=lambda factor: factor.variable))

    @property
    def is_short(self) -> bool:
        """Return whether no two factors have the same variable, as p and the extent of a chain of p ranks do."""
        return len(self.factors) < 2 or len({factor.is_of for factor in self.factors}) == len(self.factors)

    def exponents(self, parameter: str) -> Exponents:
        """Return (i, j) of `parameter` in this term, (0, 0) if it does not occur."""
        found = [factor.exponents_in(parameter) for factor in self.factors]
        return sum((exponent for exponent, _ in found), Fraction(0)), sum(log for _, log in found)

    def times(self, other: Term) -> Term:
        """Return the product of two terms."""
        merged: dict[object, Factor] = {}
        for factor in (*self.factors, *other.factors):
            mine = merged.get(factor.is_of, Factor(factor.parameter))
            shares, blocks = mine.shares + factor.shares, factor.blocks
            if blocks is not None and mine.blocks is not None:
                blocks = replace(blocks, power=mine.blocks.power + blocks.power)
            merged[factor.is_of] = Factor(
                factor.parameter,
                mine.exponent + factor.exponent,
                mine.log + factor.log,
                shares,
                mine.axis if factor.axis is None else factor.axis,
                factor.steps,
                (mine.several or factor.several) and not shares,  # x - 1 is 0, too
                blocks,
                factor.function,
            )
            if factor.function is not None and factor.function.is_condition:
                merged[factor.is_of] = factor
        kept = tuple(f for f in merged.values() if f.exponent or f.log or f.shares or f.several or f.blocks)
        return Term(self.coefficient * other.coefficient, kept)

    def scaled(self, by: float) -> Term:
        """Return the term with its coefficient multiplied by `by`."""
        return Term(self.coefficient * by, self.factors)

    def evaluate(self, columns: Mapping[str, FloatArray], shape: tuple[int, ...]) -> FloatArray:
        """Return the term at the parameter values in `columns` (arrays of `shape`)."""
        result = np.full(shape, self.coefficient)
        for factor in self.factors:
            result = result * factor.at(columns, shape)
        return result

    @property
    def in_blocks(self) -> tuple[Term, tuple[Blocks, ...]]:
        """Return the term with blocks as numbers of blocks: the rest, and the blocks."""
        blocks = tuple(factor.blocks for factor in self.factors if factor.blocks is not None)
        rest = Term(self.coefficient, tuple(factor for factor in self.factors if factor.blocks is None))
        for one in blocks:
            inverse = (replace(f, exponent=-f.exponent * one.power, log=-f.log * one.power) for f in one.product)
            rest = rest.times(Term(float(one.size) ** one.power, tuple(inverse)))
        return rest, blocks


def lead_exponents(terms: Sequence[Term], constant: float, parameter: str) -> Exponents:
    """Return (i, j) of the dominating term as `parameter` grows and the others are constant.

    A constant counts as (0, 0), also if it is 0.
    """
    orders = [term.exponents(parameter) for term in terms if term.coefficient != 0.0]
    if constant != 0.0 or not orders:
        orders.append((Fraction(0), 0))
    return max(orders)


def sort_key(term: Term) -> SortKey:
    """Return a sort key: total exponent, then total logarithm, then name, so that text is stable."""
    return (
        sum((f.exponents_in(name)[0] for f in term.factors for name in f.parameters), Fraction(0)),
        sum(f.log for f in term.factors),
        tuple((f.name, f.exponent, f.log) for f in term.shape),
    )
