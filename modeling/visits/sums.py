# SPDX-License-Identifier: Apache-2.0
"""List the sums to try for counts f + g·v: some terms are functions of the parameters, others are multiplied by v."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from ..pmnf.calibration import (
    VISITS_LEAST_FREE,
    VISITS_MOST_POWER,
    VISITS_MOST_TERMS,
    VISITS_RICHER_FREE,
    VISITS_TERMS,
)
from ..pmnf.hypotheses.library import make_term
from ..pmnf.model import Factor, Term

_Index = NDArray[np.int64]


@lru_cache(maxsize=64)
def terms_of_visits(parameters: tuple[str, ...], varying: tuple[bool, ...]) -> tuple[Term, ...]:
    """Return terms of counts of loops: 1, powers of one parameter, products and quotients of two parameters."""
    names = [name for name, varies in zip(parameters, varying, strict=True) if varies]
    shapes: list[dict[str, int]] = [{}, *({name: k} for name in names for k in range(1, VISITS_MOST_POWER + 1))]
    for one, other in combinations(names, 2):
        shapes += [{one: 1, other: 1}, *({a: k, b: -1} for a, b in ((one, other), (other, one)) for k in (1, 2))]
    return tuple(Term(1.0, tuple(Factor(name, Fraction(k)) for name, k in shape.items())) for shape in shapes)


def complexity(term: Term) -> float:
    """Return the complexity of a term."""
    return sum(make_term(*factor.exponents).cost for factor in term.factors)


@lru_cache(maxsize=64)
def searches(parameters: tuple[str, ...], sizes: tuple[int, ...]) -> list[tuple[list[int], _Index]]:
    """Return the sums to try, short sums first: indices of the parameters, and numbers of the terms (S, size).

    If several parameters vary, longer sums contain only one of them. With two varying parameters, two kinds of longer
    sums contain both: sums of VISITS_MOST_TERMS terms, and pairs of functions that occur both alone and times v.
    sizes: number of values of each parameter.
    """
    every = [place for place, size in enumerate(sizes) if size > 1]
    terms, most = terms_of_visits(parameters, tuple(size > 1 for size in sizes)), VISITS_TERMS.get(len(every), 1)
    found = [(every, _subsets(len(terms), size)) for size in range(1, most + 1)]
    for size in range(most + 1, VISITS_TERMS[1] + 1) if len(every) > 1 else ():
        for place in every:
            alone = [
                row for row, term in enumerate(terms) if {own.parameter for own in term.factors} <= {parameters[place]}
            ]
            rows = np.array([*alone, *(len(terms) + row for row in alone)])
            subsets = _subsets(len(alone), size)
            found.append(([place], rows[subsets[_have_enough_sizes(subsets, len(alone), sizes[place])]]))
    if len(every) == 2:
        pairs = np.array(list(combinations(range(len(terms)), 2)))
        found += [(every, _subsets(len(terms), VISITS_MOST_TERMS)), (every, np.hstack([pairs, len(terms) + pairs]))]
    return [(places, subsets) for places, subsets in found if len(subsets)]


def have_enough_runs(parameters: int, size: int, visits: FloatArray, counts: FloatArray) -> NDArray[np.bool_]:
    """Return which counts (N, R) have enough different values for sums of `size` terms of `parameters`, shape (N,).

    Among many long sums, some reproduce small counts, or counts of one parameter, by coincidence. Long sums of two
    parameters therefore need VISITS_RICHER_FREE more different pairs of visits and counts. visits: (R,).
    """
    if parameters != 2 or size <= VISITS_TERMS[2]:
        return np.ones(len(counts), dtype=bool)
    different = [len(np.unique(np.stack([visits, own]), axis=1).T) for own in counts]
    return np.array(different, dtype=np.int64) >= size + VISITS_RICHER_FREE


def _have_enough_sizes(subsets: _Index, terms: int, sizes: int) -> NDArray[np.bool_]:
    """Return which sets (S, size) of terms `sizes` values of a parameter determine.

    The terms with v and the terms without v are each a function of the parameter. Each needs enough values, regardless
    of the number of different visits at one value.
    """
    visited = np.count_nonzero(subsets >= terms, axis=1)
    return np.asarray(np.maximum(visited, subsets.shape[1] - visited) + VISITS_LEAST_FREE <= sizes, dtype=bool)


@lru_cache(maxsize=64)
def _subsets(terms: int, size: int) -> _Index:
    """Return sets (S, size) of numbers of terms; numbers from `terms` on are terms times v, at least one per set."""
    found = [own for own in combinations(range(2 * terms), size) if own[-1] >= terms]
    return np.array(found, dtype=np.int64)
