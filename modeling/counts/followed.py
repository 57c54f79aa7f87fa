# SPDX-License-Identifier: Apache-2.0
"""Explain counts by other counts, such as the work of a solver by its number of iterations.

The number of iterations to a tolerance, of probes of a hash table, or of refined cells has no exact law. The work per
iteration, probe or cell often has one. For a count without an exact law, two forms are therefore tried:

- an exact law times another count,
- a sum of terms, some of them multiplied by another count. If the runs of one configuration differ, the sum must
  reproduce every single run.

The resulting law has the error of the law of the other count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .distribution import Distribution
from .factors import Floats
from .laws import Case, Laws, Place, times
from .polynomials import Polynomials
from .sums import Column, sum_laws

EACH = 6.0  # penalty for the use of another count (bits)
_AROUND = 6  # largest number of other counts that are tried
_TERMS = 60  # number of terms of sizes and ranks in sums; those with the fewest bits are used
_FACTORS = 12  # number of these terms that are also multiplied by another count


class Grid(Protocol):
    """One process grid, and the laws of the vectors of a program under this grid.

    laws: the laws by the key of the vector. columns: possible terms of sums. polynomials: possible polynomials.
    """

    laws: dict[bytes, Laws]
    columns: list[Column]
    polynomials: Polynomials


class Exact(Protocol):
    """A function that finds exact laws."""

    def __call__(self, counts: Floats, unit: float) -> Laws | None:
        """Return the laws that reproduce all counts; None if there are none.

        counts: shape (configurations,). unit: their greatest common divisor.
        """


def follow(
    distinct: Mapping[bytes, Floats],
    runs: Mapping[bytes, Floats],
    around: Mapping[bytes, Iterable[bytes]],
    grid: Grid,
    exact: Exact,
    dear: float,
) -> None:
    """Explain vectors by other vectors. A law with fewer bits replaces the law of the vector in `grid.laws`.

    - distinct: the vectors by key, each of shape (configurations,).
    - runs: for some vectors, by key: the value of each run, shape (configurations, repetitions); NaN if missing.
    - around: for some vectors, by key: the keys of vectors that may explain it, such as visits of callers.
    - exact: function that finds exact laws.
    - dear: a vector is left out if it has an exact law with fewer bits than this.
    """
    for key, others in around.items():
        law, counts = grid.laws[key], distinct[key]
        if law.exact and law.bits < dear:
            continue
        # Only counts with a smaller sum explain a count. Two counts therefore never explain each other.
        fewer = [k for k in others if 0 < distinct[k].sum() < counts.sum()]
        usable = [k for k in fewer if (distinct[k][counts > 0] > 0).all()][:_AROUND]
        for other in usable:
            each = np.divide(counts, distinct[other], out=np.zeros_like(counts), where=counts > 0)
            found = exact(each, 1.0)
            more = EACH + math.log2(len(usable))
            if found is not None and found.bits + more < grid.laws[key].bits:
                grid.laws[key] = _multiple(found, other, grid, more)
        open_ones = [k for k in fewer if not grid.laws[k].exact][:_AROUND]
        if open_ones and not grid.laws[key].exact:
            found = _sum(key, open_ones, distinct, runs, grid)
            if found is not None and found.bits < grid.laws[key].bits:
                grid.laws[key] = found


def _multiple(each: Laws, other: bytes, grid: Grid, more: float) -> Laws:
    """Return the laws of a count that is the count `other` times a count with the laws `each`.

    more: bits that are added for the use of the other count.
    """

    def predict(place: Place) -> Distribution:
        return grid.laws[other].at(place).times(each.predict(place))

    def cases() -> list[Case]:
        return [times(one, another) for one in each.each() for another in grid.laws[other].each()]

    terms = ((1.0, f"({each.text})·({grid.laws[other].text})"),)
    return Laws(each.bits + more, terms, False, predict, grid.laws[other].noise, cases)


def _sum(
    key: bytes, others: Sequence[bytes], distinct: Mapping[bytes, Floats], runs: Mapping[bytes, Floats], grid: Grid
) -> Laws | None:
    """Return the laws that are sums of terms, some of them times another count; None if there are none.

    The sums reproduce all counts of `_rows`. If there is no such sum, polynomials are tried.
    """
    counts, at, beside = _rows(key, others, distinct, runs)
    own = [replace(column, values=column.values[at]) for column in grid.columns[:_TERMS]]
    more = EACH + math.log2(max(len(beside), 1))
    for other, values in beside.items():
        own += [_times_other(column, other, values, grid, more) for column in own[:_FACTORS]]
    found = sum_laws(counts, own, exact_only=True)
    if found is None:
        polynomials = (_polynomial(counts, at, other, values, grid, more) for other, values in beside.items())
        return min(filter(None, polynomials), key=lambda laws: laws.bits, default=None)
    noise = max(grid.laws[other].noise for other in beside)
    return Laws(found.bits, found.terms, False, found.predict, noise, found.cases)


def _polynomial(
    counts: Floats, at: NDArray[np.int64], other: bytes, values: Floats, grid: Grid, more: float
) -> Laws | None:
    found = grid.polynomials.find_with(counts, at, values, lambda: grid.laws[other])
    return None if found is None else replace(found, bits=found.bits + more)


def _rows(
    key: bytes, others: Sequence[bytes], distinct: Mapping[bytes, Floats], runs: Mapping[bytes, Floats]
) -> tuple[Floats, NDArray[np.int64], dict[bytes, Floats]]:
    """Return the counts to reproduce, the indices of their configurations, and the other counts by key.

    Each result has the shape (rows,). The rows are the configurations, and the counts are means over runs. Exception:
    if runs of one configuration differ, the rows are the different runs. Other counts without values of single runs are
    then left out.
    """
    configurations = np.arange(len(distinct[key]))
    means = distinct[key], configurations, {other: distinct[other] for other in others}
    single, known = runs.get(key), [other for other in others if other in runs]
    if single is None or not known:
        return means
    there = np.isfinite(single)
    if not (np.where(there, single, -np.inf).max(axis=1) > np.where(there, single, np.inf).min(axis=1)).any():
        return means
    table = np.stack([np.broadcast_to(configurations[:, None], single.shape), single, *(runs[k] for k in known)])
    table = table.reshape(len(table), -1)
    table = np.unique(table[:, np.isfinite(table).all(axis=0)], axis=1)
    if not table.size:  # no run contains all counts
        return means
    return table[1], table[0].astype(np.int64), dict(zip(known, table[2:], strict=True))


def _times_other(column: Column, other: bytes, values: Floats, grid: Grid, more: float) -> Column:
    def predict(place: Place) -> Distribution:
        return grid.laws[other].at(place).times(column.predict(place))

    def cases() -> list[Case]:
        return [times(one, another) for one in column.cases() for another in grid.laws[other].each()]

    name = f"({grid.laws[other].text})" if column.name == "1" else f"{column.name}·({grid.laws[other].text})"
    return Column(name, column.bits + more, column.values * values, predict, cases)
