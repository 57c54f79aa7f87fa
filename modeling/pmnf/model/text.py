# SPDX-License-Identifier: Apache-2.0
"""Convert models to text, to Python expressions and to LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from .recursions import recursion_text
from .steps import Steps
from .term import Blocks, Factor, Function, Term, sort_key

_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def plain(constant: float, terms: Sequence[Term]) -> str:
    """Return the model as text, with numbers to four digits: "3.1e-08·n³ + 2.1·n·log2(n) + 7"."""
    return _sum(constant, [_in_blocks(term, _plain_product) for term in _ordered(terms)], _number, "·")


def python(constant: float, terms: Sequence[Term]) -> str:
    """Return the model as a Python expression with all digits.

    The expression uses log2, ceil and floor (of the module math), and the parameters as variables. Extents of process
    grids are variables, too: px, py, pz for the parameter p. A condition, (px>1), counts as 1 or 0.
    """
    products = [_in_blocks(term, _python_product) for term in _ordered(terms)]
    return _sum(constant, products, repr, "*")


def latex(constant: float, terms: Sequence[Term]) -> str:
    """Return the model as LaTeX mathematics, without the dollar signs."""
    products = [_in_blocks(term, _latex_product) for term in _ordered(terms)]
    return _sum(constant, products, _latex_number, r" \, ")


def _ordered(terms: Sequence[Term]) -> list[Term]:
    return sorted(terms, key=sort_key, reverse=True)


def _sum(constant: float, products: Sequence[tuple[float, str]], number: Callable[[float], str], times: str) -> str:
    parts: list[tuple[bool, str]] = []
    for coefficient, product in products:
        size = number(abs(coefficient))
        if product.startswith("1/"):
            parts.append((coefficient < 0, f"{size}{product[1:]}"))
        elif not product:
            parts.append((coefficient < 0, size))
        else:
            parts.append((coefficient < 0, product if abs(coefficient) == 1.0 else f"{size}{times}{product}"))
    if constant != 0.0 or not parts:
        parts.append((constant < 0, number(abs(constant))))
    negative, first = parts[0]
    text = f"-{first}" if negative else first
    for negative, part in parts[1:]:
        text += f" - {part}" if negative else f" + {part}"
    return text


def _number(value: float) -> str:
    if value == round(value) and value < 1e6:
        return f"{value:.0f}"
    return f"{value:.4g}"


def _latex_number(value: float) -> str:
    text = _number(value)
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


def _plain_power(name: str, exponent: Fraction) -> str:
    if exponent == 1:
        return name
    if exponent.denominator == 1:
        return name + str(exponent.numerator).translate(_SUPERSCRIPT)
    if power := recursion_text(exponent):
        return f"{name}^{power}" if power.endswith(")") else f"{name}^({power})"
    return f"{name}^({exponent})"


def _plain_steps(factor: Factor, steps: Steps) -> list[str]:
    number = steps.text(factor.name)
    parts = [number if factor.exponent == 1 else f"({factor.exponent}·{number})"] if factor.exponent else []
    parts = [f"{steps.base}^{part}" for part in parts]
    return [*parts, _plain_power(number, Fraction(factor.log))] if factor.log else parts


def _in_blocks(term: Term, product: Callable[[Term, Sequence[Blocks]], str]) -> tuple[float, str]:
    """Return the coefficient of a term, and the text of its product with numbers of blocks (`Term.in_blocks`)."""
    rest, blocks = term.in_blocks
    return rest.coefficient, product(rest, blocks)


def _plain_blocks(blocks: Blocks) -> str:
    below = Term(1.0, (Factor(str(blocks.size), Fraction(-1)), *blocks.product))
    number = f"⌈{_plain_product(below, ())}⌉"
    return _plain_power(number, Fraction(blocks.power)) if blocks.power != 1 else number


def _plain_function(function: Function) -> str:
    inside = plain(0.0, function.argument)
    numbers = [f"{number:g}" for number in function.numbers]
    match function.kind:
        case "ceil":
            return f"⌈{inside}⌉"
        case "floor":
            return f"⌊{inside}⌋"
        case "above":
            return f"[{inside}>{numbers[0]}]"
        case "below":
            return f"[{inside}<{numbers[0]}]"
        case "positive":
            return f"max({inside}, 0)"
        case "power":
            return f"({inside})^({Fraction(function.numbers[0]).limit_denominator(99)})"
        case "log2":
            return f"log2({inside})"
    first, shift, power = numbers
    each = "m" if shift == "0" else f"(m{'' if shift[0] == '-' else '+'}{shift})"
    return f"Σ(m={first}..{inside}: {each}{'' if power == '1' else _plain_power('', Fraction(power))})"


def _plain_product(term: Term, blocks: Sequence[Blocks]) -> str:
    above: list[str] = []
    below: list[str] = []
    for factor in term.factors:
        if factor.function is not None:
            (above if factor.exponent > 0 else below).append(
                _plain_power(_plain_function(factor.function), abs(factor.exponent))
            )
            continue
        if factor.steps is not None:
            above.extend(_plain_steps(factor, factor.steps))
            continue
        others = factor.shares == 1 and bool(factor.exponent)  # x²·(x-1)/x is x·(x-1)
        exponent = factor.exponent - others
        if others:
            above.append(f"({factor.name}-1)")
        if exponent > 0:
            above.append(_plain_power(factor.name, exponent))
        elif exponent < 0:
            below.append(_plain_power(factor.name, -exponent))
        if factor.log:
            log = f"log2({factor.name})"
            above.append(log if factor.log == 1 else log + str(factor.log).translate(_SUPERSCRIPT))
        if not others:
            above.extend([f"({factor.name}-1)/{factor.name}"] * factor.shares)
        if factor.several:
            above.append(f"[{factor.name}>1]")
    for own in blocks:
        (above if own.power > 0 else below).append(_plain_blocks(replace(own, power=abs(own.power))))
    product = "·".join(above) or ("1" if below else "")
    if not below:
        return product
    return f"{product}/{below[0]}" if len(below) == 1 else f"{product}/({'·'.join(below)})"


def _python_steps(factor: Factor, steps: Steps) -> str:
    bits = f"/{steps.bits}" if steps.bits > 1 else ""
    number = f"max({'floor' if steps.down else 'ceil'}(log2({steps.quotient(factor.name)}){bits}), 0)"
    if steps.itself:
        number = factor.name
    power = number if factor.exponent == 1 else f"(({factor.exponent})*{number})"
    parts = [f"{steps.base}**{power}"] if factor.exponent else []
    if factor.log:
        parts.append(number + (f"**{factor.log}" if factor.log > 1 else ""))
    return "*".join(parts)


def _python_product(term: Term, blocks: Sequence[Blocks]) -> str:
    return "*".join([*map(_python_factor, term.factors), *map(_python_blocks, blocks)])


def _python_blocks(blocks: Blocks) -> str:
    number = f"ceil({_python_product(Term(1.0, blocks.product), ())}/{blocks.size})"
    return number if blocks.power == 1 else f"{number}**{f'({blocks.power})' if blocks.power < 0 else blocks.power}"


def _python_function(function: Function) -> str:
    inside = python(0.0, function.argument)
    match function.kind:
        case "ceil" | "floor" | "log2":
            return f"{function.kind}({inside})"
        case "above":
            return f"(({inside})>{function.numbers[0]!r})"
        case "below":
            return f"(({inside})<{function.numbers[0]!r})"
        case "positive":
            return f"max({inside}, 0)"
        case "power":
            return f"({inside})**{function.numbers[0]!r}"
    first, shift, power = function.numbers
    number = f"floor(log2(({inside})/{first!r})) + 1"
    return f"sum(max(({inside})/2**k + {shift!r}, 0)**{power!r} for k in range({number}))"


def _python_factor(factor: Factor) -> str:
    if factor.function is not None:
        own = _python_function(factor.function)
        return own if factor.exponent == 1 else f"({own})**({factor.exponent})"
    if factor.steps is not None:
        return _python_steps(factor, factor.steps)
    name = factor.name
    parts: list[str] = []
    if factor.exponent == 1:
        parts.append(name)
    elif power := recursion_text(factor.exponent):
        parts.append(f"{name}**{power}" if power.endswith(")") else f"{name}**({power})")
    elif factor.exponent:
        exponent = str(factor.exponent)
        parts.append(
            f"{name}**({exponent})" if factor.exponent.denominator > 1 or factor.exponent < 0 else f"{name}**{exponent}"
        )
    if factor.log:
        parts.append(f"log2({name})" + (f"**{factor.log}" if factor.log > 1 else ""))
    parts.extend([f"(({name}-1)/{name})"] * factor.shares)
    parts.extend([f"({name}>1)"] * factor.several)
    return "*".join(parts)


def _latex_steps(factor: Factor, steps: Steps, name: str) -> list[str]:
    side = "floor" if steps.down else "ceil"
    number = name if steps.itself else rf"\l{side} \log_{{{steps.base}}}({steps.quotient(name)}) \r{side}"
    parts = []
    if factor.exponent:
        power = number if factor.exponent == 1 else rf"{factor.exponent} {number}"
        parts.append(rf"{steps.base}^{{{power}}}")
    if factor.log:
        parts.append(rf"{number}^{{{factor.log}}}" if factor.log > 1 else number)
    return parts


def _latex_product(term: Term, blocks: Sequence[Blocks]) -> str:
    return r" \, ".join([*map(_latex_factor, term.factors), *map(_latex_blocks, blocks)])


def _latex_blocks(blocks: Blocks) -> str:
    below = rf"\frac{{{_latex_product(Term(1.0, blocks.product), ())}}}{{{blocks.size}}}"
    number = rf"\left\lceil {below} \right\rceil"
    return number if blocks.power == 1 else f"{number}^{{{blocks.power}}}"


def _latex_function(function: Function) -> str:
    inside = latex(0.0, function.argument)
    numbers = [_latex_number(float(number)) for number in function.numbers]
    match function.kind:
        case "ceil" | "floor":
            return rf"\left\l{function.kind} {inside} \right\r{function.kind}"
        case "above":
            return f"[{inside} > {numbers[0]}]"
        case "below":
            return f"[{inside} < {numbers[0]}]"
        case "positive":
            return rf"\max({inside}, 0)"
        case "power":
            return rf"\left({inside}\right)^{{{numbers[0]}}}"
        case "log2":
            return rf"\log_2\left({inside}\right)"
    first, shift, power = numbers
    sizes = rf"{first}, 2 \cdot {first}, \dots, {inside}"
    return rf"\sum_{{m \in \{{{sizes}\}}}} (m + {shift})^{{{power}}}"


def _latex_factor(factor: Factor) -> str:
    if factor.function is not None:
        own = _latex_function(factor.function)
        return own if factor.exponent == 1 else rf"\left({own}\right)^{{{factor.exponent}}}"
    escaped = factor.name.replace("_", r"\_")
    name = escaped if len(escaped) == 1 else rf"\mathrm{{{escaped}}}"
    if factor.steps is not None:
        return r" \, ".join(_latex_steps(factor, factor.steps, name))
    parts: list[str] = []
    if factor.exponent == 1:
        parts.append(name)
    elif power := recursion_text(factor.exponent):
        parts.append(f"{name}^{{{power}}}".replace("log2", r"\log_2"))
    elif factor.exponent:
        exponent = factor.exponent
        sign = "-" if exponent < 0 else ""
        top, bottom = abs(exponent.numerator), exponent.denominator
        parts.append(f"{name}^{{{sign}{top}}}" if bottom == 1 else rf"{name}^{{{sign}\frac{{{top}}}{{{bottom}}}}}")
    if factor.log:
        parts.append((rf"\log_2^{{{factor.log}}}" if factor.log > 1 else r"\log_2") + f"({name})")
    parts.extend([rf"\frac{{{name}-1}}{{{name}}}"] * factor.shares)
    parts.extend([f"[{name} > 1]"] * factor.several)
    return r" \, ".join(parts)
