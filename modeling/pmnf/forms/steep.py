# SPDX-License-Identifier: Apache-2.0
"""Model counts that grow faster than the library: n⁴ to n⁸, recursions, and powers of 2ⁿ.

Lattices have four dimensions, and tensor contractions more. A function that calls itself three or seven times on half
of its size does n^log2(3) or n^log2(7) work. A parameter may be the logarithm of a size: levels of a refined grid, the
scale of a graph, the length of a transform. Such functions are accepted if they reproduce the counts exactly; for
counts that deviate, functions of 2ⁿ if their residual is much smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import FAR_BETTER, STEEP, STEEP_DOUBLINGS, STEEP_MISSED, STEEP_POWER, STEEP_RECURSION, STEEP_VALUES
from ..criterion.one_process import reproduces
from ..data.lines import lines
from ..data.preparation import ranges
from ..hypotheses.library import LOGARITHMS, Library
from ..model import Factor, Model, Term, recursion, recursion_of
from ..model.steps import BASES, Steps
from ..uncertainty.covariance import in_doublings
from .unexplained import Fit, missed, unexplained

_Flags = NDArray[np.bool_]
POWERS = Library(tuple(map(Fraction, range(STEEP_POWER + 1))), LOGARITHMS[:2])
# One kind of recursion at a time, in addition to loops.
HALVINGS = tuple(Library((*map(Fraction, range(4)), recursion(calls)), LOGARITHMS[:2]) for calls in (7, 3, 5, 6))


def by_steep(
    models: Sequence[Model | None], points: FloatArray, values: FloatArray, used: _Flags, names: Sequence[str], fit: Fit
) -> dict[int, Model]:
    """Return models of call paths whose counts `models` do not reproduce and steep functions do.

    values: (N, C) of one configuration each; used: (N, C), where a call path was measured and executed.
    """
    found: dict[int, Model] = {}
    for at, former in unexplained(models, used):
        paths = np.array(list(former))
        steepness = _steepness(points[at], values[paths][:, at])
        recursive, paths = paths[steepness > STEEP_RECURSION], paths[steepness > STEEP]
        if paths.size:
            _keep(found, paths, former, fit(points[at], paths, at, POWERS, True), reproduces)
        for exact in (True, False):
            for parameter in _logarithms(points[at]):
                paths = paths[[path not in found for path in paths.tolist()]]
                if paths.size:
                    sizes = points[at].copy()
                    sizes[:, parameter] = 2.0 ** sizes[:, parameter]
                    name, measured = names[parameter], ranges(points[at])
                    again = [_in_doublings(own, name, measured) for own in fit(sizes, paths, at, None, exact)]
                    _keep(found, paths, former, again, reproduces if exact else _on(name))
        for library in HALVINGS if (doubled := _doubled(points[at], names)) else ():
            rest = np.array([path for path in recursive.tolist() if path not in found], dtype=np.int64)
            if rest.size:
                _keep(found, rest, former, fit(points[at], rest, at, library, True), partial(_recursive, doubled))
    return found


def _keep(
    found: dict[int, Model],
    paths: NDArray[np.int64],
    former: Mapping[int, Model],
    models: Sequence[Model],
    fits: Callable[[Model], bool],
) -> None:
    """Add the models that have fewer terms than values, and much smaller residuals than the former models."""
    for path, model in zip(paths.tolist(), models, strict=True):
        before = former[path]
        free = model.quality is not None and model.quality.points > len(model.terms) + 1
        if not reproduces(model) and missed(before) <= STEEP_MISSED:
            continue
        if free and fits(model) and missed(model) < FAR_BETTER * missed(before):
            found[path] = model


def _doubled(points: FloatArray, names: Sequence[str]) -> set[str]:
    """Return the parameters with enough values, all of them powers of two times the smallest value."""
    found = set()
    for name, column in zip(names, points.T, strict=True):
        own = np.unique(column)
        if own.size < STEEP_VALUES or own[0] <= 0.0:
            continue
        doublings = np.log2(own / own[0])
        if bool((doublings == np.round(doublings)).all()):
            found.add(name)
    return found


def _recursive(doubled: set[str], model: Model) -> bool:
    """Return whether a model reproduces its counts with recursions of one of the parameters `doubled` only."""
    factors = [factor for term in model.terms for factor in term.factors]
    names = {factor.parameter for factor in factors if recursion_of(factor.exponent)}
    return len(names) == 1 and names <= doubled and reproduces(model)


def _on(name: str) -> Callable[[Model], bool]:
    """Return whether a model depends on a parameter."""
    return lambda model: model.depends_on(name)


def _steepness(points: FloatArray, values: FloatArray) -> FloatArray:
    """Return the power (N,) of a parameter by which counts (N, C) grow between its last two values, the largest one."""
    result = np.zeros(len(values))
    for parameter in range(points.shape[1]):
        for line in lines(points, parameter, least=STEEP_VALUES):
            last, before = (line[np.argsort(points[line, parameter])[-rank]] for rank in (1, 2))
            high, low = points[last, parameter], points[before, parameter]
            grows = (values[:, before] > 0) & (values[:, last] > 0) & (low > 0)
            factor = np.where(grows, values[:, last], 1.0) / np.where(grows, values[:, before], 1.0)
            if low > 0:
                result = np.maximum(result, np.log(factor) / np.log(high / low))
    return result


def _logarithms(points: FloatArray) -> list[int]:
    """Return the parameters that may be logarithms of sizes: whole numbers, most of them consecutive."""
    found = []
    for parameter, column in enumerate(points.T):
        own = np.unique(column)
        near = own.size >= STEEP_VALUES and own[-1] - own[0] <= 2 * (own.size - 1)
        if near and own[0] >= 0 and own[-1] <= STEEP_DOUBLINGS and bool(np.all(own == np.round(own))):
            found.append(parameter)
    return found


def _in_doublings(model: Model, name: str, measured: tuple[tuple[float, float], ...]) -> Model:
    """Return a model of 2ⁿ as a model of the measured parameter n."""
    terms = _terms(model.terms, name)
    covariance = in_doublings(model, name, measured[model.parameters.index(name)][1])
    others = tuple(replace(other, terms=_terms(other.terms, name)) for other in model.alternatives)
    return replace(model, terms=terms, ranges=measured, covariance=covariance, alternatives=others)


def _terms(terms: Sequence[Term], name: str) -> tuple[Term, ...]:
    return tuple(Term(term.coefficient, tuple(f for o in term.factors for f in _factors(o, name))) for term in terms)


def _factors(factor: Factor, name: str) -> tuple[Factor, ...]:
    """Return a factor (2ⁿ)^i · log2(2ⁿ)^j as a factor of n; factors of other parameters do not change."""
    if factor.parameter != name:
        return (factor,)
    if not factor.exponent:
        return (Factor(name, Fraction(factor.log)),)
    base = 2**factor.exponent.numerator if factor.exponent.denominator == 1 and factor.exponent > 0 else 0
    if base in BASES:
        return (Factor(name, Fraction(1), factor.log, steps=Steps(base, itself=True)),)
    return (Factor(name, factor.exponent, factor.log, steps=Steps(2, itself=True)),)
