# SPDX-License-Identifier: Apache-2.0
"""Counters of few configurations: sums of one or two functions of D / P and P.

Counts of three profiles leave one degree of freedom to two functions, so the fitting functions of the paper, a·g(x) +
b, are joined by pairs without a constant (n/p · log n - n/p · log p of a sort, say) and by functions of the number of
processes. Simpler ones come first, and what comes later must reduce the residual by much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import nnls
from scipy.stats import t as student

from ..experiment import FloatArray
from ..pmnf.model import Prediction

# What comes later must have a residual that is smaller by this factor; below the second number all are alike.
_BETTER, _ALIKE = 0.4, 1e-4
_COVERAGE = 0.90  # of intervals, as those of all models

FUNCTIONS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "1": lambda x, _: np.ones_like(x),
    "x": lambda x, _: x,
    "x^(2/3)": lambda x, _: x ** (2 / 3),
    "x·log2(x)": lambda x, _: x * np.log2(x),
    "x^(1/2)": lambda x, _: x**0.5,
    "P": lambda _, p: p,
    "log2(P)": lambda _, p: np.log2(p),
    "P·log2(P)": lambda _, p: p * np.log2(p),
    "P²": lambda _, p: p**2,
    "x·P^(1/3)": lambda x, p: x * p ** (1 / 3),
    "x·log2(P)": lambda x, p: x * np.log2(p),
}
"""Of x = D / P and P: volumes and surfaces of blocks, sorting and merging, chains and trees of processes."""


@dataclass(frozen=True)
class Few:
    """Σ coefficient · function. residual: root mean square of the relative errors; freedom: of the fit."""

    names: tuple[str, ...]
    coefficients: tuple[float, ...]
    residual: float
    freedom: int

    def at(self, amount: float, processes: float) -> Prediction:
        """Return the value at x = D / P and P, not below 0, with a 90 % interval."""
        x, p = np.array([amount]), np.array([processes])
        value = sum(c * float(FUNCTIONS[n](x, p)[0]) for n, c in zip(self.names, self.coefficients, strict=True))
        half = (
            abs(value) * self.residual * (float(student.ppf(0.5 + _COVERAGE / 2, self.freedom)) if self.freedom else 1)
        )
        return Prediction(max(value, 0.0), max(value - half, 0.0), max(value + half, 0.0), False)

    def __str__(self) -> str:
        """Return the sum as a person writes it."""
        return " + ".join(
            f"{c:.4g}·{n}" if n != "1" else f"{c:.4g}" for n, c in zip(self.names, self.coefficients, strict=True)
        )


def fit_few(
    amounts: FloatArray, processes: FloatArray, values: FloatArray, counts: bool = True, scatter: float = 0.0
) -> Few:
    """Return the sum that explains values (C,) at amounts D / P and processes P (C,); all above 0.

    counts: the values are counts, not times. scatter: relative, of values that should be alike; what leaves less is not
    made any better.
    """
    weight = 1 / np.where(values > 0, values, max(float(values.max(initial=0.0)), 1e-300))
    columns = {name: function(amounts, processes) * weight for name, function in FUNCTIONS.items()}
    best = Few(("1",), (0.0,), float("inf"), 0)
    wanted = values * weight
    candidates = [(name,) for name in FUNCTIONS if name != "log2(P)"] + [
        pair for pair in combinations(FUNCTIONS, 2) if "P²" not in pair
    ]
    for names in candidates:
        if values.size < len(names) + 1 and best.names != ("1",):
            continue
        matrix = np.stack([columns[name] for name in names], axis=1)
        scale = np.abs(matrix).max(axis=0)
        if not (np.isfinite(scale) & (scale > 0)).all() or not np.isfinite(matrix / scale).all():
            continue
        if np.linalg.cond(matrix / scale) > 1e8:
            continue
        found = np.linalg.lstsq(matrix / scale, wanted, rcond=None)[0]
        if not _sound(names, found / scale, float(values.min()) if counts else 0.0):
            continue
        residual = float(np.sqrt(np.mean((matrix / scale @ found - wanted) ** 2)))
        if residual < _BETTER * best.residual and best.residual > max(_ALIKE, scatter):
            freedom = values.size - len(names)
            best = Few(
                names, tuple((found / scale).tolist()), residual * (values.size / max(freedom, 1)) ** 0.5, freedom
            )
    return best


def fit_line(amounts: FloatArray, values: FloatArray) -> Few:
    """Return a + b · D / P with a, b >= 0 by least squares of relative errors: what the system does for so much memory.

    amounts: D / P (C,); values: (C,), some above 0.
    """
    weight = 1 / np.where(values > 0, values, float(values.max()))
    columns = np.stack([np.ones_like(amounts), amounts], axis=1) * weight[:, None]
    scale = columns.max(axis=0)
    found, left = nnls(columns / scale, values * weight)
    freedom = max(values.size - 2, 0)
    coefficients = tuple((found / scale).tolist())
    return Few(("1", "x"), coefficients, float(left) / max(freedom, 1) ** 0.5, freedom)


def _sound(names: tuple[str, ...], coefficients: FloatArray, least: float) -> bool:
    """Whether a sum stays positive: counts are sums of parts; only a constant may be taken away, as from (n - 1).

    least: how much. More than the least of the values would make the sum a difference of two that are larger, and no
    part of a time is below 0.
    """
    signs = dict(zip(names, coefficients.tolist(), strict=True))
    return all(value >= (-least if name == "1" else 0.0) for name, value in signs.items())
