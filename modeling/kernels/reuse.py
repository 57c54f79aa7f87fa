# SPDX-License-Identifier: Apache-2.0
"""The memory time of a program at other problem sizes, from the reuse distances of its accesses.

The reuse distance of an access is the number of other bytes that were used since the last access to the same line. A
cache with least-recently-used replacement misses the access if the cache is smaller (Mattson et al. 1970, "stack
distance"). Distances grow with the problem size: not at all (a table), with a power below 1 (the planes of a stencil),
or in proportion (whole arrays). Runs at several sizes show the power of each part of the accesses (Zhong, Shen, Ding
2009, "Program locality analysis using reuse distance", section 3). So the misses of small caches at small sizes predict
the misses of large caches at large sizes. The machine description has the time of a load by distance, in order and out
of order (`quipu machine`, Reach).
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
from .amounts import Amount, product
from .variables import Variables

SIZES = np.array(sorted(MISSES), dtype=float)
"""Bytes of the simulated caches, ascending."""
_STEPS = 5  # intervals of distances between two cache sizes
_LINE = 64  # bytes, as simulated (agent/counters/reuse.py)
# Valgrind's prefetcher follows 8 streams and needs a few lines of each page. For loops over several arrays in order it
# therefore reports up to this part of the misses as out of order. The correction is for call paths where the compiler
# pass found no accesses in order.
_SEEMING = 0.5
_MANY = 0.05  # the order of misses is taken from caches with at least this part of the misses at 64 KiB
# Exponents of distances in the problem size: a table, a line of a cube, a row of a matrix, a plane, an array (Ding and
# Zhong 2003, "Predicting whole-program locality through reuse distance analysis").
_POWERS = (0.0, 1 / 3, 1 / 2, 2 / 3, 1.0)
_LEAST_PART = 1e-6  # least part of the accesses from which the growth of their distances is estimated


@dataclass(frozen=True)
class Costs:
    """Additional seconds of a load, compared with the nearest cache, by reuse distance in bytes; shape (R,) each."""

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
        # Times must not fall with the distance; if they do, a measurement was disturbed.
        risen = [np.minimum.accumulate(column[::-1])[::-1] for column in columns]
        return cls(np.array([entry.bytes for entry in ordered]), *(column - column[0] for column in risen))

    def at(self, distances: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the additional seconds in order and out of order at distances in bytes, shape (n,) each."""
        place, known = np.log(np.maximum(distances, 1.0)), np.log(self.bytes)
        return np.interp(place, known, self.in_order), np.interp(place, known, self.scattered)


@dataclass(frozen=True)
class Reuse:
    """The memory accesses of some call paths.

    accesses: shape (C,), by configuration. misses: shape (S, C), in caches of SIZES. scattered: misses out of order.
    """

    accesses: FloatArray
    misses: FloatArray
    scattered: FloatArray

    def seconds(self, costs: Costs, at: int, scale: FloatArray) -> float:
        """Return the memory time T_mem of configuration `at` with distances multiplied by `scale`, in seconds.

        scale: shape (S,), the factor of the distances between each size and the next one. The last factor is not used,
        because accesses beyond the largest size are taken as first accesses of a line.
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
        """Return the exponents from `_POWERS` with which the distances from each size to the next grow, shape (S,).

        They grow with the work of a process (`Variables.amount`). An exponent is 1 if no other configuration determines
        it. amounts: of work, shape (C,). at: the configuration of the accesses.
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
    """Return the counted reuse; None if it was not counted. found: counts by metric, shape (C,) each.

    Accesses in order reach at most `bytes_in_order` / 64 lines. The other misses are out of order if valgrind's
    prefetcher did not predict them. Without `bytes_in_order`, only the prefetcher decides. Its part of misses out of
    order is then reduced, because it reports up to `_SEEMING` of the misses of ordered loops as out of order.
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
    """Return misses at SIZES, shape (S, C), interpolated in the logarithm of the size."""
    counted = np.array([size for size in SIZES if MISSES[int(size)] in found])
    if not counted.size:
        return np.zeros((SIZES.size, found["accesses"].size))
    known = np.stack([found[MISSES[int(size)]] for size in counted])
    columns = [np.interp(np.log(SIZES), np.log(counted), column, right=0.0) for column in known.T]
    return np.stack(columns, axis=1)


def _interpolated(known: FloatArray, part: FloatArray, misses: FloatArray) -> FloatArray:
    """Return the part of misses that is out of order at SIZES, interpolated between sizes with many misses."""
    use = misses > _MANY * misses[0]
    return np.interp(np.log(SIZES), np.log(known[use]), part[use]) if use.any() else np.zeros(SIZES.size)


@dataclass(frozen=True)
class ReuseTime:
    """The memory time T_mem at any amount of work.

    growth: the number of accesses at any point. amounts: (C,), of work of a process. powers: (C, S), exponents of the
    distances (`Reuse.exponents`).
    """

    reuse: Reuse
    costs: Costs
    growth: Amount
    variables: Variables
    amounts: FloatArray
    powers: FloatArray

    def at(self, point: Mapping[str, float]) -> tuple[Prediction, Prediction]:
        """Return T_mem at a point, per rank in seconds, in two parts, from the nearest configuration.

        The first part is T_mem with distances that are not longer than those of this configuration. The second part is
        the time that longer distances add.
        """
        amount = self.variables.amount(point)
        near = int(np.argmin(np.abs(np.log(self.amounts / amount)) - 1e-9 * np.log(self.amounts)))
        accesses = max(float(self.reuse.accesses[near]), 1.0)
        as_there = self.reuse.seconds(self.costs, near, np.ones(SIZES.size))
        seconds = self.reuse.seconds(self.costs, near, (amount / self.amounts[near]) ** self.powers[near])
        further = max(seconds - as_there, 0.0)
        growth = self.growth.at(point)
        return product(growth, (seconds - further) / accesses), product(growth, further / accesses)


def reuse_time(reuse: Reuse, costs: Costs, growth: Amount, variables: Variables, amounts: FloatArray) -> ReuseTime:
    """Return T_mem as a function of the configuration."""
    powers = np.stack([reuse.exponents(amounts, at) for at in range(amounts.size)])
    return ReuseTime(reuse, costs, growth, variables, amounts, powers)


def _between(beyond: FloatArray) -> FloatArray:
    """Return the amounts between each size and the next one, shape (S,), from the amounts beyond each size."""
    return np.asarray(np.maximum(beyond - np.append(beyond[1:], 0.0), 0.0))


def _crossing(ratios: FloatArray, level: float) -> float:
    """Return the logarithm of the size at which a falling curve has this value."""
    return float(np.interp(-level, -ratios, np.log(SIZES)))
