# SPDX-License-Identifier: Apache-2.0
"""Counts that follow others: what depends on data is often exact for each execution of something around it.

Iterations to a tolerance, probes of a hash table, cells that are refined: how often they happen follows no law of the
sizes. But an iteration does the same work each time, and a caller visits what it calls as often as its data say. So
counts without an exact law are sought as a multiple of other counts, and as a sum of terms, some of which are times
other counts. Where runs of one configuration differ, a sum must reproduce every single run. The law has the error of
the others.
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
from .sums import Column, sum_laws

EACH = 6.0  # bits of a count that follows another
_AROUND = 6  # others that are tried
_TERMS = 60  # terms of sizes and ranks that sums are made of, the cheapest ones
_FACTORS = 12  # the same for those that are times another count


class Grid(Protocol):
    """One process grid and what it says of the vectors of a program. laws: by vector; columns: terms of sums."""

    laws: dict[bytes, Laws]
    columns: list[Column]


class Exact(Protocol):
    """Returns the laws that reproduce all counts (configurations,) with this greatest common divisor; None without."""

    def __call__(self, counts: Floats, unit: float) -> Laws | None:
        """Return the laws."""


def follow(
    distinct: Mapping[bytes, Floats],
    runs: Mapping[bytes, Floats],
    around: Mapping[bytes, Iterable[bytes]],
    grid: Grid,
    exact: Exact,
    dear: float,
) -> None:
    """Explain what has no exact law by the counts around it, in `grid.laws`.

    distinct: vectors (configurations,) by key; runs: of those whose single runs are known (configurations,
    repetitions), NaN where there are fewer; around: by key others that it may follow; dear: bits of exact laws that
    compete with these.
    """
    for key, others in around.items():
        law, counts = grid.laws[key], distinct[key]
        if law.exact and law.bits < dear:
            continue
        # Others are fewer, so that no two counts follow each other.
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
    """Return the laws of what each execution of another count does, times that count."""

    def predict(place: Place) -> Distribution:
        return grid.laws[other].at(place).times(each.predict(place))

    def cases() -> list[Case]:
        return [times(one, another) for one in each.each() for another in grid.laws[other].each()]

    terms = ((1.0, f"({each.text})·({grid.laws[other].text})"),)
    return Laws(each.bits + more, terms, False, predict, grid.laws[other].noise, cases)


def _sum(
    key: bytes, others: Sequence[bytes], distinct: Mapping[bytes, Floats], runs: Mapping[bytes, Floats], grid: Grid
) -> Laws | None:
    """Return sums of terms, some of them times others, that reproduce every run; None if there are none."""
    counts, at, beside = _rows(key, others, distinct, runs)
    own = [replace(column, values=column.values[at]) for column in grid.columns[:_TERMS]]
    more = EACH + math.log2(max(len(beside), 1))
    for other, values in beside.items():
        own += [_times_other(column, other, values, grid, more) for column in own[:_FACTORS]]
    found = sum_laws(counts, own, exact_only=True)
    if found is None:
        return None
    noise = max(grid.laws[other].noise for other in beside)
    return Laws(found.bits, found.terms, False, found.predict, noise, found.cases)


def _rows(
    key: bytes, others: Sequence[bytes], distinct: Mapping[bytes, Floats], runs: Mapping[bytes, Floats]
) -> tuple[Floats, NDArray[np.int64], dict[bytes, Floats]]:
    """Return counts (rows,), the configurations of these (rows,), and other counts there, each (rows,).

    Rows are single runs where those of a configuration differ, and else means.
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
    if not table.size:  # no run has all of them
        return means
    return table[1], table[0].astype(np.int64), dict(zip(known, table[2:], strict=True))


def _times_other(column: Column, other: bytes, values: Floats, grid: Grid, more: float) -> Column:
    def predict(place: Place) -> Distribution:
        return grid.laws[other].at(place).times(column.predict(place))

    def cases() -> list[Case]:
        return [times(one, another) for one in column.cases() for another in grid.laws[other].each()]

    name = f"({grid.laws[other].text})" if column.name == "1" else f"{column.name}·({grid.laws[other].text})"
    return Column(name, column.bits + more, column.values * values, predict, cases)
