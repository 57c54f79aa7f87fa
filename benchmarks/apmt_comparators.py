# SPDX-License-Identifier: Apache-2.0
"""Predict run times by models of the total time, for comparison with APMT (section 5, Fig. 11 and 12 of its paper)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from quipu.modeling.experiment import FloatArray
from scipy.optimize import nnls


@dataclass(frozen=True)
class Analytical:
    """T = a · (problem size / P) + b in seconds (Nan et al. 2014)."""

    a: float
    b: float

    def at(self, processes: float, size: float) -> float:
        """Return the time in seconds."""
        return self.a * size / processes + self.b


@dataclass(frozen=True)
class Empirical:
    """T = a / P + b · P^c + d in seconds (Worley et al. 2011); with several problem sizes, T per unit of size."""

    a: float
    b: float
    c: float
    d: float
    per_size: bool

    def at(self, processes: float, size: float) -> float:
        """Return the time in seconds."""
        value = self.a / processes + self.b * processes**self.c + self.d
        return float(value * size if self.per_size else value)


def fit_analytical(processes: FloatArray, sizes: FloatArray, times: FloatArray) -> Analytical:
    """Return the model by least squares. processes, sizes, times: (C,)."""
    columns = np.stack([sizes / processes, np.ones_like(times)], axis=1)
    (a, b), *_ = np.linalg.lstsq(columns, times, rcond=None)
    return Analytical(float(a), float(b))


# Exponents that are tried, because the paper gives no method: from hardly any growth to the growth of a loop over all
# processes.
_EXPONENTS = np.linspace(0.1, 1.0, 10)


def fit_empirical(processes: FloatArray, sizes: FloatArray, times: FloatArray) -> Empirical:
    """Return the model by nonnegative least squares, with the exponent c of the smallest residual.

    The model contains no problem size, so times of several sizes are divided by the size.
    """
    per_size = np.unique(sizes).size > 1
    values = times / sizes if per_size else times
    scale = float(values.max())
    best: tuple[float, Empirical] | None = None
    for c in _EXPONENTS.tolist():
        columns = np.stack([1 / processes, processes**c, np.ones_like(processes)], axis=1)
        found, left = nnls(columns, values / scale)
        a, b, d = (found * scale).tolist()
        if best is None or left < best[0] * (1 - 1e-9):
            best = float(left), Empirical(a, b, c, d, per_size)
    assert best is not None
    return best[1]
