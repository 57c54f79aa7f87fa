# SPDX-License-Identifier: Apache-2.0
"""Parse formulas from text: sums of products of powers and logarithms of parameters."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from ...errors import ModelingError
from .model import Model
from .recursions import recursion
from .term import Factor, Term

_PLAIN = str.maketrans({"·": "*", "×": "*", "−": "-"})
# Largest k in exponents of recursions, such as n^log2(k).
_MOST_CALLS = 64
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def parse_product(text: str, parameters: Sequence[str], divides: bool = False) -> Term:
    """Return the term of a text such as "48·n^(3/2)*log2(p)": numbers, powers of parameters, powers of logarithms.

    `^` and `**` are powers; exponents are numbers, fractions in parentheses, or log2(k) of a whole number k. `·` means
    `*`, and n² means n^2, as in printed models. divides: whether products may be divided by powers of parameters, as in
    `n^2/p`. Raises ModelingError, which quotes the text, for any other text and if the coefficient is not above 0.
    """
    reader = _Reader(text, tuple(parameters), divides)
    term = reader.product(reader.tree)
    if not math.isfinite(term.coefficient) or term.coefficient <= 0:
        raise ModelingError(f"growth {text!r}: the coefficient must be above 0")
    return Term(term.coefficient, term.shape)


def parse_sum(text: str, parameters: Sequence[str]) -> Model:
    """Return the model of a text such as "48*n^2 + 100": a sum or difference of products as in `parse_product`.

    The model has neither quality nor covariance. Raises ModelingError, which quotes the text, for any other text.
    """
    reader = _Reader(text, tuple(parameters))
    products = reader.products(reader.tree)
    if not all(math.isfinite(term.coefficient) for term in products):
        raise ModelingError(f"growth {text!r}: a coefficient is no finite number")
    constant = sum(term.coefficient for term in products if not term.factors)
    return Model(tuple(parameters), constant, tuple(term for term in products if term.factors))


class _Reader:
    """Parses one text. Each method parses one kind of expression, and raises ModelingError for others."""

    def __init__(self, text: str, parameters: tuple[str, ...], divides: bool = False) -> None:
        self.text, self.parameters, self.divides = text, parameters, divides
        try:
            plain = re.sub("[⁰¹²³⁴-⁹]+", lambda raised: f"^{raised[0].translate(_RAISED)}", text.strip())
            self.tree = ast.parse(plain.translate(_PLAIN).replace("^", "**"), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise self._error(getattr(error, "msg", "it is too long or holds strange characters")) from None

    def _error(self, problem: str) -> ModelingError:
        names = self.parameters or ("n",)
        logs = ", ".join([*self.parameters, *(f"log2({name})" for name in self.parameters)]) or "no parameters"
        example = f"0.5*{names[-1]}^(3/2)*log2({names[0]})^2"
        return ModelingError(f"growth {self.text!r}: {problem}; write a product such as {example}, of numbers, {logs}")

    def products(self, node: ast.expr) -> list[Term]:
        """Return the terms of a sum."""
        match node:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return [*self.products(left), *self.products(right)]
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return [*self.products(left), *(term.scaled(-1.0) for term in self.products(right))]
        return [self.product(node)]

    def product(self, node: ast.expr) -> Term:
        """Return a product as a term."""
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return Term(self._finite(number), ())
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self.product(left).times(self.product(right))
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                below = self.product(right)
                powers = self.divides and not any(factor.log for factor in below.factors)
                if below.coefficient and (powers or not below.factors):
                    inverse = (replace(factor, exponent=-factor.exponent) for factor in below.factors)
                    return self.product(left).times(Term(1.0 / below.coefficient, tuple(inverse)))
            case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
                return self._power(base, self._fraction(exponent))
            case ast.Name() | ast.Call():
                return self._power(node, Fraction(1))
        raise self._error(f"{ast.unparse(node)!r} is not understood")

    def _finite(self, number: int | float) -> float:
        try:
            return float(number)
        except OverflowError:
            raise self._error("a number is too large") from None

    def _power(self, base: ast.expr, exponent: Fraction) -> Term:
        match base:
            case ast.Name(id=name) if name in self.parameters:
                return Term(1.0, (Factor(name, exponent),))
            case ast.Call(func=ast.Name(id="log2"), args=[ast.Name(id=name)], keywords=[]) if name in self.parameters:
                if exponent.denominator == 1 and exponent > 0:
                    return Term(1.0, (Factor(name, log=int(exponent)),))
                raise self._error(f"powers of log2({name}) are whole numbers from 1")
        raise self._error(f"{ast.unparse(base)!r} is no parameter and no log2 of one")

    def _fraction(self, node: ast.expr) -> Fraction:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                if math.isfinite(self._finite(number)):
                    return Fraction(str(number)).limit_denominator(100)
            case ast.BinOp(left=ast.Constant(value=int() as top), op=ast.Div(), right=ast.Constant(value=int() as low)):
                if low:
                    return Fraction(top, low)
            case ast.Call(func=ast.Name(id="log2"), args=[ast.Constant(value=int() as calls)], keywords=[]):
                if 2 <= calls <= _MOST_CALLS:
                    return recursion(calls)
            case ast.BinOp(left=ast.Call() as left, op=ast.Add() | ast.Sub() as sign, right=ast.Constant() as beside):
                whole = self._fraction(beside)
                return self._fraction(left) + (whole if isinstance(sign, ast.Add) else -whole)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._fraction(operand)
        raise self._error(f"{ast.unparse(node)!r} is no exponent; write 2, 1.5 or (3/2)")
