"""How a loop or a message grows: a coefficient times powers and logarithms of p and n, rounded to a whole number."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from fractions import Fraction

from ..errors import ModelingError
from ..pmnf.model import Factor, Model, Term

PARAMETERS = ("p", "n")
_EXAMPLE = "write a product such as 0.5*n^(3/2)*log2(p)^2, of numbers, p, n, log2(p) and log2(n)"


def parse_growth(text: str) -> Term:
    """Return a product of numbers, powers of p and n, and powers of their logarithms, as a term.

    `^` and `**` are powers, exponents are numbers or fractions in parentheses. Raises ModelingError that quotes the
    text for anything else.
    """
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval")
    except SyntaxError as error:
        raise ModelingError(f"growth {text!r}: {error.msg}; {_EXAMPLE}") from None
    term = _product(tree.body, text)
    if not math.isfinite(term.coefficient) or term.coefficient <= 0:
        raise ModelingError(f"growth {text!r}: the coefficient must be above 0")
    return Term(term.coefficient, term.shape)


def _product(node: ast.expr, text: str) -> Term:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return Term(float(number), ())
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _product(left, text).times(_product(right, text))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            below = _product(right, text)
            if not below.factors and below.coefficient:
                return _product(left, text).scaled(1.0 / below.coefficient)
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            return _power(base, _fraction(exponent, text), text)
        case ast.Name() | ast.Call():
            return _power(node, Fraction(1), text)
    raise ModelingError(f"growth {text!r}: {ast.unparse(node)!r} is not understood; {_EXAMPLE}")


def _power(base: ast.expr, exponent: Fraction, text: str) -> Term:
    match base:
        case ast.Name(id=name) if name in PARAMETERS:
            return Term(1.0, (Factor(name, exponent),))
        case ast.Call(func=ast.Name(id="log2"), args=[ast.Name(id=name)], keywords=[]) if name in PARAMETERS:
            if exponent.denominator == 1 and exponent > 0:
                return Term(1.0, (Factor(name, log=int(exponent)),))
            raise ModelingError(f"growth {text!r}: powers of log2({name}) are whole numbers from 1")
    raise ModelingError(f"growth {text!r}: only p, n, log2(p) and log2(n) have powers; {_EXAMPLE}")


def _fraction(node: ast.expr, text: str) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return Fraction(str(number)).limit_denominator(100)
        case ast.BinOp(left=ast.Constant(value=int() as top), op=ast.Div(), right=ast.Constant(value=int() as bottom)):
            if bottom:
                return Fraction(top, bottom)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_fraction(operand, text)
    raise ModelingError(f"growth {text!r}: {ast.unparse(node)!r} is no exponent; write 2, 1.5 or (3/2)")


def exact_value(term: Term, point: Mapping[str, float]) -> float:
    """Return the value of a term, computed in the order in which generated programs compute it."""
    value = term.coefficient
    for factor in term.shape:
        if factor.exponent:
            value *= math.pow(point[factor.parameter], float(factor.exponent))
        for _ in range(factor.log):
            value *= math.log2(point[factor.parameter])
    return value


def size(term: Term, point: Mapping[str, float]) -> int:
    """Return the size of a loop or message: the nearest whole number, at least 1."""
    return max(1, math.floor(exact_value(term, point) + 0.5))


def formula(term: Term) -> str:
    """Return the size as a Python expression that needs `floor` and `log2`."""
    return f"max(1, floor({_python(term)} + 0.5))"


def text(term: Term) -> str:
    """Return a term as `parse_growth` reads it."""
    whole = not term.factors and term.coefficient.is_integer()
    return f"{term.coefficient:.0f}" if whole else _python(term).replace("**", "^")


def _python(term: Term) -> str:
    return Model(PARAMETERS, 0.0, (term,)).python if term.factors else repr(term.coefficient)


def as_cpp(term: Term) -> str:
    """Return the size as a C++ expression of a run."""
    product = [repr(term.coefficient)]
    for factor in term.shape:
        name = f"run.{factor.parameter}"
        if factor.exponent == 1:
            product.append(name)
        elif factor.exponent:
            exponent = factor.exponent
            over = f" / {exponent.denominator}.0" if exponent.denominator > 1 else ""
            product.append(f"std::pow({name}, {exponent.numerator}.0{over})")
        product.extend([f"std::log2({name})"] * factor.log)
    return f"rounded({' * '.join(product)})"
