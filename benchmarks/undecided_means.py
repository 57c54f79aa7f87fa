# SPDX-License-Identifier: Apache-2.0
"""Find random counts that do not determine their extrapolation: two functions agree with all runs, but differ beyond.

    python benchmarks/undecided_means.py 512 16:43,43,44,44,44 24:65,65,64,65,65 32:85,85,85,85,85 ...

Such a count is a function of n plus deviations, which several runs of the same size show. The considered functions are
functions of simple loops: one of FUNCTIONS, or a sum of two of them. The second coefficient of a sum is only negative
where a loop ends earlier (SUBTRACTED). A function agrees with the runs under two conditions:

- The runs do not reject its form (F test of lack of fit at 5 %; Draper and Smith, Applied Regression Analysis, 1998,
  section 2.1).
- It is at most by LESS_LIKELY less likely than the likeliest function.

The program prints the two such functions with the smallest and the largest value at the target. If these values differ
by more than 2 %, no prediction is within 1 % of both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from quipu.modeling.experiment import FloatArray
from scipy.stats import f as f_distribution
from undecided_counts import APART, Function

# The functions in the order of their growth.
FUNCTIONS: dict[str, Function] = {
    "1": np.ones_like,
    "log2(n)": np.log2,
    "n^(1/2)": np.sqrt,
    "n": lambda n: n,
    "n·log2(n)": lambda n: n * np.log2(n),
    "n²": np.square,
}
# The sums a·f + b·g that may have b < 0: pairs of different elements, steps between elements, leaves of trees.
SUBTRACTED = {("log2(n)", "1"), ("n^(1/2)", "1"), ("n", "1"), ("n·log2(n)", "n"), ("n²", "n")}
FORMS = (*((name,) for name in FUNCTIONS), *((f, g) for g, f in combinations(FUNCTIONS, 2)))
# A nested loop does at least this share of the work of the outer loop: 10·n + 1e-5·n² is no function of loops.
LEAST_LEAD = 1e-3
# Largest difference of the log-likelihood from the likeliest function: 7 times less likely.
LESS_LIKELY = 2.0
REJECTED = 0.05
# Powers of the mean to which variances of runs may be proportional. Power 1: sums of independent events.
SCATTER_POWERS = (0.0, 0.5, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Means:
    """Means of runs at sizes (C,), and their variances (C,), estimated with `freedom` degrees of freedom."""

    sizes: FloatArray
    values: FloatArray
    variances: FloatArray
    freedom: int


@dataclass(frozen=True)
class Agreeing:
    """A function that agrees with the runs: its coefficients by the names of functions, and its value at the target."""

    value: float
    coefficients: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        """Return the function and its value at the target as text."""
        text = " + ".join(f"{size:.4g}" if name == "1" else f"{size:.4g}·{name}" for name, size in self.coefficients)
        return f"{text}: {self.value:g}"


def means_of(sizes: FloatArray, runs: FloatArray) -> Means:
    """Return the means of `runs` (C, R), at least two of each size, which differ somewhere.

    Variances go with a power of the mean, the likeliest one. The mean of rounded numbers that hardly differ is off by
    what it is rounded by: a uniform distribution, less the more they differ (the first harmonic of rounding errors;
    Widrow and Kollár, Quantization Noise, 2008, chapter 5).
    """
    values, (number, each) = runs.mean(axis=1), runs.shape
    squares = ((runs - values[:, None]) ** 2).sum(axis=1)
    level = np.maximum(values / values.max(), 1e-3)
    freedom = number * (each - 1)
    fits = []
    for power in SCATTER_POWERS:
        scale = float((squares / level**power).sum()) / freedom
        fits.append((freedom * np.log(scale) + (each - 1) * power * np.log(level).sum(), scale * level**power))
    _, variances = min(fits, key=lambda own: own[0])
    unit = 0.0
    if (runs == np.round(runs)).all():
        unit = float(np.gcd.reduce((runs - runs.min()).astype(np.int64).ravel()))
    rounding = unit**2 / 12.0 * np.exp(-4.0 * np.pi**2 * variances / unit**2) if unit else 0.0
    return Means(sizes, values, variances / each + rounding, freedom)


def extremes(means: Means, target: float) -> tuple[Agreeing, Agreeing] | None:
    """Return the functions that agree with the means, the smallest and the largest at the target, None without any."""
    number, freedom = means.sizes.size, means.freedom
    fits = [_fit(means, form) for form in FORMS]
    allowed = [
        fit is not None
        and _is_of_loops(form, fit[0])
        and fit[2] <= (number - len(form)) * f_distribution.isf(REJECTED, number - len(form), freedom)
        for form, fit in zip(FORMS, fits, strict=True)
    ]
    agreeing = [(form, fit) for form, fit, good in zip(FORMS, fits, allowed, strict=True) if good and fit is not None]
    if not agreeing:
        return None
    best = min(squares for _, (_, _, squares) in agreeing)
    # If the variance is estimated from `freedom` values, the likelihood is a power of 1 + squares/freedom.
    most = freedom * ((1.0 + best / freedom) * np.exp(2.0 * LESS_LIKELY / (number + freedom)) - 1.0)
    there = {form: columns_of(form, np.array([target]))[0] for form, _ in agreeing}
    found = [
        Agreeing(float(there[form] @ own), tuple(zip(form, own.tolist(), strict=True)))
        for form, (coefficients, covariance, squares) in agreeing
        if squares <= most
        for own in _farthest(coefficients, covariance, most - squares, there[form])
        if _is_of_loops(form, own)
    ]
    return min(found, key=lambda own: own.value), max(found, key=lambda own: own.value)


def undecided(sizes: FloatArray, runs: FloatArray, target: float) -> tuple[Agreeing, Agreeing] | None:
    """Return two functions that agree with the runs (C, R), if no prediction is within 1 % of both at the target."""
    found = extremes(means_of(sizes, runs), target)
    if found is None or not 0.0 < APART * found[0].value < found[1].value:
        return None
    return found


def columns_of(form: tuple[str, ...], sizes: FloatArray) -> FloatArray:
    return np.stack([FUNCTIONS[name](sizes) for name in form], axis=1)


def _fit(means: Means, form: tuple[str, ...]) -> tuple[FloatArray, FloatArray, float] | None:
    """Return coefficients, their covariance, and the sum of squares that is left, of standard deviations."""
    columns = columns_of(form, means.sizes) / np.sqrt(means.variances)[:, None]
    wanted = means.values / np.sqrt(means.variances)
    scale = np.abs(columns).max(axis=0)
    found, _, rank, _ = np.linalg.lstsq(columns / scale, wanted, rcond=None)
    if rank < len(form):
        return None
    covariance = np.linalg.inv((columns / scale).T @ (columns / scale)) / scale[:, None] / scale
    return found / scale, covariance, float(((columns / scale @ found - wanted) ** 2).sum())


def _is_of_loops(form: tuple[str, ...], coefficients: FloatArray) -> bool:
    """Return whether programs have such coefficients; the fastest growing function comes first."""
    inner = max((abs(size) for name, size in zip(form, coefficients.tolist(), strict=True) if name != "1"), default=0.0)
    shown = coefficients[0] > 0.0 and coefficients[0] >= LEAST_LEAD * inner
    return bool(shown) and (form in SUBTRACTED or bool((coefficients >= 0.0).all()))


def _farthest(coefficients: FloatArray, covariance: FloatArray, more: float, there: FloatArray) -> Iterator[FloatArray]:
    """Yield the likeliest coefficients, and those that are smallest and largest `there` of all that are likely enough.

    They are on the ellipsoid on which the sum of squares is `more` than the minimum.
    """
    yield coefficients
    along = covariance @ there
    step = np.sqrt(more / float(there @ along)) * along
    yield coefficients - step
    yield coefficients + step


def main() -> None:
    target, pairs = float(sys.argv[1]), [pair.split(":") for pair in sys.argv[2:]]
    sizes = np.array([float(size) for size, _ in pairs])
    runs = np.array([[float(run) for run in own.split(",")] for _, own in pairs])
    for own in extremes(means_of(sizes, runs), target) or ("no function agrees with the runs",):
        print(own)


if __name__ == "__main__":
    main()
