# SPDX-License-Identifier: Apache-2.0
"""Noise analysis: how far repetitions are from their mean, per call path and metric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...experiment import FloatArray
from ..calibration import LOUD_NOISE, SIGNIFICANT_VARIATION

# Quantiles of the distribution of deviations that are reported.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Deviation:
    """Relative deviations (value - mean)/mean of the repetitions of one call path.

    The mean is that of the configuration. Only configurations with two or more repetitions and a mean other than 0
    count. Without such a configuration, quantiles, level, standard, worst and range are NaN, and worst_point is -1.

    quantiles: of the deviations, at QUANTILES. level: mean absolute deviation. standard: standard deviation, with one
    degree of freedom less per configuration. worst: the largest absolute deviation. worst_point: index of the
    configuration with this deviation. repetitions: smallest and largest number among the measured configurations.
    range: median over the configurations of (largest - smallest)/mean, the noise level of Ritter et al.,
    Cost-Effective Empirical Performance Modeling, figure 8. warning: "not measured", "no repetitions …", or why the
    noise permits no model but a constant; "" otherwise.
    """

    quantiles: tuple[float, ...]
    level: float
    standard: float
    worst: float
    worst_point: int
    repetitions: tuple[int, int]
    range: float = float("nan")
    warning: str = ""


def deviations(values: FloatArray) -> list[Deviation]:
    """Return the noise of each of N call paths.

    values: (N, C, R) of C configurations with up to R repetitions, NaN for repetitions that do not exist.
    """
    return [_one(own) for own in np.asarray(values, dtype=np.float64)]


def _one(values: FloatArray) -> Deviation:
    known = np.isfinite(values)
    count = known.sum(axis=1)
    rows = np.flatnonzero(count > 0)
    nothing = (float("nan"),) * len(QUANTILES)
    if not rows.size:
        return Deviation(nothing, *(float("nan"),) * 3, -1, (0, 0), warning="not measured")
    span = int(count[rows].min()), int(count[rows].max())
    scale = np.abs(np.where(known, values, 0.0)).max()
    scale = scale if scale > 0 else 1.0
    scaled = np.where(known, values / scale, 0.0)
    mean = scaled.sum(axis=1) / np.maximum(count, 1)
    repeated = np.flatnonzero((count > 1) & (np.abs(mean) > 1e-300))
    if not repeated.size:
        return Deviation(nothing, *(float("nan"),) * 3, -1, span, warning="no repetitions: the noise is unknown")
    relative = np.where(known, scaled / np.where(mean != 0, mean, 1.0)[:, None] - 1.0, np.nan)[repeated]
    flat = relative[known[repeated]]
    freedom = max(int((count[repeated] - 1).sum()), 1)
    standard = float(np.sqrt((flat**2).sum() / freedom))
    worst = np.nanmax(np.abs(relative), axis=1)
    uncertain = standard / np.sqrt(float(count[repeated].mean()))
    typical = max(float(np.abs(mean[rows]).mean()), 1e-300)
    variation = float(np.std(mean[rows], ddof=1) / typical) if rows.size > 1 else 0.0
    # If n means differ by chance alone, (variation/uncertain)² is distributed like χ²/(n - 1) with n - 1 degrees of
    # freedom: its mean is 1, its standard deviation √(2/(n - 1)).
    by_chance = uncertain * np.sqrt(1.0 + SIGNIFICANT_VARIATION * np.sqrt(2.0 / max(rows.size - 1, 1)))
    warning = ""
    if rows.size > 1 and variation < by_chance and standard > LOUD_NOISE:
        warning = (
            f"values differ by {100 * variation:.0f} % between configurations, where noise alone makes "
            f"{100 * uncertain:.0f} %: repetitions cannot support more than a constant"
        )
    return Deviation(
        tuple(float(q) for q in np.quantile(flat, QUANTILES)),
        float(np.abs(flat).mean()),
        standard,
        float(worst.max()),
        int(repeated[int(worst.argmax())]),
        span,
        float(np.median(np.nanmax(relative, axis=1) - np.nanmin(relative, axis=1))),
        warning,
    )
