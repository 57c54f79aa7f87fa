"""Proposer of functions of a process grid that have given values: sums of what domain decomposition makes.

In each dimension of the grid, the mean over the ranks of what a rank does is 1 (every rank does it), 1/x (a share of
the domain, or one rank of a row) or (x-1)/x (ranks with a neighbour on one side). Products of one of these per
dimension, sums of them over all dimensions alike, p and log2(p) are the functions that are combined.

A few grids leave freedom: (1,1), (2,1), (2,2) have three values for the four products of 1/px and 1/py. So sums are
ranked by the length of their description (Rissanen, Modeling by shortest data description, 1978): functions,
coefficients, and what domains of so many dimensions do not have. Those that are nearly as short are returned as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations, product

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import (
    GRID_BITS,
    GRID_DOUBT,
    GRID_EDGE,
    GRID_FRACTION,
    GRID_FUNCTION,
    GRID_MOST_FUNCTIONS,
    GRID_MOST_SETS,
    GRID_NEGATIVE,
    GRID_OF_PROCESSES,
    GRID_ONE_SIDED,
    GRID_VIOLATION,
    LOOP_DENOMINATOR,
)

# What the mean over the ranks may be in one dimension of x ranks.
EVERY, SHARE, NEIGHBOUR = range(3)
Product = tuple[int, ...]  # one of these per dimension


@dataclass(frozen=True)
class Atom:
    """A function of the grid: a sum of products, or a power and logarithm of the number of processes.

    length: of its description. processes: exponent and logarithm of p, if it is a function of p.
    """

    products: tuple[Product, ...]
    length: float
    processes: tuple[int, int] | None = None

    def evaluate(self, grids: FloatArray) -> FloatArray:
        """Return the function at grids (G, d), (G,)."""
        if self.processes is not None:
            p, (exponent, log) = grids.prod(axis=1), self.processes
            result: FloatArray = p**exponent * np.log2(p) ** log
            return result
        total = np.zeros(len(grids))
        for own in self.products:
            total += np.prod([_of_dimension(kind, grids[:, place]) for place, kind in enumerate(own)], axis=0)
        return total

    @property
    def is_share(self) -> bool:
        """Whether it is the share of one rank of everything."""
        return self.processes is None and set(self.products[0]) == {SHARE}


def _of_dimension(kind: int, x: FloatArray) -> FloatArray:
    return np.ones_like(x) if kind == EVERY else 1.0 / x if kind == SHARE else (x - 1.0) / x


@dataclass(frozen=True)
class Domain:
    """What a domain of so many dimensions has: terms of n of order k have so many shares at least, or at most.

    strong: n is the size of the whole domain, not that of a rank. Each side of the domain that a loop does not run over
    contributes no n, and only there a rank may do something for itself, or for its neighbours.
    """

    dimensions: int
    strong: bool

    def violations(self, atom: Atom, order: int) -> int:
        """Return how many dimensions are not as in such a domain in the coefficient of n^order."""
        if atom.processes is not None:
            return 0
        wrong = SHARE if self.strong else EVERY
        most = max(sum(kind != wrong for kind in own) for own in atom.products)
        return max(0, most - (self.dimensions - order))


@dataclass(frozen=True)
class Form:
    """A sum of functions of the grid: numbers of atoms, their coefficients, and the length of the description."""

    atoms: tuple[int, ...]
    coefficients: tuple[float, ...]
    length: float


class GridForms:
    """Sums of functions of the grids (G, d)."""

    def __init__(self, grids: FloatArray) -> None:
        self.grids = grids
        self.atoms = _atoms(grids.shape[1])
        self.columns = np.stack([atom.evaluate(grids) for atom in self.atoms])

    @cached_property
    def _families(self) -> list[tuple[NDArray[np.int64], FloatArray, FloatArray]]:
        """Sets of 1, 2, … atoms with independent columns (S, k), their columns (S, G, k), and least squares (S, k, G).

        """
        result = []
        for width in range(1, min(len(self.grids), GRID_MOST_FUNCTIONS) + 1):
            sets = np.array(list(combinations(range(len(self.atoms)), width)), dtype=np.int64)
            lengths = np.array([atom.length for atom in self.atoms])[sets].sum(axis=1)
            sets = sets[np.argsort(lengths, kind="stable")[:GRID_MOST_SETS]]
            design = self.columns[sets].transpose(0, 2, 1)
            gram = design.transpose(0, 2, 1) @ design
            kept = np.linalg.cond(gram) < 1e9
            design, gram = design[kept], gram[kept]
            result.append((sets[kept], design, np.linalg.solve(gram, design.transpose(0, 2, 1))))
        return result

    def propose(self, values: FloatArray, tolerance: float, order: int | None, domain: Domain | None) -> list[Form]:
        """Return the sums that have the values (G,) at all grids, the shortest first; none if there are none.

        order: which power of n the values are the coefficients of, None if it is no whole power.
        """
        if np.abs(values).max() <= tolerance:
            return [Form((), (), 0.0)]
        found: list[Form] = []
        for sets, design, inverse in self._families:
            coefficients = inverse @ values
            deviation = np.abs(np.einsum("sgk,sk->sg", design, coefficients) - values).max(axis=1)
            for place in np.flatnonzero(deviation <= tolerance).tolist():
                form = self._form(sets[place].tolist(), coefficients[place], tolerance, order, domain)
                if form is not None:
                    found.append(form)
        found.sort(key=lambda form: form.length)
        return [form for form in found if form.length <= found[0].length + GRID_DOUBT]

    def _form(
        self, atoms: list[int], coefficients: FloatArray, tolerance: float, order: int | None, domain: Domain | None
    ) -> Form | None:
        near = np.maximum(20.0 * tolerance * LOOP_DENOMINATOR, 1e-7 * np.abs(LOOP_DENOMINATOR * coefficients))
        parts = np.round(LOOP_DENOMINATOR * coefficients)
        if (parts == 0).any() or (np.abs(LOOP_DENOMINATOR * coefficients - parts) > np.minimum(near, 0.2)).any():
            return None
        length = 0.0
        for number, part in zip(atoms, parts.tolist(), strict=True):
            atom, own = self.atoms[number], int(abs(part))
            length += atom.length
            if own % int(LOOP_DENOMINATOR):
                length += GRID_FRACTION
            odd = own // (own & -own)
            length += GRID_BITS * odd.bit_length()
            length += GRID_NEGATIVE * (part < 0 and not atom.is_share)
            if domain is not None and order is not None:
                length += GRID_VIOLATION * domain.violations(atom, order)
        return Form(tuple(atoms), tuple((parts / LOOP_DENOMINATOR).tolist()), length)


def _atoms(dimensions: int) -> tuple[Atom, ...]:
    """Return all functions of grids of so many dimensions."""
    result = []
    for own in product((EVERY, SHARE, NEIGHBOUR), repeat=dimensions):
        length = GRID_FUNCTION + GRID_EDGE * own.count(NEIGHBOUR)
        result.append(Atom((own,), length + GRID_ONE_SIDED * (len(set(own)) > 1)))
        alike = tuple(sorted(set(permutations(own))))
        if len(alike) > 1 and own == alike[0]:
            result.append(Atom(alike, length))
    result += [Atom((), GRID_OF_PROCESSES, (1, 0)), Atom((), GRID_OF_PROCESSES, (0, 1))]
    return tuple(result)


def beyond(grids: FloatArray, forms: Sequence[Form], proposer: GridForms) -> list[FloatArray]:
    """Return the values of `forms` at other grids (G, d)."""
    columns = np.stack([atom.evaluate(grids) for atom in proposer.atoms])
    return [np.asarray(np.array(form.coefficients) @ columns[list(form.atoms)]) for form in forms]
