# SPDX-License-Identifier: Apache-2.0
"""Choose random functions; the same seed gives the same functions."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, prod

from ..errors import ModelingError
from ..pmnf.hypotheses.library import EXPONENTS, LOGARITHMS
from ..pmnf.model import Factor, Term
from .functions import ONCE, Arrangement, Communication, Computation, Function, Operation, Step
from .growth import exact_value

# Smallest sizes of loops and messages; rounding would change the growth of smaller ones.
_LEAST_LOOP, _LEAST_MESSAGE = 1000.0, 200.0
# Least size of a nested loop (smaller than other loops, because only the product is rounded), and largest depth.
_LEAST_NESTED, _MOST_LOOPS = 8.0, 3
# Steps at the smallest point, if the growth permits it.
_TYPICAL = 2e4
_TRIES = 10_000


@dataclass(frozen=True)
class Choices:
    """The sets to choose from: powers and logarithms of F (equation 3 of the paper), operations, arrangements, steps.

    smallest, largest: the planned range of runs. Coefficients are chosen so that at the largest point no function does
    more than `most_steps` steps, or has more than `most_elements` elements of messages on one rank, and that rounding
    is small at the smallest point. Complexities for which this is impossible are not chosen.
    """

    smallest: Mapping[str, float] = field(default_factory=lambda: {"p": 128.0, "n": 8000.0})
    largest: Mapping[str, float] = field(default_factory=lambda: {"p": 4096.0, "n": 48000.0})
    exponents: Sequence[Fraction] = EXPONENTS
    logarithms: Sequence[int] = LOGARITHMS
    operations: Sequence[Operation] = tuple(operation for operation in Operation if operation is not Operation.NONE)
    arrangements: Sequence[Arrangement] = tuple(Arrangement)
    most_steps: float = 3e8
    most_elements: float = 65536.0


def choose_functions(count: int, seed: int, choices: Choices | None = None) -> list[Function]:
    """Return `count` functions with the names f000, f001, … Raises ModelingError if no function is possible."""
    chosen = choices or Choices()
    source = random.Random(seed)
    width = max(3, len(str(count - 1)))
    result = []
    for number in range(count):
        operation = chosen.operations[number % len(chosen.operations)]
        result.append(
            Function(f"f{number:0{width}}", _computation(source, chosen), _communication(source, chosen, operation))
        )
    return result


def too_steep(choices: Choices) -> list[Fraction]:
    """Return the impossible exponents: x^i grows by more than the allowed ratio of steps between the points."""
    room = choices.most_steps / _LEAST_LOOP
    terms = {i: [Term(1.0, (Factor(parameter, i),)) for parameter in choices.smallest] for i in choices.exponents if i}
    return [i for i, powers in terms.items() if min(_ratio(power, choices) for power in powers) > room]


def _element(source: random.Random, choices: Choices, parameter: str) -> Term:
    """Return x^i or log2^j(x), an element of F other than 1 if possible."""
    powers = [Term(1.0, (Factor(parameter, exponent),)) for exponent in choices.exponents if exponent]
    logs = [Term(1.0, (Factor(parameter, log=log),)) for log in choices.logarithms if log]
    kinds = [kind for kind in (powers, powers, logs) if kind]
    return source.choice(source.choice(kinds)) if kinds else ONCE


def _ratio(term: Term, choices: Choices) -> float:
    """Return the growth of a term from the smallest to the largest point; infinite on overflow."""
    try:
        ratio = exact_value(term, choices.largest) / exact_value(term, choices.smallest)
    except (OverflowError, ZeroDivisionError):
        return inf
    return ratio or inf


def _computation(source: random.Random, choices: Choices) -> Computation:
    """Return loops over elements of F, with at most one power and one power of the logarithm of each parameter.

    Their products and sums are in the normal form, so that a modeler can find them.
    """
    for _ in range(_TRIES):
        arrangement = source.choice(list(choices.arrangements))
        step = source.choice(list(Step))
        loops: list[Term] = []
        for parameter in source.choice([["n"], ["p"], ["n", "p"], ["n", "p"], ["p", "n"]]):
            loops.append(_element(source, choices, parameter))
            other = _element(source, choices, parameter)
            if source.random() < 0.25 and bool(other.factors) and _is_log(other) != _is_log(loops[-1]):
                loops.append(other)
        if len(loops) > _MOST_LOOPS:
            continue
        nested = arrangement is Arrangement.NESTED
        ratios = [_ratio(loop, choices) for loop in loops]
        growth = prod(ratios) if nested else max(ratios)
        steps = min(choices.most_steps, max(_TYPICAL * growth, choices.most_steps / 100))
        least = _LEAST_NESTED ** (len(loops) - 1) * _LEAST_LOOP if nested else _LEAST_LOOP * len(loops)
        if steps < growth * least:
            continue
        # At the smallest point, nested loops have equal sizes, and sequential loops have equal work.
        start = (steps / growth) ** (1.0 / len(loops)) if nested else steps / growth / len(loops)
        sized = [loop.scaled(_rounded(start / exact_value(loop, choices.smallest))) for loop in loops]
        return Computation(tuple(sized), arrangement, step)
    raise ModelingError("no computation fits: allow more steps, smaller exponents, or a smaller range of points")


def _is_log(term: Term) -> bool:
    return any(factor.log for factor in term.factors)


def _communication(source: random.Random, choices: Choices, operation: Operation) -> Communication:
    if not operation.moves_data:
        calls = replace(ONCE, coefficient=float(source.choice([1, 2, 4]))) if operation is Operation.BARRIER else ONCE
        return Communication(operation, calls=calls)
    if operation.to_all:
        # A message for every rank has few elements; they are whole numbers if n is a multiple of its smallest value.
        room = choices.most_elements / choices.largest["p"]
        sizes = [Term(float(number), ()) for number in (4, 8, 16) if number <= room] or [ONCE]
        first, last = choices.smallest["n"], choices.largest["n"]
        for number in (1.0, 2.0):
            if number * last / first <= room:
                sizes.append(Term(number / first, (Factor("n", Fraction(1)),)))
        return Communication(operation, source.choice(sizes))
    for _ in range(_TRIES):
        elements = ONCE
        for parameter in source.choice([["n"], ["n"], ["p"], ["n", "p"], []]):
            elements = elements.times(_element(source, choices, parameter))
        ratio = _ratio(elements, choices)
        if ratio * _LEAST_MESSAGE > choices.most_elements:
            continue
        start = min(choices.most_elements / ratio, source.choice([1.0, 4.0, 16.0]) * _LEAST_MESSAGE)
        sized = elements.scaled(_rounded(start / exact_value(elements, choices.smallest)))
        return Communication(operation, Term(sized.coefficient, sized.shape))
    raise ModelingError(f"no message size fits {operation.value}: allow more elements or smaller exponents")


def _rounded(coefficient: float) -> float:
    """Return a coefficient rounded to three digits."""
    return float(f"{coefficient:.3g}")
