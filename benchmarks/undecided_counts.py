# SPDX-License-Identifier: Apache-2.0
"""Find whole numbers that do not determine their extrapolation: two functions reproduce them, but differ at the target.

    python benchmarks/undecided_counts.py 192 8:34 11:45 14:56 17:68 20:79 24:94

A number of iterations is a function of n that is rounded up or down. The program considers all functions
a·f(n) + b·g(n) that reproduce all measured numbers after rounding. It prints the two functions with the smallest and
the largest value at the target; these are vertices of the polygon of possible a and b. If their values differ by more
than 2 %, no prediction is within 1 % of both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from quipu.modeling.experiment import FloatArray

Function = Callable[[FloatArray], FloatArray]
# Pairs of functions of n for numbers of iterations and of passes.
FORMS: dict[str, tuple[Function, Function]] = {
    "a·n + b": (lambda n: n, np.ones_like),
    "a·log2(n) + b": (np.log2, np.ones_like),
}
ROUNDED: dict[str, Callable[[FloatArray], FloatArray]] = {"up": np.ceil, "down": np.floor}
# Distance of functions from their bounds, so that rounding errors of floating point have no effect.
INSIDE = 1e-6
# Largest ratio for which a prediction can be within 1 % of both.
APART = 1.01 / 0.99


@dataclass(frozen=True)
class Extremes:
    """The smallest and the largest function of a form at the target: (a, b), and the values there."""

    form: str
    rounded: str
    coefficients: tuple[tuple[float, float], tuple[float, float]]
    values: tuple[float, float]

    def __str__(self) -> str:
        """Return both functions and their values at the target as text."""
        pairs = zip(self.coefficients, self.values, strict=True)
        both = ", ".join(f"a={a:.4f}, b={b:.4f}: {value:g}" for (a, b), value in pairs)
        return f"{self.form} rounded {self.rounded}: {both}"

    @property
    def apart(self) -> bool:
        """Return whether no prediction is within 1 % of both."""
        low, high = self.values
        return high > APART * low > 0.0


def extremes(sizes: FloatArray, counts: FloatArray, target: float, form: str, rounded: str) -> Extremes | None:
    """Return the extremes of the functions that give the counts (C,) exactly at the sizes (C,), None without any."""
    columns, there = (np.stack([f(at) for f in FORMS[form]], axis=1) for at in (sizes, np.array([target])))
    below, above = (-1.0, 0.0) if rounded == "up" else (0.0, 1.0)
    bounds = np.concatenate([counts + below + INSIDE, counts + above - INSIDE])
    lines = np.concatenate([columns, columns])
    found = []
    for i, j in combinations(range(len(lines)), 2):
        if abs(np.linalg.det(lines[[i, j]])) > 1e-9:
            vertex = np.linalg.solve(lines[[i, j]], bounds[[i, j]])
            if (ROUNDED[rounded](columns @ vertex) == counts).all():
                found.append((float(ROUNDED[rounded](there @ vertex)[0]), (float(vertex[0]), float(vertex[1]))))
    if not found:
        return None
    (low, first), (high, last) = min(found), max(found)
    return Extremes(form, rounded, (first, last), (low, high))


def undecided(sizes: FloatArray, counts: FloatArray, target: float) -> Extremes | None:
    """Return two functions that reproduce all counts, if no prediction is within 1 % of both at the target, or None."""
    for form in FORMS:
        for rounded in ROUNDED:
            found = extremes(sizes, counts, target, form, rounded)
            if found is not None and found.apart:
                return found
    return None


def main() -> None:
    pairs = np.array([pair.split(":") for pair in sys.argv[2:]], dtype=np.float64)
    for form in FORMS:
        for rounded in ROUNDED:
            print(extremes(pairs[:, 0], pairs[:, 1], float(sys.argv[1]), form, rounded) or f"{form} {rounded}: none")


if __name__ == "__main__":
    main()
