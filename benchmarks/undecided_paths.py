# SPDX-License-Identifier: Apache-2.0
"""Find counts of a program that its runs do not determine: numbers, and exact functions of these numbers.

- A number that is equal in all runs of a size is a rounded number (undecided_counts.py), unless a polynomial of n
  reproduces it.
- A number that differs between runs is a mean (undecided_means.py).
- A count may be an exact function f + g·v of another number v. f and g are polynomials of n up to n², and the function
  must reproduce all runs, also the runs at the target. The count is then as undecided as v.

The result does not depend on any modeler.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import Experiment, FloatArray
from undecided_counts import APART
from undecided_counts import undecided as undecided_count
from undecided_means import columns_of
from undecided_means import undecided as undecided_mean

Count = tuple[int, str]
# Sums that are, or may be, whole at all n. A number that one of these sums reproduces is not rounded.
WHOLE = (("1",), ("n",), ("n", "1"), ("n²", "n"), ("n²", "1"))
# Relative rounding error of floating point. A sum must reproduce at least this many more runs than it has terms.
REPRODUCED, LEAST_FREE = 1e-9, 1


@dataclass(frozen=True)
class Open:
    """The possible values of a number at the target, (smallest, largest), and the two functions as text."""

    values: tuple[float, float]
    text: str


def undecided_of(experiment: Experiment, target: int, far: dict[str, FloatArray]) -> dict[Count, Open]:
    """Return the counts of an experiment with one parameter that its runs do not determine at the target.

    far: the runs at the target, by metric (call paths, repetitions); they only show how a count depends on a number.
    """
    sizes = experiment.points[:, 0]
    counts = {
        (path, metric): values[path]
        for metric, values in experiment.values.items()
        for path in range(len(experiment.tree))
        if values[path, -1].any()
    }
    by_itself: dict[bytes, Open | None] = {}
    found: dict[Count, Open] = {}
    numbers: dict[bytes, Count] = {}
    for count, runs in counts.items():
        key = runs.tobytes()
        if key not in by_itself:
            by_itself[key] = _by_itself(sizes, runs, float(target))
        own = by_itself[key]
        if own is not None:
            found[count] = own
            numbers.setdefault(key, count)
    names = list(counts)
    rows = np.array([np.concatenate([counts[own].ravel(), far[own[1]][own[0]]]) for own in names])
    repeated = next(iter(experiment.values.values())).shape[2]
    at = np.concatenate([np.repeat(sizes, repeated), np.full(rows.shape[1] - len(sizes) * repeated, float(target))])
    for number in numbers.values():
        own = found[number]
        said = f"by {experiment.tree.label(number[0])[-40:]} {number[1]}, {own.text}"
        for place, values in _through(at, rows, rows[names.index(number)], float(target), own).items():
            if names[place] not in found and 0.0 < APART * min(values) < max(values):
                found[names[place]] = Open((min(values), max(values)), said)
    return found


def _by_itself(sizes: FloatArray, runs: FloatArray, target: float) -> Open | None:
    if np.ptp(runs, axis=1).any():
        two = undecided_mean(sizes, runs, target) if (runs.mean(axis=1) > 0).all() else None
        return None if two is None else Open((two[0].value, two[1].value), "; ".join(map(str, two)))
    counts = runs[:, 0] / np.gcd.reduce(runs[:, 0].astype(np.int64))
    if any(_reproduced(columns_of(form, sizes), counts[:, None])[0] for form in WHOLE):
        return None
    exact = undecided_count(sizes, counts, target)
    if exact is None:
        return None
    unit = runs[-1, 0] / counts[-1]
    return Open((unit * exact.values[0], unit * exact.values[1]), str(exact))


def _through(
    at: FloatArray, rows: FloatArray, numbers: FloatArray, target: float, own: Open
) -> dict[int, tuple[float, float]]:
    """Return the values of counts `rows` (K, R) at the target if they are f + g·v of `numbers` v (R,)."""
    powers = np.stack([at**0, at, at**2], axis=1)
    design = np.concatenate([powers, powers * numbers[:, None]], axis=1)
    distinct = len(np.unique(np.stack([at, numbers]), axis=1).T)
    if distinct < design.shape[1] + LEAST_FREE:
        return {}
    good = _reproduced(design, rows.T)
    scale = np.abs(design).max(axis=0)
    coefficients = np.linalg.lstsq(design / scale, rows[good].T, rcond=None)[0] / scale[:, None]
    there = np.array([1.0, target, target**2])
    ends = [np.concatenate([there, there * value]) @ coefficients for value in own.values]
    return dict(zip(np.flatnonzero(good).tolist(), zip(*(end.tolist() for end in ends), strict=True), strict=True))


def _reproduced(design: FloatArray, values: FloatArray) -> NDArray[np.bool_]:
    """Return which columns of `values` (R, K) a sum of the columns of `design` (R, F) reproduces, (K,)."""
    scale = np.abs(design).max(axis=0)
    found = np.linalg.lstsq(design / scale, values, rcond=None)[0]
    off = np.abs(design / scale @ found - values)
    return np.asarray((off <= REPRODUCED * np.abs(values).max(axis=0)).all(axis=0), dtype=bool)
