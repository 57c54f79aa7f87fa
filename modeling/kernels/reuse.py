# SPDX-License-Identifier: Apache-2.0
"""What memory costs a program at problem sizes that were not run, from how far back its accesses reach.

The distance of a reuse is the number of other bytes that were used since; a cache of least recently used lines misses
it if it is smaller (Mattson et al. 1970, "stack distance"). Distances grow with the problem: not at all (a table), with
a power below 1 (the planes of a stencil), or as the problem does (whole arrays). Which of these, the same parts of all
accesses at several sizes tell (Zhong, Shen, Ding 2009, "Program locality analysis using reuse distance", section 3). So
misses of small caches at small sizes say what large ones miss at large sizes, and the machine says what a load takes
that reaches so far back, in order or not (`quipu machine`, Reach).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..counters import MISSES, SCATTERED
from ..experiment import FloatArray
from ..machine import Reach
from ..pmnf.model import Prediction
from .growth import Growth, product

SIZES = np.array(sorted(MISSES), dtype=float)
"""Bytes of the simulated caches, ascending."""
_STEPS = 5  # into which the distances between two sizes are divided
_LINE = 64  # bytes, as simulated (agent/counters/reuse.py)
# Valgrind's prefetcher follows 8 streams and needs a few lines of each page, so loops over several arrays in order seem
# to be out of order in up to this part of their misses. What the pass saw walk in order is none of these.
_SEEMING = 0.5
_MANY = 0.05  # of the misses of the smallest cache: fewer say nothing of the order of the others
# With which distances grow: a table, a line of a cube, a row of a matrix, a plane, an array (Ding and Zhong 2003,
# "Predicting whole-program locality through reuse distance analysis").
_POWERS = (0.0, 1 / 3, 1 / 2, 2 / 3, 1.0)
_LEAST_PART = 1e-6  # of the accesses: fewer say nothing of how their distances grow


@dataclass(frozen=True)
class Costs:
    """Seconds that a line takes beyond those of the nearest cache, by the bytes since its last use: (R,) each."""

    bytes: FloatArray
    in_order: FloatArray
    scattered: FloatArray

    @classmethod
    def of(cls, reach: Sequence[Reach]) -> Costs | None:
        """Return the costs of a machine; None if they were not measured."""
        if len(reach) < 2:
            return None
        ordered = sorted(reach, key=lambda entry: entry.bytes)
        columns = [np.array([getattr(entry, name) for entry in ordered]) for name in ("in_order", "scattered")]
        # What is further back is not nearer: what says so is a disturbed measurement.
        risen = [np.minimum.accumulate(column[::-1])[::-1] for column in columns]
        return cls(np.array([entry.bytes for entry in ordered]), *(column - column[0] for column in risen))

    def at(self, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the seconds of both kinds at distances in bytes (n,)."""
        place, known = np.log(np.maximum(distances, 1.0)), np.log(self.bytes)
        return np.interp(place, known, self.in_order), np.interp(place, known, self.scattered)


@dataclass(frozen=True)
class Reuse:
    """Accesses of some call paths per configuration (C,); misses of caches of SIZES, and those of them that are out of
    order (S, C).
    """

    accesses: FloatArray
    misses: FloatArray
    scattered: FloatArray

    def seconds(self, costs: Costs, at: int, scale: FloatArray) -> float:
        """Return T_mem of configuration `at` if distances were `scale` times as long, (S,): of those beyond each size.

        What is further back than the largest size was not used before, and stays there.
        """
        misses, scattered = self.misses[:, at], self.scattered[:, at]
        far = np.append(SIZES[1:], np.inf)
        total = 0.0
        for size, next_size, factor, here, out_of_order in zip(
            SIZES, far, scale, _between(misses), np.minimum(_between(scattered), _between(misses)), strict=True
        ):
            if not np.isfinite(next_size):
                ordered, random = (column[-1:] for column in (costs.in_order, costs.scattered))
            else:
                steps = (np.arange(_STEPS) + 0.5) / _STEPS
                ordered, random = costs.at(size * (next_size / size) ** steps * factor)
            total += float((here - out_of_order) * ordered.mean() + out_of_order * random.mean())
        return total

    def where(self, use: NDArray[np.bool_]) -> Reuse:
        """Return the reuse of some configurations, (C,)."""
        return Reuse(self.accesses[use], self.misses[:, use], self.scattered[:, use])

    def exponents(self, amounts: FloatArray, at: int) -> FloatArray:
        """Return with which power of the amount of work D / P the distances beyond each size grow, (S,): of _POWERS.

        Where no other configuration tells, with the first power. amounts: (C,). at: the configuration whose accesses
        they are.
        """
        ratios = self.misses / np.where(self.accesses > 0, self.accesses, 1.0)
        own = ratios[:, at]
        result = np.ones(SIZES.size)
        for place in range(SIZES.size - 1):
            level = (own[place] + own[place + 1]) / 2
            if own[place] - own[place + 1] < _LEAST_PART:
                continue
            here = _crossing(own, level)
            pairs = [
                (float(np.log(amounts[other] / amounts[at])), _crossing(ratios[:, other], level) - here)
                for other in range(amounts.size)
                if amounts[other] != amounts[at] and ratios[0, other] > level > ratios[-1, other]
            ]
            if pairs:
                slope = sum(x * y for x, y in pairs) / sum(x * x for x, _ in pairs)
                result[place] = min(_POWERS, key=lambda power: abs(power - slope))
        return result


def reuse_of(found: Mapping[str, FloatArray]) -> Reuse | None:
    """Return the reuse that was counted; None if it was not. found: counts by metric, (C,) each.

    Loads and stores that walk through memory in order reach `bytes_in_order` / 64 lines at most, so what misses besides
    is out of order, as far as valgrind's prefetcher did not foresee it. Where none of them is known to walk, that
    prefetcher alone tells.
    """
    if "accesses" not in found or not found["accesses"].any():
        return None
    misses = np.minimum.accumulate(_at_all_sizes(found), axis=0)
    known = np.array(sorted(SCATTERED), dtype=float)
    out_of_order = np.stack([found.get(SCATTERED[int(size)], np.zeros_like(found["accesses"])) for size in known])
    at_known = misses[np.searchsorted(SIZES, known)]
    part = np.clip(out_of_order / np.where(at_known > 0, at_known, 1.0), 0.0, 1.0)
    lines = found.get("bytes_in_order", np.zeros_like(found["accesses"])) / _LINE
    part = np.where(lines > 0, part, np.maximum(part - _SEEMING, 0.0) / (1 - _SEEMING))
    parts = np.stack([_interpolated(known, *columns) for columns in zip(part.T, at_known.T, strict=True)], axis=1)
    return Reuse(found["accesses"], misses, np.minimum(parts * misses, np.maximum(misses - lines, 0.0)))


def _at_all_sizes(found: Mapping[str, FloatArray]) -> FloatArray:
    """Return misses at SIZES, (S, C), between those that were counted evenly in the logarithm of the size."""
    counted = np.array([size for size in SIZES if MISSES[int(size)] in found])
    if not counted.size:
        return np.zeros((SIZES.size, found["accesses"].size))
    known = np.stack([found[MISSES[int(size)]] for size in counted])
    columns = [np.interp(np.log(SIZES), np.log(counted), column, right=0.0) for column in known.T]
    return np.stack(columns, axis=1)


def _interpolated(known: FloatArray, part: FloatArray, misses: FloatArray) -> FloatArray:
    """Return the part of misses that is out of order at SIZES, from those sizes that still miss much."""
    use = misses > _MANY * misses[0]
    return np.interp(np.log(SIZES), np.log(known[use]), part[use]) if use.any() else np.zeros(SIZES.size)


@dataclass(frozen=True)
class ReuseTime:
    """T_mem at any amount of work. growth: of accesses. amounts: (C,); powers: of each configuration, (C, S)."""

    reuse: Reuse
    costs: Costs
    growth: Growth
    amounts: FloatArray
    powers: FloatArray

    def at(self, point: Mapping[str, float]) -> tuple[Prediction, Prediction]:
        """Return T_mem at a point, per rank in seconds, from the configuration that is nearest: what its accesses would
        take from where they were served there, and what they take longer because they reach further.
        """
        amount = self.growth.variables.amount(point)
        near = int(np.argmin(np.abs(np.log(self.amounts / amount)) - 1e-9 * np.log(self.amounts)))
        accesses = max(float(self.reuse.accesses[near]), 1.0)
        as_there = self.reuse.seconds(self.costs, near, np.ones(SIZES.size))
        seconds = self.reuse.seconds(self.costs, near, (amount / self.amounts[near]) ** self.powers[near])
        further = max(seconds - as_there, 0.0)
        growth = self.growth.at(point)
        return product(growth, (seconds - further) / accesses), product(growth, further / accesses)

    def __str__(self) -> str:
        """Return whose time it is."""
        return f"by distance of reuse, of {self.growth}"


def reuse_time(reuse: Reuse, costs: Costs, growth: Growth, amounts: FloatArray) -> ReuseTime:
    """Return T_mem as a function of the configuration."""
    powers = np.stack([reuse.exponents(amounts, at) for at in range(amounts.size)])
    return ReuseTime(reuse, costs, growth, amounts, powers)


def _between(beyond: FloatArray) -> FloatArray:
    """Return what lies between each size and the next one, (S,), from what lies beyond each."""
    return np.asarray(np.maximum(beyond - np.append(beyond[1:], 0.0), 0.0))


def _crossing(ratios: FloatArray, level: float) -> float:
    """Return the logarithm of the size at which a falling curve has this level."""
    return float(np.interp(-level, -ratios, np.log(SIZES)))
