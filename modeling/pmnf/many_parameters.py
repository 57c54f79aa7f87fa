# SPDX-License-Identifier: Apache-2.0
"""Model more parameters than can be searched together, by the parameters that explain most of the values.

The number of forms grows faster than exponentially with the parameters (partitions of all their subsets: 203 with five,
21147 with eight), and so do time and memory. Each call path is therefore modeled in a limited number of parameters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..experiment import FloatArray
from .model import Model
from .model.model import covariance_in

MOST_PARAMETERS = 5
"""Number of parameters that are searched together: seconds of processor time for a call path that no form explains."""
_NEGLIGIBLE = 1e-9
_EXACT = 1e-3  # percent


def influential(points: FloatArray, values: FloatArray) -> tuple[int, ...]:
    """Return the columns of the parameters that explain most of the values, at most `MOST_PARAMETERS`, in their order.

    points: (C, m); values: (C,), NaN where not measured. Parameters and their logarithms are selected one after the
    other, by how much more of the squares they explain (orthogonal matching pursuit; Pati et al., 1993). If all values
    are positive, their logarithms are used.
    """
    varied = [at for at in range(points.shape[1]) if np.ptp(points[:, at]) > 0]
    if len(varied) <= MOST_PARAMETERS:
        return tuple(varied)
    known = np.isfinite(values)
    places, wanted = points[known], values[known]
    if not wanted.size:
        return tuple(varied[:MOST_PARAMETERS])
    wanted = np.log(wanted) if wanted.min() > 0 else wanted
    rest = wanted - wanted.mean()
    start = float(rest @ rest)
    columns = {at: _columns(places[:, at]) for at in varied}
    chosen: list[int] = []
    basis = np.ones((len(wanted), 1)) / np.sqrt(len(wanted))
    while len(chosen) < MOST_PARAMETERS:
        gains = {at: _explained(columns[at], basis, rest) for at in varied if at not in chosen}
        best = max(gains, key=lambda at: gains[at])
        chosen.append(best)
        if gains[best] <= _NEGLIGIBLE * start:
            break
        basis = np.linalg.qr(np.column_stack([basis, columns[best]]))[0]
        rest = rest - basis @ (basis.T @ rest)
    return tuple(sorted(chosen))


def _columns(values: FloatArray) -> FloatArray:
    """Return a parameter and its logarithm, (C, 2), with mean 0 and equal norms."""
    both = np.column_stack([values, np.log(np.where(values > 0, values, 1.0))])
    both = both - both.mean(axis=0)
    size = np.sqrt((both**2).sum(axis=0))
    result: FloatArray = both / np.where(size > 0, size, 1.0)
    return result


def _explained(columns: FloatArray, basis: FloatArray, rest: FloatArray) -> float:
    """Return by how much further columns reduce the squared residuals."""
    further = columns - basis @ (basis.T @ columns)
    left, sizes, _ = np.linalg.svd(further, full_matrices=False)
    along = left[:, sizes > 1e-6].T @ rest
    return float(along @ along)


def in_all(model: Model, names: tuple[str, ...], ranges: tuple[tuple[float, float], ...]) -> Model:
    """Return a model of some parameters as a model of all, with a note that names the others.

    ranges: the measured values of all parameters.
    """
    varied = [name for name, (low, high) in zip(names, ranges, strict=True) if high > low]
    notes = model.notes
    missed = model.quality is None or model.quality.smape > _EXACT
    if missed and (left := [name for name in varied if name not in model.parameters]):
        searched = ", ".join(model.parameters) or "none"
        more = "" if len(left) <= MOST_PARAMETERS else f" and {len(left) - MOST_PARAMETERS} more"
        notes += (
            f"{len(varied)} parameters are too many to be searched together: of {searched}, which explain most; the "
            f"effect of {', '.join(left[:MOST_PARAMETERS])}{more} is not modeled (for many parameters: quipu tensor)",
        )
    whole = replace(model, parameters=names, ranges=ranges, covariance=(), notes=notes)
    if not model.covariance:
        return whole
    covariance = covariance_in(model, whole, 1.0)
    return replace(whole, covariance=tuple(tuple(row) for row in covariance.tolist()))
