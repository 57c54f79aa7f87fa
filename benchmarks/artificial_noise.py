# SPDX-License-Identifier: Apache-2.0
"""Add artificial noise to measured times, to test models (de Morais et al., section V-A, artificial noise).

A time y becomes y + η with η = intensity · y · X, where X is drawn from one of the patterns of the paper and clipped to
[0, 1]. Noise is therefore never negative.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import FloatArray
from scipy import stats

# The intensities of the paper.
INTENSITIES = (0.02, 0.05, 0.10, 0.50, 0.75)
# λ and the divisor of the Poisson and the exponential pattern.
_RATE, _SCALE = 1000.0, 1000.0


class Pattern(Enum):
    """The distribution of X (module docstring)."""

    NONE = "none"
    UNIFORM = "uniform"
    TRUNCATED_NORMAL = "truncated normal"
    SCALED_POISSON = "scaled Poisson"
    SCALED_EXPONENTIAL = "scaled exponential"


def draw(pattern: Pattern, shape: tuple[int, ...], random: np.random.Generator) -> FloatArray:
    """Return numbers X between 0 and 1.

    Uniform on [0, 1]; normal (μ = 0, σ = 1) truncated to [0, 1]; Poisson (λ = 1000) divided by the scale 1000;
    exponential of mean λ = 1000 divided by the scale 1000. All are clipped to [0, 1].
    """
    if pattern is Pattern.NONE:
        return np.zeros(shape)
    if pattern is Pattern.UNIFORM:
        found = random.uniform(0.0, 1.0, shape)
    elif pattern is Pattern.TRUNCATED_NORMAL:
        found = stats.truncnorm.ppf(random.uniform(0.0, 1.0, shape), 0.0, 1.0)
    elif pattern is Pattern.SCALED_POISSON:
        found = random.poisson(_RATE, shape) / _SCALE
    else:
        found = random.exponential(_RATE, shape) / _SCALE
    return np.clip(np.asarray(found, dtype=np.float64), 0.0, 1.0)


def inject(
    values: FloatArray, pattern: Pattern, intensity: float, random: np.random.Generator, share: float = 1.0
) -> FloatArray:
    """Return times with noise, each measurement hit with probability `share`; NaN stays NaN.

    Raises ModelingError if the intensity is below 0 or the share is no probability.
    """
    if not intensity >= 0.0 or not 0.0 <= share <= 1.0:
        raise ModelingError(f"noise of intensity {intensity:g} on a share of {share:g}: both must be 0 or above")
    hit = random.uniform(0.0, 1.0, values.shape) < share
    noise: FloatArray = values * (1.0 + intensity * np.where(hit, draw(pattern, values.shape, random), 0.0))
    return noise
