# SPDX-License-Identifier: Apache-2.0
"""Propose counts of decomposed domains: sums of few loop nests with given values at all sizes and grids.

Each call path is a polynomial in the size at each grid. All its coefficients are a vector, in a space of the dimension
that the nests span. Linear algebra finds sums of one, two or three of some hundred nests: the component of the vector
orthogonal to the span of the nests is 0. Nests that the measured grids do not distinguish have equal vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import LOOP_DENOMINATOR
from ..grids.calibration import NEST_ALIKE, NEST_DOUBT, NEST_FRACTION, NEST_FREE
from .loop_nests import LoopNests, Nest

# Orthogonal component of a vector that may be rounding: if it is estimated, and if it is computed.
_MAYBE, _NEAR = 1e-8, 1e-9
# Angles that count as equal, in radians, and their largest number.
_SAME_ANGLE, _MOST_ALIKE = 1e-7, 12
# Largest number of variants of the nests of one sum, the shortest first.
_MOST_VARIANTS = 256
# Number of cached proposals.
_MOST_KEPT = 4096


@dataclass(frozen=True, eq=False)
class NestSum:
    """A sum of nests with their coefficients; bits: length of the description. beyond: coefficients at larger grids."""

    nests: tuple[Nest, ...]
    coefficients: tuple[float, ...]
    bits: float
    beyond: FloatArray


class NestSums:
    """Sums of nests at grids (G, d), which are compared at larger grids, beyond (B, d).

    Nests that are equal at all grids are one vector; its variants differ beyond, the shortest first.
    """

    def __init__(self, nests: LoopNests, grids: FloatArray, beyond: FloatArray) -> None:
        here, there = (nests.coefficients(nests.nests, own) for own in (grids, beyond))
        vectors = here.reshape(len(here), -1)
        order = np.array([own.order for own in nests.nests])
        some = np.abs(vectors).max(axis=1) > 0  # the others are zero at all measured points
        _, first, place = np.unique(vectors[some].round(9), axis=0, return_index=True, return_inverse=True)
        numbers = np.flatnonzero(some)
        bits = np.array([own.bits for own in nests.nests])
        self._variants: list[list[tuple[Nest, float, FloatArray]]] = []
        for group in range(len(first)):
            own = numbers[place.reshape(-1) == group]
            own = own[np.argsort(bits[own], kind="stable")]
            different: dict[bytes, int] = {}
            for number in own[bits[own] <= bits[own].min() + NEST_DOUBT].tolist():
                different.setdefault((there[number].round(9) + 0.0).tobytes(), number)
            self._variants.append([(nests.nests[i], float(bits[i]), there[i]) for i in different.values()])
        self.orders = order[numbers[first]]
        self.usual = np.array([any(nest.usual for nest, _, _ in own) for own in self._variants])
        self.vectors = vectors[numbers[first]]
        self._scale = np.linalg.norm(self.vectors, axis=1)
        self._unit = self.vectors / self._scale[:, None]
        self._families: dict[tuple[int, bool], _Family] = {}
        self._nests, self._here, self._there = nests, vectors, there
        self._levels: dict[int, list[NDArray[np.int64]]] = {}
        self._proposed: dict[tuple[bytes, int], list[NestSum]] = {}

    def propose(self, polynomials: FloatArray, most: int) -> list[NestSum]:
        """Return the sums of the fewest nests that have the coefficients (D + 1, G), the shortest first.

        most: nests in one sum. Proposals are cached, because many counts of a program have equal coefficients.
        """
        key = polynomials.tobytes(), most
        if key not in self._proposed:
            if len(self._proposed) >= _MOST_KEPT:
                self._proposed.clear()
            self._proposed[key] = self._propose(polynomials, most)
        return self._proposed[key]

    def _propose(self, polynomials: FloatArray, most: int) -> list[NestSum]:
        size = np.abs(polynomials).max()
        if not size:
            return []
        values, order = polynomials.reshape(-1), int(np.flatnonzero(np.abs(polynomials).max(axis=1))[-1])
        for width in range(1, min(most, self._family(order, False).rank - NEST_FREE) + 1):
            family = self._family(order, width > 2)
            found = list(self._exact(values, family.near(values, width)))
            if width == most:
                found += self._of_levels(values, order)
            if found:
                shortest = min(own.bits for own in found)
                return _different(sorted(found, key=lambda own: own.bits), shortest + NEST_DOUBT)
        return []

    def _of_levels(self, values: FloatArray, order: int) -> Iterator[NestSum]:
        """Yield the nests with work at each of their loops that have the values."""
        if order not in self._levels:
            most = self._family(order, False).rank - NEST_FREE
            chosen: dict[int, list[tuple[int, ...]]] = {}
            for levels in self._nests.levels:
                if 2 < len(levels) <= most and self._nests.nests[levels[0]].order == order:
                    chosen.setdefault(len(levels), []).append(levels)
            self._levels[order] = [np.array(own, dtype=np.int64) for own in chosen.values()]
        nests = self._nests.nests
        for sets in self._levels[order]:
            for own, coefficients in _solved(self._here, sets, values):
                beyond = np.einsum("k,kob->ob", coefficients, self._there[own])
                bits = NEST_ALIKE + nests[own[0]].bits + _bits_of(coefficients)
                yield NestSum(tuple(nests[one] for one in own), tuple(coefficients.tolist()), bits, beyond)

    def _family(self, order: int, usual: bool) -> _Family:
        """Return the nests up to an order, all or the usual ones."""
        if (order, usual) not in self._families:
            chosen = np.flatnonzero((self.orders <= order) & (self.usual | (not usual)))
            self._families[order, usual] = _Family(self._unit[chosen], chosen)
        return self._families[order, usual]

    def _exact(self, values: FloatArray, sets: NDArray[np.int64]) -> Iterator[NestSum]:
        """Yield the sums of sets (S, k) of vectors that have the values, with coefficients of loops."""
        for own, coefficients in _solved(self.vectors, sets, values):
            yield from self._written(own, coefficients)

    def _written(self, columns: Sequence[int], coefficients: FloatArray) -> Iterator[NestSum]:
        """Yield the possible nests of these vectors."""
        added = _bits_of(coefficients)
        variants = [self._variants[own] for own in columns]
        while np.prod([len(own) for own in variants]) > _MOST_VARIANTS:
            longest = max(range(len(variants)), key=lambda i: variants[i][-1][1] - variants[i][0][1])
            variants[longest] = variants[longest][:-1]
        for chosen in product(*variants):
            beyond = np.einsum("k,kob->ob", coefficients, np.stack([own for _, _, own in chosen]))
            bits = added + sum(own for _, own, _ in chosen)
            yield NestSum(tuple(own for own, _, _ in chosen), tuple(coefficients.tolist()), bits, beyond)


def _solved(vectors: FloatArray, sets: NDArray[np.int64], values: FloatArray) -> Iterator[tuple[list[int], FloatArray]]:
    """Yield each set of vectors of which `values` (C,) is a sum, with coefficients. vectors: (M, C); sets: (S, k)."""
    if not len(sets):
        return
    scale = np.linalg.norm(vectors[sets], axis=2)
    design = (vectors[sets] / scale[:, :, None]).transpose(0, 2, 1)
    gram = design.transpose(0, 2, 1) @ design
    kept = _independent(gram)
    sets, scale, design, gram = sets[kept], scale[kept], design[kept], gram[kept]
    if not len(sets):
        return
    found = np.linalg.solve(gram, (design.transpose(0, 2, 1) @ values)[..., None])[..., 0]
    beside = np.abs(np.einsum("skj,sj->sk", design, found) - values).max(axis=1)
    coefficients = found / scale
    parts = np.round(coefficients * LOOP_DENOMINATOR)
    good = (beside <= _NEAR * np.linalg.norm(values)) & (parts > 0).all(axis=1)
    good &= (np.abs(coefficients * LOOP_DENOMINATOR - parts) <= 1e-3).all(axis=1)
    yield from zip(sets[good].tolist(), parts[good] / LOOP_DENOMINATOR, strict=True)


def _independent(gram: FloatArray) -> NDArray[np.bool_]:
    """Return which matrices (S, k, k) of scalar products of unit vectors belong to independent vectors."""
    if gram.shape[1] == 1:
        return np.ones(len(gram), dtype=bool)
    if gram.shape[1] == 2:  # the eigenvalues are 1 ± the cosine
        cosine = np.abs(gram[:, 0, 1])
        return np.asarray(1.0 + cosine < 1e9 * (1.0 - cosine), dtype=bool)
    return np.asarray(np.linalg.cond(gram) < 1e9, dtype=bool)


def _bits_of(coefficients: FloatArray) -> float:
    """Return the length of the description of coefficients."""
    return float(np.sum(np.log2(coefficients + 1.0) + NEST_FRACTION * (coefficients % 1.0 != 0)))


class _Family:
    """Unit vectors (M, C) of nests up to some order; chosen: their indices."""

    def __init__(self, unit: FloatArray, chosen: NDArray[np.int64]) -> None:
        self.chosen = chosen
        _, singular, basis = np.linalg.svd(unit, full_matrices=False)
        self.rank = int((singular > 1e-9 * singular[0]).sum())
        self._basis = basis[: self.rank]
        self._inside = unit @ self._basis.T
        self._cosines = self._inside @ self._inside.T
        # any four directions show the component orthogonal to the span of three
        self._mixed = np.linalg.qr(np.random.default_rng(1).normal(size=(self.rank, self.rank)))[0][:, :4]

    def near(self, values: FloatArray, width: int) -> NDArray[np.int64]:
        """Return sets (S, width) of nests of which the values are nearly a sum."""
        unit = values / np.linalg.norm(values)
        inside = self._basis @ unit
        if np.linalg.norm(unit - inside @ self._basis) > _NEAR:
            return np.zeros((0, width), dtype=np.int64)
        along = self._inside @ inside
        if width == 1:
            return self.chosen[np.flatnonzero(1.0 - along**2 < _MAYBE)][:, None]
        if width == 2:
            mixed = self._mixed[:, :3]
            pairs = _on_one_line(self._inside @ mixed, inside @ mixed, _NEAR * float(np.sqrt(len(values))))
            (one, other), cosine = along[pairs], self._cosines[pairs[0], pairs[1]]
            beside = (1.0 - cosine**2) - (one**2 - 2.0 * one * other * cosine + other**2)
            return self.chosen[pairs[:, beside < _MAYBE * (1.0 - cosine**2)].T]
        return self.chosen[_in_one_plane(self._inside @ self._mixed, inside @ self._mixed)]


def _on_one_line(vectors: FloatArray, values: FloatArray, rounding: float) -> NDArray[np.int64]:
    """Return the pairs of vectors of which a sum with coefficients > 0 may be `values`: indices (2, S), in order.

    vectors: (M, 3), and values: (3,), are parts of unit vectors. rounding: largest residual of the sum. In the
    projection along the values, both vectors of a pair are collinear. They have the same angle, up to rounding of the
    longer part of the sum, whose coefficient is at least 1/2.
    """
    seen = vectors @ _orthogonal(values[None])[0].T
    angle = np.arctan2(seen[:, 1], seen[:, 0]) % np.pi
    size = np.maximum(np.hypot(seen[:, 0], seen[:, 1]), np.finfo(float).tiny)
    near = np.minimum(4.0 * rounding / size, np.pi / 2.0)
    order = np.argsort(angle)
    around = np.concatenate([angle[order] + turn for turn in (-np.pi, 0.0, np.pi)])
    begin = np.searchsorted(around, angle - near)
    number = np.searchsorted(around, angle + near, side="right") - begin
    one = np.repeat(np.arange(len(angle)), number)
    place = np.arange(len(one)) - np.repeat(np.cumsum(number) - number, number) + np.repeat(begin, number)
    other = order[place % len(angle)]
    both = np.unique(np.minimum(one, other) * len(angle) + np.maximum(one, other))
    pairs = np.stack(np.divmod(both, len(angle)))
    return np.asarray(pairs[:, pairs[0] != pairs[1]], dtype=np.int64)


def _in_one_plane(vectors: FloatArray, values: FloatArray) -> NDArray[np.int64]:
    """Return the sets of three vectors whose span contains `values`: indices (S, 3).

    vectors: (M, 4); values: (4,). In the projection along the values and one vector of a set, the two others are
    collinear: they have the same angle.
    """
    beside = _orthogonal(values[None])[0]
    seen = vectors @ beside.T
    planes = _orthogonal(seen)
    one, other = (planes[:, axis] @ seen.T for axis in (0, 1))
    angle = np.arctan2(other, one) % np.pi
    # vectors on the line of the first have no angle: assign a different one to each
    none = one**2 + other**2 < _MAYBE**2
    angle[none] = -1.0 - np.nonzero(none)[1]
    order = np.argsort(angle, axis=1)
    angle = np.take_along_axis(angle, order, axis=1)
    found = []
    for apart in range(1, _MOST_ALIKE + 1):
        difference = np.abs(np.roll(angle, -apart, axis=1) - angle)
        first, place = np.nonzero(np.minimum(difference, np.abs(np.pi - difference)) < _SAME_ANGLE)
        if not len(first):
            break
        second, third = order[first, place], order[first, (place + apart) % len(vectors)]
        later = (second > first) & (third > first)
        found.append(np.sort(np.stack([first, second, third], axis=1)[later], axis=1))
    if not found:
        return np.zeros((0, 3), dtype=np.int64)
    sets = np.unique(np.concatenate(found), axis=0)
    return sets[(np.diff(sets, axis=1) > 0).all(axis=1)]


def _orthogonal(vectors: FloatArray) -> FloatArray:
    """Return orthonormal vectors (N, d - 1, d) that are orthogonal to each of the vectors (N, d)."""
    dimensions = vectors.shape[1]
    reflected = vectors / np.maximum(np.linalg.norm(vectors, axis=1), np.finfo(float).tiny)[:, None]
    # the Householder reflection that maps each vector to the first axis
    sign = np.where(reflected[:, 0] < 0.0, -1.0, 1.0)
    reflected[:, 0] += sign
    unit = reflected / np.linalg.norm(reflected, axis=1)[:, None]
    matrices = np.eye(dimensions) - 2.0 * unit[:, :, None] * unit[:, None, :]
    result: FloatArray = matrices[:, 1:, :]
    return result


def _different(sums: Sequence[NestSum], longest: float) -> list[NestSum]:
    """Return the sums up to the longest, sorted by length, without duplicates at larger grids."""
    kept: list[NestSum] = []
    seen: set[bytes] = set()
    scale = max(float(np.abs(sums[0].beyond).max()), np.finfo(float).tiny)
    for own in sums:
        if own.bits > longest:
            break
        key = (own.beyond / scale).round(9).tobytes()
        if key not in seen:
            seen.add(key)
            kept.append(own)
    return kept
