# SPDX-License-Identifier: Apache-2.0
"""Find counts that do not determine their loops: two sums of loop nests reproduce all counts, but differ at the target.

The program considers all sums of at most a given number of loop nests that reproduce all measured counts. Coefficients
are whole numbers in the range of real programs. Integer linear programs find the two sums with the smallest and the
largest value at the target. If these values differ by more than 2 %, no prediction is within 1 % of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from quipu.modeling.experiment import FloatArray
from scipy.optimize import Bounds, LinearConstraint, milp
from undecided_counts import APART

# Seconds for one of the two integer linear programs; without a proven optimum, the best solution is used.
LIMIT = 20.0


@dataclass(frozen=True)
class Sums:
    """The smallest and the largest sum at the target: for both the coefficient of each nest, and the values there."""

    coefficients: tuple[dict[int, int], dict[int, int]]
    values: tuple[float, float]

    @property
    def apart(self) -> bool:
        """Return whether no prediction is within 1 % of both."""
        low, high = self.values
        return high > APART * low > 0.0


def extremes(here: FloatArray, there: FloatArray, counts: FloatArray, most: int, largest: int) -> Sums | None:
    """Return the extremes at the target of sums of at most `most` nests that give the counts (C,); None without any.

    here: (M, C), whole numbers, what each nest counts where it was measured; there: (M,), at the target. Coefficients
    are whole numbers up to `largest`.
    """
    number = len(here)
    # For each nest, the variables are its coefficient, and whether it is used.
    agree = LinearConstraint(np.concatenate([here.T, np.zeros_like(here.T)], axis=1), counts, counts)
    used = LinearConstraint(np.concatenate([np.eye(number), -float(largest) * np.eye(number)], axis=1), -np.inf, 0.0)
    few = LinearConstraint(np.concatenate([np.zeros(number), np.ones(number)])[None], 0.0, float(most))
    bounds = Bounds(np.zeros(2 * number), np.repeat([float(largest), 1.0], number))
    found = []
    for sign in (1.0, -1.0):
        result = milp(
            np.concatenate([sign * there, np.zeros(number)]),
            constraints=[agree, used, few],
            integrality=np.ones(2 * number),
            bounds=bounds,
            options={"time_limit": LIMIT},
        )
        if result.x is None:
            return None
        whole = np.round(result.x[:number])
        if np.count_nonzero(whole) > most or not (whole @ here == counts).all():
            return None
        found.append(whole)
    first, last = ({int(place): int(own[place]) for place in np.flatnonzero(own)} for own in found)
    return Sums((first, last), (float(found[0] @ there), float(found[1] @ there)))
