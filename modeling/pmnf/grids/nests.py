# SPDX-License-Identifier: Apache-2.0
"""Model counts as sums of few loop nests over the part of a domain that a rank has.

A single coefficient is ambiguous: at 1×1, 2×1 and 2×2 the functions 4 and 3 + 2/px + 1/py - 2/(px·py) are equal. All
coefficients of powers of the size together determine the loops: 26·(n/px + 1)·(n/py + 2) is one nest with one
coefficient, which explains nine numbers at three grids. If sums of nests describe the counts of a program in fewer bits
than their coefficients do, they are the models. The grid with the shortest description is selected.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ...process_grid import MOST_DIMENSIONS, Axis, ProcessGrid
from ..model import Model
from ..proposers.grid_forms import Domain
from ..proposers.loop_nests import LoopNests
from ..proposers.nest_sums import NestSum, NestSums
from ..proposers.size_polynomials import SizePolynomials
from .calibration import FURTHER, GRID_LEAST_LUCK, GRID_OF_DOMAIN, NEST_DOUBT, NEST_MOST, NEST_MOST_SMALL
from .exact import Grids
from .models import checked, with_others
from .nest_terms import NestWriter


@dataclass(frozen=True, eq=False)
class Nested:
    """A possible process grid, and the models of call paths by sums of nests."""

    grids: Grids
    models: dict[int, Model]


def by_nests(
    grids: Grids, points: FloatArray, values: FloatArray, measured: NDArray[np.bool_], names: tuple[str, ...]
) -> Nested:
    """Return the models by loop nests of counts (N, C) at points (C, m), for call paths measured everywhere."""
    usable = [grid for grid in grids.possible if grid.parameter in names]
    varying = [place for place in range(points.shape[1]) if np.unique(points[:, place]).size > 1]
    if not usable or len(varying) != 2 or names.index(usable[0].parameter) not in varying:
        return Nested(grids, {})
    place = names.index(usable[0].parameter)
    (size,) = (own for own in varying if own != place)
    paths = np.flatnonzero(measured.all(axis=1) & (values > 0).any(axis=1))
    rows, row_of = np.unique(values[paths], axis=0, return_inverse=True)
    whole = _of_whole_lines(points[:, size], points[:, place])
    counts = _Counts.of(points[whole, size], points[whole, place], rows[:, whole])
    if counts is None:
        return Nested(grids, {})
    # by the largest counts; if unknown, also whether dimensions are periodic
    tried = [own for grid in usable if grid.dimensions <= counts.domain.dimensions for own in _with_ends(grid)]
    largest = [counts.sums(grid, counts.largest) for grid in tried]
    saved = [sum(counts.saved(row, own) for row, own in found.items()) for found in largest]
    if max(saved, default=0.0) < GRID_LEAST_LUCK:
        return Nested(grids, {})
    chosen = [place for place, own in enumerate(saved) if own >= max(saved) - NEST_DOUBT]
    # if the counts do not distinguish grids, grids with the dimensions of the domain are likelier
    chosen.sort(key=lambda place: -tried[place].dimensions)
    possible = [tried[place] for place in chosen]
    others = sorted(counts.polynomials.keys() - set(counts.largest))
    sums = [largest[place] | counts.sums(tried[place], others) for place in chosen]
    writers = [NestWriter(grid, names[size], counts.domain, counts.processes, points[:, size]) for grid in possible]
    models: dict[int, Model] = {}
    for path, row in zip(paths.tolist(), row_of.reshape(-1).tolist(), strict=True):
        found = [writer.model(own[row]) for writer, own in zip(writers, sums, strict=True) if row in own]
        several = [checked(own, points, values[path], names, usable[0].parameter) for own in found]
        if kept := [own for own in several if own is not None]:
            models[path] = with_others(kept, usable[0].parameter)
    rules = [(own.rule, own.dimensions) for own in possible]
    return Nested(replace(grids, possible=tuple(own for own in usable if (own.rule, own.dimensions) in rules)), models)


def _of_whole_lines(sizes: FloatArray, processes: FloatArray) -> NDArray[np.bool_]:
    """Return which points (C,) are at numbers of processes with enough sizes for a domain of MOST_DIMENSIONS.

    If most numbers of processes have fewer sizes, the result contains all points. Otherwise one missing run would hide
    the highest power of all counts. `checked` contains the counts at the other points.
    """
    distinct, at = np.unique(processes, return_inverse=True)
    number = np.array([np.unique(sizes[processes == p]).size for p in distinct])
    enough = number > MOST_DIMENSIONS
    if 2 * np.count_nonzero(enough) <= distinct.size:
        return np.ones(processes.size, dtype=bool)
    return np.asarray(enough[at.reshape(-1)], dtype=bool)


def _with_ends(grid: ProcessGrid) -> list[ProcessGrid]:
    """Return the grid with periodic or open dimensions; both if this is not known."""
    if grid.periodic:
        return [grid]
    return [replace(grid, periodic=(around,) * grid.dimensions) for around in (False, True)]


@dataclass(frozen=True, eq=False)
class _Counts:
    """Counts as polynomials in the size, by their index, at numbers of processes (G,), and the domain that they show.

    largest: the indices of the largest counts.
    """

    polynomials: dict[int, FloatArray]
    largest: Sequence[int]
    processes: FloatArray
    domain: Domain

    @classmethod
    def of(cls, sizes: FloatArray, processes: FloatArray, rows: FloatArray) -> _Counts | None:
        """Return the counts (N, C) as polynomials; None if there are none, or if they show no domain."""
        distinct = np.unique(processes)
        least = min(np.unique(sizes[processes == p]).size for p in distinct)
        degree = min(MOST_DIMENSIONS, least - 1)
        by_size = SizePolynomials(sizes, processes, degree)
        found = [(row, by_size.coefficients(own)) for row, own in enumerate(rows)]
        known = {row: own for row, own in found if own is not None}
        if least == degree + 1:
            # any counts have such a polynomial
            known = {row: own for row, own in known.items() if _says_more(own, rows[row], processes)}
        order = np.argsort(-rows.max(axis=1), kind="stable").tolist()
        largest = [row for row in order if row in known][:GRID_OF_DOMAIN]
        domain = _domain([known[row] for row in largest], distinct)
        if domain is None:
            return None
        return cls({row: own[: domain.dimensions + 1] for row, own in known.items()}, largest, distinct, domain)

    def sums(self, grid: ProcessGrid, rows: Iterable[int]) -> dict[int, list[NestSum]]:
        """Return the sums of nests of the counts that have some on a grid. The largest may have three nests."""
        proposer = _proposer(grid.axes, grid.periodic, self.domain, tuple(self.processes.tolist()))
        many = set(self.largest)
        found = {
            row: proposer.propose(own, NEST_MOST if row in many else NEST_MOST_SMALL)
            for row in rows
            if not _is_simple(own := self.polynomials[row], self.processes)
        }
        return {row: own for row, own in found.items() if own and self._is_likely(row, own[0])}

    def _is_likely(self, row: int, shortest: NestSum) -> bool:
        """Return whether a sum is shorter than the coefficients, or nearly so with few nests."""
        few = NEST_DOUBT if len(shortest.nests) <= NEST_MOST_SMALL else 0.0
        return shortest.bits < _length(self.polynomials[row], self.processes) + few

    def saved(self, row: int, found: Sequence[NestSum]) -> float:
        """Return by how many bits the shortest sum is shorter than the separate coefficients."""
        return max(_length(self.polynomials[row], self.processes) - found[0].bits, 0.0)


@lru_cache(maxsize=32)
def _proposer(
    axes: tuple[Axis, ...], periodic: tuple[bool, ...], domain: Domain, processes: tuple[float, ...]
) -> NestSums:
    """Return an object that finds sums of nests over a domain at numbers of processes."""
    here = np.array(processes)
    grids, beyond = (
        np.stack([axis.extent(at) for axis in axes], axis=1) for at in (here, here.max() * np.array(FURTHER))
    )
    return NestSums(LoopNests(domain, periodic), grids, beyond)


def _length(polynomial: FloatArray, processes: FloatArray | float) -> float:
    """Return the bits of coefficients (D + 1, G): one number if all ranks do the same or share it, otherwise each."""
    bits = 0.0
    for own in polynomial:
        totals = np.abs(own * processes)
        if _alike(totals):
            bits += 1.0 + float(np.log2(totals[0] + 1.0))
        elif _alike(own):
            bits += 1.0 + float(np.log2(abs(own[0]) + 1.0))
        else:
            bits += float((1.0 + np.log2(totals + 1.0)).sum())
    return bits


def _says_more(polynomial: FloatArray, counts: FloatArray, processes: FloatArray) -> bool:
    """Return whether coefficients are far shorter than the counts (C,) of a number of processes."""
    lines = [(place, p, counts[processes == p]) for place, p in enumerate(np.unique(processes))]
    return any(
        _length(polynomial[:, [place]], p) + GRID_LEAST_LUCK < float(np.log2(own * p + 1.0).sum())
        for place, p, own in lines
    )


def _is_simple(polynomial: FloatArray, processes: FloatArray) -> bool:
    """Return whether coefficients (D + 1, G) have one power of the size, which all ranks do or share."""
    used = polynomial[np.abs(polynomial).max(axis=1) > 0]
    return len(used) <= 1 and all(_alike(own) or _alike(own * processes) for own in used)


def _alike(values: FloatArray) -> bool:
    return bool(np.ptp(values) <= 1e-9 * np.abs(values).max())


def _domain(polynomials: Sequence[FloatArray], processes: FloatArray) -> Domain | None:
    """Return the domain that the highest powers of the size show, shared by ranks or per rank."""
    votes: dict[Domain, int] = {}
    for own in polynomials:
        orders = np.flatnonzero(np.abs(own).max(axis=1) > 0)
        highest = own[orders[-1]] if orders.size else own[0]
        for strong in (True, False):
            if orders.size and orders[-1] and _alike(highest * processes if strong else highest):
                domain = Domain(int(orders[-1]), strong)
                votes[domain] = votes.get(domain, 0) + 1
    if not votes:
        return None
    most = max(own.dimensions for own in votes)
    divided, copied = Domain(most, True), Domain(most, False)
    difference = votes.get(divided, 0) - votes.get(copied, 0)
    return (divided if difference > 0 else copied) if difference else None
