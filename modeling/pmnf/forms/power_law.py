# SPDX-License-Identifier: Apache-2.0
"""Power laws of counts that scatter so widely that relative errors mislead.

A function far below all counts misses each by 100 % and no more, one that is twice a count misses it by as much: where
counts scatter by factors, the least squares of relative errors are those of a function below nearly all of them. There
errors of logarithms are alike in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..build import qualities
from ..calibration import FAR_OFF, POWER_LAW_BETTER, POWER_LAW_DENOMINATOR, POWER_LAW_LEAST
from ..data.preparation import ranges
from ..model import Factor, Model, Term
from .unexplained import missed

_Flags = NDArray[np.bool_]


def by_power_law(
    models: Sequence[Model | None], points: FloatArray, counts: FloatArray, used: _Flags, names: Sequence[str]
) -> dict[int, Model]:
    """Return c·x1^a·x2^b… for the call paths whose `models` miss the counts (N, C) by far, where it is much nearer.

    points: (C, m). used: (N, C), where a call path was executed. Nearer are logarithms, for each degree of freedom.
    """
    found = {}
    for path, former in enumerate(models):
        at = used[path]
        if former is None or not np.isfinite(missed(former)) or missed(former) <= FAR_OFF or not at.any():
            continue
        model = _power_law(former, points[at], counts[path, at], names)
        if model is not None:
            found[path] = model
    return found


def _power_law(former: Model, points: FloatArray, counts: FloatArray, names: Sequence[str]) -> Model | None:
    varying = [i for i in range(len(names)) if np.unique(points[:, i]).size >= POWER_LAW_LEAST]
    if (counts <= 0.0).any() or (points[:, varying] <= 0.0).any() or not varying:
        return None
    width = 1 + len(varying)
    if len(counts) < POWER_LAW_LEAST * width:
        return None
    logs = np.log(counts)
    design = np.concatenate([np.ones((len(counts), 1)), np.log(points[:, varying])], axis=1)
    powers = [
        Fraction(b).limit_denominator(POWER_LAW_DENOMINATOR) for b in np.linalg.lstsq(design, logs)[0][1:].tolist()
    ]
    slopes = design[:, 1:] @ np.array([float(power) for power in powers])
    level = float((logs - slopes).mean())
    left = float(((logs - slopes - level) ** 2).sum()) / (len(counts) - width)
    before = np.log(np.maximum(former.evaluate(points), 1e-9 * counts.min())) - logs
    freedom = max(1, len(counts) - len(former.terms) - 1)
    if left > POWER_LAW_BETTER**2 * float((before**2).sum()) / freedom:
        return None
    term = Term(float(np.exp(level)), tuple(Factor(names[i], b) for i, b in zip(varying, powers, strict=True) if b))
    law = Model(tuple(names), 0.0, (term,), ranges=ranges(points), notes=former.notes)
    (quality,) = qualities(counts[None], law.evaluate(points)[None], np.array([np.nan]), np.array([width]))
    covariance = _covariance(left * np.linalg.inv(design.T @ design), term.coefficient, varying, len(names))
    return replace(law, quality=quality, covariance=covariance)


def _covariance(
    of_logs: FloatArray, coefficient: float, varying: Sequence[int], parameters: int
) -> tuple[tuple[float, ...], ...]:
    """Return the covariance of the coefficient and of its deviations of exponents, in the rows that `Model` has.

    of_logs: that of the logarithm of the coefficient and the exponents of the parameters `varying`.
    """
    rows = [1, *(2 * (1 + i) + 1 for i in varying)]
    size = 2 * (1 + parameters) + parameters
    result = np.zeros((size, size))
    result[np.ix_(rows, rows)] = coefficient**2 * of_logs
    return tuple(map(tuple, result.tolist()))
