# SPDX-License-Identifier: Apache-2.0
"""Convert laws to models, which are printed, compared and stored like all other models.

A law is text in the grammar of `factors.py`, such as 8·(n + 2·px)·(n + 2·py)·[p > 1]. A model is a sum of products of
powers (pmnf.model). The conversion parses the text and expands products of sums. Like terms of several loops of a call
path are then added. Functions that are not powers (largest parts, levels of a multigrid, conditions on sizes) become
factors with a `Function`.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..pmnf.model import Factor, Function, Steps, Term, collect, sort_key
from ..pmnf.model.recursions import recursion
from ..pmnf.model.steps import BASES
from ..process_grid import LETTERS, Axis, ProcessGrid
from .laws import ONE, UNKNOWN
from .products import EXACT

_SUM_OF_CONDITIONS = re.compile(r"\bsum\[")
_LEVELS = re.compile(r"levels\(m=(\d+)\.\.([^,]+), \(m ([+-] [\d.]+)\)\^(\d)\)")
_LARGEST_POWER = 12
Terms = list[Term]
Form = tuple[float, tuple[Term, ...]]
"""A formula: the constant and the terms of a model."""


class NotConvertible(Exception):
    """Raised for a law with a function that models cannot contain. The message is the text of the function."""


def terms_of_law(text: str, parameters: Sequence[str], grid: ProcessGrid | None) -> tuple[float, tuple[Term, ...]]:
    """Return the constant and the terms of one product of a law.

    - parameters: the names of the parameters of the model.
    - grid: the process grid of the law; None if the number of ranks is no parameter or does not vary.

    Raises NotConvertible.
    """
    return _Parser(parameters, grid).expanded(text)


@dataclass(frozen=True)
class _Scope:
    """The factor that each name in an expression stands for."""

    names: Mapping[str, Factor]

    def with_extents(self, extents: Iterable[Factor]) -> _Scope:
        return _Scope({**self.names, **dict(zip(("pd", "pe", "pf"), extents, strict=False))})


class _Parser:
    def __init__(self, parameters: Sequence[str], grid: ProcessGrid | None) -> None:
        self.grid = grid
        self.extents = () if grid is None else tuple(_extent(grid, d) for d in range(grid.dimensions))
        ordered = sorted(parameters, key=len, reverse=True)
        self.renamed = {name: f"v{number}_" for number, name in enumerate(ordered)}
        self.taken: dict[str, str] = {}
        names = {self.renamed[name]: Factor(name, Fraction(1)) for name in parameters}
        if grid is not None and grid.dimensions > 1:
            free = [f"p{LETTERS[d]}" for d in range(grid.dimensions)]
            self.taken = {name: f"extent{d}_" for d, name in enumerate(free) if name in parameters}
            names |= {self.taken.get(name, name): self.extents[d] for d, name in enumerate(free)}
        self.scope = _Scope(names)

    def expanded(self, text: str) -> tuple[float, tuple[Term, ...]]:
        """Return the constant and the terms of a product; the constant 1 for `UNKNOWN`. Raises NotConvertible."""
        if text == UNKNOWN:
            return 1.0, ()
        plain = _LEVELS.sub(lambda own: f"levels({own[1]}, {own[2]}, {own[3].replace(' ', '')}, {own[4]})", text)
        for name, other in self.taken.items():  # if a parameter is named px, the extent is written (px)
            plain = re.sub(rf"(?<!\w)\({name}\)", other, plain)
        for name, other in self.renamed.items():  # a parameter may have the name of a function
            plain = re.sub(rf"(?<!\w){re.escape(name)}(?![\w(\[])", other, plain)
        plain = plain.replace("·", "*").replace("^", "**")
        plain = _SUM_OF_CONDITIONS.sub("holds[", plain)
        try:
            tree = ast.parse(plain, mode="eval").body
        except SyntaxError:
            raise NotConvertible(text) from None
        return collect(0.0, self.value(tree, self.scope))

    def value(self, node: ast.expr, scope: _Scope) -> Terms:
        """Return the value of an expression as a sum of terms. Raises NotConvertible."""
        number = _number(node)
        if number is not None:
            return [Term(number, ())]
        match node:
            case ast.Name(id=name) if name in scope.names:
                return [Term(1.0, (scope.names[name],))]
            case ast.BinOp(left=ast.Name(id=name), op=ast.Sub(), right=ast.Constant(value=1)) if self._is_ranks(
                scope.names.get(name)
            ):
                own = scope.names[name]
                return [Term(1.0, (Factor(own.parameter, Fraction(1), shares=1, axis=own.axis),))]
            case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
                return self._raised(base, exponent, scope)
            case ast.BinOp(left=left, op=operation, right=right):
                return _combined(operation, self.value(left, scope), self.value(right, scope))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return [term.scaled(-1.0) for term in self.value(operand, scope)]
            case ast.List(elts=[ast.Compare() as condition]):
                return self._condition(condition, scope)
            case ast.Subscript(value=ast.Name(id="holds"), slice=ast.Compare() as condition):
                inside = (self._several(condition, scope.with_extents((own,))) for own in self.extents)
                return [Term(1.0, (own,)) for own in inside]
            case ast.Call(func=ast.Name(id=function), args=arguments):
                return self._called(function, arguments, scope)
        raise NotConvertible(ast.unparse(node))

    def _is_ranks(self, factor: Factor | None) -> bool:
        return factor is not None and self.grid is not None and factor.parameter == self.grid.parameter

    def _raised(self, base: ast.expr, exponent: ast.expr, scope: _Scope) -> Terms:
        number = _number(exponent)
        match base, exponent:
            case ast.Name(id=name), ast.Call(func=ast.Name(id="log2"), args=[ast.Constant(value=int() as calls)]):
                return [Term(1.0, (replace(scope.names[name], exponent=recursion(calls)),))]
        if number is None:  # base^steps
            (term,) = self.value(exponent, scope) or [Term(1.0, ())]
            own, number = term.factors[0] if len(term.factors) == 1 else None, _number(base)
            if own is not None and own.is_plain and own.exponent == 1 and number in BASES:
                return [Term(1.0, (Factor(own.parameter, Fraction(1), steps=Steps(int(number), itself=True)),))]
            if own is not None and own.steps is not None and own.steps.base == number:
                return [Term(1.0, (Factor(own.parameter, Fraction(1), axis=own.axis, steps=own.steps),))]
            raise NotConvertible(ast.unparse(exponent))
        inside = self.value(base, scope)
        if number.is_integer() and 0 <= number <= _LARGEST_POWER:
            result = [Term(1.0, ())]
            for _ in range(int(number)):
                result = _product(result, inside)
            return result
        return [_power(inside, Fraction(number).limit_denominator(_LARGEST_POWER))]

    def _condition(self, condition: ast.Compare, scope: _Scope) -> Terms:
        """Return a condition as a sum of terms. If x is the number of ranks or an extent, [x < 2] is 1 - [x > 1]."""
        match condition:
            case ast.Compare(left=ast.Name(id=name) as left, ops=[ast.Lt()], comparators=[ast.Constant(value=2)]):
                if self._is_ranks(scope.names.get(name)):
                    several = self._several(ast.Compare(left, [ast.Gt()], [ast.Constant(1)]), scope)
                    return [Term(1.0, ()), Term(-1.0, (several,))]
        return [Term(1.0, (self._several(condition, scope),))]

    def _several(self, condition: ast.Compare, scope: _Scope) -> Factor:
        """Return a condition as a factor: [x > 1] (`Factor.several`), or a function "above" or "below"."""
        match condition:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Gt()], comparators=[ast.Constant(value=1)]):
                own = scope.names[name]
                return Factor(own.parameter, axis=own.axis, several=True)
            case ast.Compare(left=left, ops=[ast.Gt() | ast.Lt() as side], comparators=[threshold]):
                number = _number(threshold)
                if number is not None:
                    kind = "above" if isinstance(side, ast.Gt) else "below"
                    return _function(kind, self.value(left, scope), number)
        raise NotConvertible(ast.unparse(condition))

    def _called(self, function: str, arguments: Sequence[ast.expr], scope: _Scope) -> Terms:
        if function == "levels":
            first, size, shift, power = arguments
            numbers = [_number(own) for own in (first, shift, power)]
            known = [number for number in numbers if number is not None]
            return [Term(1.0, (_function("levels", self.value(size, scope), *known),))]
        argument = arguments[0]
        if function == "max":
            return [Term(1.0, (_function("positive", self.value(argument, scope)),))]
        if function == "sqrt":
            return [_power(self.value(argument, scope), Fraction(1, 2))]
        if function == "log2":
            return _logarithm(self.value(argument, scope))
        if function in ("sum", "prod"):
            return self._over_grid(function, argument, scope)
        if function in ("ceil", "floor"):
            match argument:
                case ast.Call(func=ast.Name(id=logarithm), args=[ast.Name(id=name)]) if logarithm[:3] == "log":
                    own = scope.names[name]
                    steps = Steps(int(logarithm[3:]), down=function == "floor")
                    return [Term(1.0, (Factor(own.parameter, log=1, axis=own.axis, steps=steps),))]
            return [Term(1.0, (_function(function, self.value(argument, scope)),))]
        raise NotConvertible(f"{function}({ast.unparse(argument)})")

    def _over_grid(self, function: str, argument: ast.expr, scope: _Scope) -> Terms:
        """Return the sum (`function` is "sum") or the product ("prod") of `argument` over dimensions of the grid.

        - If `argument` contains only the extent pd, d is each dimension.
        - If it contains pd and pe, (d, e) is each pair of dimensions.
        - If it contains pf, f is each dimension, and d and e are the other two dimensions.
        """
        names = {node.id for node in ast.walk(argument) if isinstance(node, ast.Name)}
        dimensions = range(len(self.extents))
        chosen: Iterable[tuple[int, ...]] = ((d,) for d in dimensions)
        if "pf" in names:
            chosen = ((*(e for e in dimensions if e != d), d) for d in dimensions)
        elif "pe" in names:
            chosen = itertools.combinations(dimensions, 2)
        parts = [self.value(argument, scope.with_extents(self.extents[d] for d in own)) for own in chosen]
        if function == "sum":
            return [term for part in parts for term in part]
        result = [Term(1.0, ())]
        for part in parts:
            result = _product(result, part)
        return result


def per_rank(terms: Iterable[Term], grid: ProcessGrid) -> Terms:
    """Return the terms divided by the number of ranks p, in their shortest form.

    The product of all extents is p. In two dimensions, n²·px/p is therefore n²/py, and (px - 1)·py/p is (px - 1)/px.
    """
    inverse = Term(1.0, (Factor(grid.parameter, Fraction(-1)),))
    constant, found = collect(0.0, [_shortest(term.times(inverse), grid) for term in terms])
    return ([Term(constant, ())] if constant else []) + list(found)


def _shortest(term: Term, grid: ProcessGrid) -> Term:
    """Return an equal term with the fewest powers of p and of the extents of its grid."""
    if grid.dimensions == 1:
        return term
    extents = [_extent(grid, d) for d in range(grid.dimensions)]
    axes = {own.axis: d for d, own in enumerate(extents)}
    powers = [Fraction(0)] * len(extents)
    whole = Fraction(0)
    for own in term.factors:
        if own.steps is None and own.axis in axes:
            powers[axes[own.axis]] += own.exponent
        elif own.is_plain and own.parameter == grid.parameter:
            whole += own.exponent
    if not any(powers):
        return term

    def cost(common: Fraction) -> tuple[int, int, Fraction]:
        every = [whole + common, *(power - common for power in powers)]
        return sum(map(bool, every)), sum(power < 0 for power in every), abs(common)

    common = min({Fraction(0), *powers}, key=cost)
    if not common:
        return term
    change = [Factor(grid.parameter, common), *(replace(own, exponent=-common) for own in extents)]
    return term.times(Term(1.0, tuple(change)))


def _extent(grid: ProcessGrid, dimension: int) -> Factor:
    axis = Axis(grid.rule, grid.dimensions, dimension) if grid.dimensions > 1 else None
    return Factor(grid.parameter, Fraction(1), axis=axis)


def _number(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -float(number)
        case ast.BinOp(left=ast.Constant(value=int() as top), op=ast.Div(), right=ast.Constant(value=int() as low)):
            return top / low
    return None


def _combined(operation: ast.operator, left: Terms, right: Terms) -> Terms:
    """Return the sum, difference, product or quotient of two sums."""
    match operation:
        case ast.Add():
            return [*left, *right]
        case ast.Sub():
            return [*left, *(term.scaled(-1.0) for term in right)]
        case ast.Mult():
            return _product(left, right)
        case ast.Div():
            return _product(left, [_power(right, Fraction(-1))])
    raise NotConvertible(type(operation).__name__)


def _product(one: Terms, other: Terms) -> Terms:
    constant, terms = collect(0.0, [a.times(b) for a in one for b in other])
    return ([Term(constant, ())] if constant else []) + list(terms)


def _power(terms: Terms, exponent: Fraction) -> Term:
    """Return a power of a sum of terms: a product if the sum is a single product of powers, otherwise a function."""
    if not _is_product(terms):
        return Term(1.0, (_function("power", terms, float(exponent)),))
    (term,) = terms
    factors = (replace(own, exponent=own.exponent * exponent) for own in term.factors)
    return Term(term.coefficient ** float(exponent), tuple(factors))


def _logarithm(terms: Terms) -> Terms:
    """Return log2 of a sum of terms.

    The result is a sum of logarithms if the sum is a single product of powers, otherwise a function.
    """
    if not _is_product(terms) or any(own.function for own in terms[0].factors):
        return [Term(1.0, (_function("log2", terms),))]
    (term,) = terms
    found = [Term(math.log2(term.coefficient), ())] if term.coefficient != 1 else []
    return found + [Term(float(own.exponent), (Factor(own.parameter, log=1, axis=own.axis),)) for own in term.factors]


def _is_product(terms: Terms) -> bool:
    """Return whether a sum is a single product of powers."""
    return len(terms) == 1 and not any(f.log or f.shares or f.several or f.steps for f in terms[0].factors)


def _function(kind: str, terms: Terms, *numbers: float) -> Factor:
    """Return a function of a sum of terms as a factor. Raises NotConvertible if the sum contains no parameter."""
    function = Function(kind, tuple(sorted(terms, key=sort_key, reverse=True)), numbers)
    if not function.parameters:
        raise NotConvertible(kind)
    return Factor(min(function.parameters), Fraction(1), function=function)


def form_of(law: Iterable[tuple[float, str]], names: Sequence[str], grid: ProcessGrid | None, mean: bool) -> Form:
    """Return the constant and the terms of a law.

    - law: pairs (coefficient, product as text).
    - names: the names of the parameters. grid: as in `terms_of_law`.
    - mean: whether to divide the law by the number of ranks.

    Raises NotConvertible.
    """
    constant, terms = 0.0, list[Term]()
    for coefficient, product in law:
        own, found = terms_of_law(product or ONE, names, grid)
        constant += coefficient * own
        terms += [term.scaled(coefficient) for term in found]
    if mean and grid is not None:
        terms, constant = per_rank([Term(constant, ()), *terms], grid), 0.0
    whole, kept = collect(constant, terms)
    return _cleaned(whole), tuple(Term(_cleaned(term.coefficient), term.factors) for term in kept)


def _cleaned(coefficient: float) -> float:
    """Return a coefficient, rounded if it is a whole number up to rounding errors."""
    near = round(coefficient)
    return float(near) if near and abs(coefficient - near) <= EXACT * abs(near) else coefficient
