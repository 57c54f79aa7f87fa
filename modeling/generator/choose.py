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

# Smallest sizes of loops (steps) and messages (elements) in the smallest run. Rounding to whole numbers would change
# the growth of smaller sizes.
_LEAST_LOOP, _LEAST_MESSAGE = 1000.0, 200.0
# Smallest size of a loop in nested loops (less than _LEAST_LOOP, because only the product is rounded), and largest
# number of loops.
_LEAST_NESTED, _MOST_LOOPS = 8.0, 3
# Number of steps at the smallest point, unless the growth requires fewer.
_TYPICAL = 2e4
# Number of random attempts to find a possible function.
_TRIES = 10_000


@dataclass(frozen=True)
class Choices:
    """The sets from which functions are chosen, and limits.

    exponents, logarithms: i and j of x^i and log2^j(x), the set F in equation (3) of de Morais et al., Denoising
    Application Performance Models with Noise-Resilient Priors. smallest, largest: p and n of the smallest and largest
    planned run. most_steps: largest number of steps of a function on one rank in the largest run. most_elements:
    largest number of elements in the messages of a call on one rank there. Coefficients are chosen within these limits,
    and so that rounding is small in the smallest run. Complexities for which this is impossible are not chosen.
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
    """Return `count` random functions with the names f000, f001, … Raises ModelingError if none is possible."""
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
    """Return the exponents i that cannot be chosen, because x^i grows too much from the smallest to the largest run."""
    room = choices.most_steps / _LEAST_LOOP
    terms = {i: [Term(1.0, (Factor(parameter, i),)) for parameter in choices.smallest] for i in choices.exponents if i}
    return [i for i, powers in terms.items() if min(_ratio(power, choices) for power in powers) > room]


def _element(source: random.Random, choices: Choices, parameter: str) -> Term:
    """Return a random x^i or log2^j(x) of the parameter x; 1 if the choices contain nothing else."""
    powers = [Term(1.0, (Factor(parameter, exponent),)) for exponent in choices.exponents if exponent]
    logs = [Term(1.0, (Factor(parameter, log=log),)) for log in choices.logarithms if log]
    kinds = [kind for kind in (powers, powers, logs) if kind]
    return source.choice(source.choice(kinds)) if kinds else ONCE


def _ratio(term: Term, choices: Choices) -> float:
    """Return the ratio of a term in the largest run to that in the smallest run; infinite on overflow."""
    try:
        ratio = exact_value(term, choices.largest) / exact_value(term, choices.smallest)
    except (OverflowError, ZeroDivisionError):
        return inf
    return ratio or inf


def _computation(source: random.Random, choices: Choices) -> Computation:
    """Return random loops whose sizes contain at most one power and one power of the logarithm of each parameter.

    Products and sums of such sizes have the normal form of models, so a modeler can find them.
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
        # A rank sends p messages, so each has few elements. Sizes that are a multiple of n/(smallest n) are whole
        # numbers if all n are multiples of the smallest n, so they are not rounded.
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
    """Return a coefficient rounded to three significant digits."""
    return float(f"{coefficient:.3g}")
