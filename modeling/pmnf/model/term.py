# SPDX-License-Identifier: Apache-2.0
"""Terms of models: a coefficient times a product of factors, usually x^i·log2(x)^j of a parameter x.

A factor may also be a rounded number of steps or blocks, an extent of a process grid, or another function.
"""

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
"""Greater than any power of a parameter in a model; base^x counts as a multiple of it (`Factor.exponents`)."""
_ROUNDED = 1e-12  # products that are whole numbers up to this relative error are rounded
_ROUNDING = 1e-9  # sums (above all quotients) count as whole numbers up to this absolute error
SortKey = tuple[Fraction, int, tuple[tuple[str, Fraction, int], ...]]


@dataclass(frozen=True, slots=True)
class Blocks:
    """(⌈m/size⌉·size/m)^power: the factor by which work grows if m items are processed in whole blocks of `size` items.

    Examples: chunks of a loop, tiles of a matrix, messages of a buffer. The factor tends to 1 for large m. size: at
    least 2. product: the factors of m, plain ones only (`Factor.is_plain`).
    """

    size: int
    product: tuple[Factor, ...]
    power: int = 1

    def number(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return the number of blocks ⌈m/size⌉ at the parameter values in `columns`; same shape."""
        result: FloatArray = np.ceil(self.whole(columns) / self.size)
        return result

    def whole(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return the product m; if only rounding keeps it from being a whole number, the whole number."""
        result: FloatArray = np.ones(())
        for factor in self.product:
            result = result * factor.evaluate(columns[factor.parameter])
        near = np.round(result)
        return np.where(np.abs(result - near) <= _ROUNDED * near, near, result)

    def evaluate(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return the factor at the parameter values in `columns` (arrays of equal shape by name); same shape."""
        result: FloatArray = (self.number(columns) * self.size / self.whole(columns)) ** self.power
        return result


FUNCTIONS = {"ceil": 0, "floor": 0, "above": 1, "below": 1, "positive": 0, "power": 1, "log2": 0, "levels": 3}
"""The kinds of `Function`, each with the length of `Function.numbers`."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a sum x of terms (`argument`), for factors that are no power of a parameter.

    kind, and what `numbers` are:
    - ceil, floor: x rounded up or down, such as the largest part of a domain, ⌈n/px⌉.
    - above, below: 1 where x > numbers[0] or x < numbers[0], otherwise 0.
    - positive: max(x, 0).
    - power: x^numbers[0]; log2: log2(x). A negative x counts as 0.
    - levels: Σ max(m + c, 0)^k over the grids of a multigrid method, whose sizes m are x, x/2, x/4, ... down to a;
      numbers are a, c and k.
    """

    kind: str
    argument: tuple[Term, ...]
    numbers: tuple[Real, ...] = ()

    @property
    def parameters(self) -> frozenset[str]:
        """Return the names of the parameters of the argument."""
        return frozenset(name for term in self.argument for factor in term.factors for name in factor.parameters)

    @property
    def is_condition(self) -> bool:
        """Return whether the only values are 0 and 1."""
        return self.kind in ("above", "below")

    def exponents(self, parameter: str) -> Exponents:
        """Return (i, j): the function grows like x^i·log2(x)^j of the parameter x with this name."""
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
    """x^exponent · log2(x)^log · ((x-1)/x)^shares, where x is a parameter or an extent of a process grid.

    shares: (x-1)/x is the part of the data that a process sends to others in a collective operation of x processes
    (Chan et al., Collective communication: theory, practice, and experience, 2007), or the part of the ranks with a
    neighbour on one side. It tends to 1 and does not change the order.
    axis: if given, x is the extent in this dimension of the grid of as many processes as the parameter.
    several: if True, the factor is also multiplied by [x > 1], which is 1 for x > 1 and otherwise 0: work of ranks that
    have a neighbour in a periodic dimension.

    With one of the following, the factor has another form; `parameter` is one of the parameters in it.
    steps: (base^k)^exponent · k^log with the number k of steps up to x.
    blocks: the factor of Blocks.
    function: the function to the power of `exponent`.
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
        """Return the names of all parameters of the factor."""
        if self.function is not None:
            return self.function.parameters
        beside = () if self.blocks is None else (own.parameter for own in self.blocks.product)
        return frozenset((self.parameter, *beside))

    @property
    def axes(self) -> frozenset[Axis]:
        """Return the extents of process grids that the factor contains."""
        if self.function is not None:
            return frozenset(axis for term in self.function.argument for own in term.factors for axis in own.axes)
        return frozenset() if self.axis is None else frozenset((self.axis,))

    def exponents_in(self, parameter: str) -> Exponents:
        """Return (i, j): the factor grows like x^i·log2(x)^j of the parameter x with this name."""
        if self.function is not None:
            power, log = self.function.exponents(parameter)
            return power * self.exponent, floor(log * self.exponent)
        return self.exponents if parameter == self.parameter else (Fraction(0), 0)

    @property
    def exponents(self) -> Exponents:
        """Return (i, j): the factor grows like x^i·log2(x)^j of the parameter x in `parameter`.

        An extent of a grid with d dimensions grows like x^(1/d). An exponential, base^x, counts as a power of x that is
        larger than that of any other factor.
        """
        if self.function is not None:
            return self.exponents_in(self.parameter)
        if self.steps is not None and self.steps.itself:
            return self.exponent * self.steps.bits * LARGEST_POWER, self.log
        return (self.exponent if self.axis is None else self.exponent / self.axis.dimensions), self.log

    @property
    def variable(self) -> tuple[str, int, str]:
        """Return a key by which factors are sorted: parameter, then kind of variable.

        The kind is -1 for the parameter, -2 for steps and functions, less for blocks, else the index of the dimension.
        """
        if self.function is not None:
            return self.parameter, -2, repr(self.function)
        if self.blocks is not None:
            return self.parameter, -2 - self.blocks.size, ""
        if self.steps is not None:
            return self.parameter, -2, ""
        return self.parameter, -1 if self.axis is None else self.axis.index, ""

    @property
    def is_of(self) -> tuple[object, ...]:
        """Return a key of the variable; factors with equal keys can be combined.

        The extent of a process grid of one dimension is the parameter itself.
        """
        if self.function is not None:
            return (self.function,)
        axis = None if self.axis is None or self.axis.dimensions == 1 else self.axis
        return self.parameter, axis, self.steps, None if self.blocks is None else replace(self.blocks, power=0)

    @property
    def is_plain(self) -> bool:
        """Return whether the factor is only a power and a logarithm of the parameter."""
        of_itself = self.axis is None and self.steps is None and self.blocks is None and self.function is None
        return of_itself and not self.shares and not self.several

    @property
    def name(self) -> str:
        """Return the variable as text: p, or px for an extent of its grid."""
        return self.parameter if self.axis is None else self.axis.name(self.parameter)

    def at(self, columns: Mapping[str, FloatArray], shape: tuple[int, ...]) -> FloatArray:
        """Return the factor at the parameter values in `columns` (arrays of `shape` by name)."""
        if self.function is not None:
            found = self.function.evaluate(columns, shape)
            return found if self.exponent == 1 else found ** float(self.exponent)
        return self.evaluate(columns[self.parameter]) if self.blocks is None else self.blocks.evaluate(columns)

    def evaluate(self, x: FloatArray) -> FloatArray:
        """Return a factor without blocks or function at the parameter values `x`; same shape.

        x must be above 0, or at least 0 for exponents of at least 0 without logarithm.
        """
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
    """A coefficient times a product of factors, at most one factor for each variable (`Factor.is_of`)."""

    coefficient: Real
    factors: tuple[Factor, ...]

    @property
    def shape(self) -> tuple[Factor, ...]:
        """Return the sorted factors, which are equal for like terms."""
        return tuple(sorted(self.factors, key=lambda factor: factor.variable))

    @property
    def is_short(self) -> bool:
        """Return whether no two factors have the same variable and could be combined."""
        return len(self.factors) < 2 or len({factor.is_of for factor in self.factors}) == len(self.factors)

    def exponents(self, parameter: str) -> Exponents:
        """Return (i, j) of `parameter` in this term, (0, 0) if it does not occur."""
        found = [factor.exponents_in(parameter) for factor in self.factors]
        return sum((exponent for exponent, _ in found), Fraction(0)), sum(log for _, log in found)

    def times(self, other: Term) -> Term:
        """Return the product of two terms, in which factors of the same variable are combined."""
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
                (mine.several or factor.several) and not shares,  # (x-1)/x is 0 at x = 1 already
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
        """Return the term at the parameter values in `columns` (arrays of `shape` by name)."""
        result = np.full(shape, self.coefficient)
        for factor in self.factors:
            result = result * factor.at(columns, shape)
        return result

    @property
    def in_blocks(self) -> tuple[Term, tuple[Blocks, ...]]:
        """Return (rest, blocks): the term is rest · Π (number of blocks)^power over the blocks.

        This is the form in which a term is printed: 32·⌈n/32⌉ instead of n·(⌈n/32⌉·32/n).
        """
        blocks = tuple(factor.blocks for factor in self.factors if factor.blocks is not None)
        rest = Term(self.coefficient, tuple(factor for factor in self.factors if factor.blocks is None))
        for one in blocks:
            inverse = (replace(f, exponent=-f.exponent * one.power, log=-f.log * one.power) for f in one.product)
            rest = rest.times(Term(float(one.size) ** one.power, tuple(inverse)))
        return rest, blocks


def lead_exponents(terms: Sequence[Term], constant: float, parameter: str) -> Exponents:
    """Return (i, j) of the term that dominates as `parameter` grows and the others are constant.

    A constant other than 0 counts as a term with (0, 0). The result is also (0, 0) if there are no terms.
    """
    orders = [term.exponents(parameter) for term in terms if term.coefficient != 0.0]
    if constant != 0.0 or not orders:
        orders.append((Fraction(0), 0))
    return max(orders)


def sort_key(term: Term) -> SortKey:
    """Return a sort key of terms: sum of exponents, then sum of logarithms, then names. Printed text is thus stable."""
    return (
        sum((f.exponents_in(name)[0] for f in term.factors for name in f.parameters), Fraction(0)),
        sum(f.log for f in term.factors),
        tuple((f.name, f.exponent, f.log) for f in term.shape),
    )
