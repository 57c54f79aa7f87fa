# SPDX-License-Identifier: Apache-2.0
"""Estimate the variances of many call paths together, because each variance is known from few runs.

Call paths of a program are measured in the same runs on the same machine. Their variances are therefore treated as
draws from one distribution, s0²·d0/χ²(d0). The spread of the variances determines d0 and s0². If the variances are
similar, their mean is used; if they differ by orders of magnitude, each variance is used alone.

Source: Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments", Statistical Applications in Genetics and Molecular Biology 3 (2004), sections 4 and 6.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import overload

import numpy as np
from scipy import optimize, special

from ..experiment import FloatArray

# A variance with at least this number of degrees of freedom counts as known.
MOST_FREEDOM = 1e4
_LEAST_FREEDOM = 1e-2
# The smallest number of variances from which their spread is estimated.
_LEAST_COUNT = 3


@dataclass(frozen=True)
class CommonVariance:
    """The distribution of variances: s0² (`variance`) with d0 degrees of freedom (`freedom`; 0: unknown)."""

    variance: float
    freedom: float

    @overload
    def moderated(self, variance: float, freedom: float) -> tuple[float, float]: ...
    @overload
    def moderated(self, variance: FloatArray, freedom: FloatArray) -> tuple[FloatArray, FloatArray]: ...
    def moderated(
        self, variance: float | FloatArray, freedom: float | FloatArray
    ) -> tuple[float | FloatArray, float | FloatArray]:
        """Return the posterior mean of variances with its degrees of freedom (section 3, equation for s̃²)."""
        total = self.freedom + freedom
        return (self.freedom * self.variance + freedom * variance) / total, total


NOTHING_KNOWN = CommonVariance(0.0, 0.0)


def common_variance(variances: FloatArray, freedom: FloatArray) -> CommonVariance:
    """Return the distribution of variances (N,) with degrees of freedom (N,).

    Matches the moments of the logarithms (section 6.2). Ignores variances that are 0 or have no degrees of freedom.
    """
    known = (variances > 0.0) & (freedom > 0.0) & np.isfinite(variances)
    variances, freedom = variances[known], freedom[known]
    if len(variances) < _LEAST_COUNT:
        return NOTHING_KNOWN
    half = freedom / 2.0
    logs = np.log(variances) - special.digamma(half) + np.log(half)
    mean = float(logs.mean())
    spread = float(((logs - mean) ** 2).sum() / (len(logs) - 1) - special.polygamma(1, half).mean())
    if spread <= float(special.polygamma(1, MOST_FREEDOM / 2.0)):
        own = MOST_FREEDOM / 2.0
    elif spread >= float(special.polygamma(1, _LEAST_FREEDOM / 2.0)):
        return NOTHING_KNOWN
    else:
        own = math.exp(
            optimize.brentq(
                lambda log: float(special.polygamma(1, math.exp(log))) - spread,
                math.log(_LEAST_FREEDOM / 2.0),
                math.log(MOST_FREEDOM / 2.0),
            )
        )
    return CommonVariance(math.exp(mean + float(special.digamma(own)) - math.log(own)), 2.0 * own)
