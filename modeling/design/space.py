# SPDX-License-Identifier: Apache-2.0
"""The search space: all combinations of given values of parameters that fulfil constraints."""

from __future__ import annotations

import ast
import itertools
import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..errors import ArgumentError, ModelingError
from ..experiment import FloatArray

LARGEST = 1_000_000
"""Largest number of combinations of values before constraints are applied."""


def _root(value: float, degree: int) -> int:
    return round(value ** (1.0 / degree)) if value > 0 else 0


def _power(value: float, base: float) -> bool:
    return value > 0 and base > 1 and math.isclose(value, base ** round(math.log(value, base)), rel_tol=1e-12)


FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "is_square": lambda x: _root(x, 2) ** 2 == x,
    "is_cube": lambda x: _root(x, 3) ** 3 == x,
    "is_power": _power,
    "abs": abs,
    "min": min,
    "max": max,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "floor": math.floor,
    "ceil": math.ceil,
    "gcd": lambda a, b: math.gcd(int(a), int(b)),
}
_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class _Texts(ast.NodeTransformer):
    """Replaces quoted names of parameters by the parameters, and quoted values of parameters by their codes."""

    def __init__(self, text: str, parameters: frozenset[str], levels: Mapping[str, Sequence[str]]) -> None:
        self._text, self._parameters, self._levels = text, parameters, levels

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Return the parameter if the text is the name of one, otherwise the node itself."""
        return ast.Name(node.value, ast.Load()) if node.value in self._parameters else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Return the comparison with texts replaced by codes, if a parameter with texts as values is compared."""
        parts = [node.left, *node.comparators]
        found = [self.visit(part) for part in parts]
        for at, kind in enumerate(node.ops):
            for one, other in ((at, at + 1), (at + 1, at)):
                name, value = found[one], parts[other]
                if isinstance(name, ast.Name) and name.id in self._levels and _is_text(value):
                    found[other] = ast.Constant(self._code(name.id, value.value, kind))  # type: ignore[attr-defined]
        return ast.Compare(found[0], node.ops, found[1:])

    def _code(self, name: str, value: str, kind: ast.cmpop) -> int:
        levels = self._levels[name]
        if value not in levels:
            known = ", ".join(map(_in_quotes, levels))
            raise ArgumentError(f"constraint {self._text!r}: {value!r} is not a value of {name}; it has: {known}")
        if not isinstance(kind, ast.Eq | ast.NotEq):
            raise ArgumentError(f"constraint {self._text!r}: values of {name} have no order: compare with == or !=")
        return levels.index(value)


def _in_quotes(text: str) -> str:
    """Return a text in double quotes, as it is written in an expression."""
    return json.dumps(text, ensure_ascii=False)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


class Constraint:
    """A condition on parameters, such as `is_cube(p)`, `n % 10 == 0` or `p * 1000 <= n or p == 1`.

    An expression may contain numbers, parameters, + - * / // % **, comparisons, and, or, not, and the functions in
    `FUNCTIONS`. Names with special characters are in double quotes, `"# ranks" <= 8`, and so are values that are texts:
    `layout == "row,major"`. levels: for each parameter with texts as values, the texts in the order of their codes 0,
    1, … Raises ArgumentError with the constraint and the reason if the expression is not valid.
    """

    def __init__(self, text: str, parameters: Sequence[str], levels: Mapping[str, Sequence[str]] | None = None) -> None:
        self.text, self._parameters = text, frozenset(parameters)
        known = ", ".join(name if name.isidentifier() else _in_quotes(name) for name in parameters)
        how = "" if all(map(str.isidentifier, parameters)) else f", with parameters written so: {known}"
        try:
            self._tree: ast.expr = ast.parse(text.strip(), mode="eval").body
            self._tree = _Texts(text, self._parameters, levels or {}).visit(self._tree)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ArgumentError(f"constraint {text!r} is not an expression such as n % 10 == 0{how}") from error
        names = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        if unknown := sorted(names - self._parameters - FUNCTIONS.keys()):
            raise ArgumentError(f"constraint {text!r}: no parameter {', '.join(unknown)}; there are: {known}")
        self(dict.fromkeys(parameters, 1.0))

    def __call__(self, values: Mapping[str, float]) -> bool:
        """Return whether a point fulfils the constraint; False if the expression has no value there (division by 0).

        values: of all parameters, codes of texts. Raises ArgumentError if the expression cannot be evaluated.
        """
        try:
            return bool(self._value(self._tree, values))
        except (ZeroDivisionError, OverflowError, ValueError):
            return False
        except (TypeError, RecursionError) as error:
            raise ArgumentError(f"constraint {self.text!r} cannot be evaluated: {error}") from error

    def _value(self, node: ast.expr, values: Mapping[str, float]) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name) if name in values:
                return values[name]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._value(operand, values)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand, values)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return math.pow(self._value(left, values), self._value(right, values))
            case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _BINARY:
                return _BINARY[type(kind)](self._value(left, values), self._value(right, values))
            case ast.BoolOp(op=ast.And(), values=parts):
                return all(self._value(part, values) for part in parts)
            case ast.BoolOp(values=parts):
                return any(self._value(part, values) for part in parts)
            case ast.Compare(left=left, ops=kinds, comparators=others) if all(type(kind) in _COMPARE for kind in kinds):
                chain = [self._value(part, values) for part in (left, *others)]
                return all(
                    _COMPARE[type(kind)](*pair) for kind, pair in zip(kinds, itertools.pairwise(chain), strict=True)
                )
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
                return FUNCTIONS[name](*(self._value(argument, values) for argument in arguments))
        raise ArgumentError(f"constraint {self.text!r}: {ast.unparse(node)} cannot be used here")


def search_space(values: Mapping[str, Sequence[float]], constraints: Sequence[str] = ()) -> FloatArray:
    """Return all combinations of `values` that fulfil all constraints, shape (N, m), with the parameters as columns.

    The points are in ascending order, the first parameter changes slowest. Raises ArgumentError for an invalid
    constraint, ModelingError for more than LARGEST combinations, or if no point is left.
    """
    names = tuple(values)
    predicates = [Constraint(text, names) for text in constraints]
    if math.prod(len(column) for column in values.values()) > LARGEST:
        raise ModelingError(f"the search space has more than {LARGEST:,} combinations: give fewer values")
    points = [
        point
        for point in itertools.product(*(sorted(set(column)) for column in values.values()))
        if all(predicate(dict(zip(names, point, strict=True))) for predicate in predicates)
    ]
    if not points:
        raise ModelingError(f"the search space is empty: no point fulfils {' and '.join(constraints) or 'it'}")
    return np.array(points, dtype=np.float64)
