# SPDX-License-Identifier: Apache-2.0
"""Model costs without noise, as in simulations: the exact function, if a short one reproduces all values.

Parts may be negative, as in 3·p - 3 or p² - p, if the sum is positive at the points and further out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..experiment import FloatArray
from .build import whole_coefficients
from .counts import model_counts
from .criterion.evidence import Evidence
from .criterion.exactness import Exactness
from .criterion.signed import negative
from .crossing.hidden import never_together
from .data.noise import Repetitions
from .data.preparation import take
from .hypotheses.pool import Pool, merge, spread
from .hypotheses.tables import Tables


def with_exact(points: FloatArray, beyond: Tables, criterion: Evidence, repetitions: Repetitions, pool: Pool) -> Pool:
    """Return the pool with exact functions first, for call paths with equal repetitions and without exact hypothesis.

    points: (C, m); beyond: the tables there and further out. At least two points must confirm a function. If parameters
    never change together, sums and products are equally exact, so functions of several parameters are not used.
    """
    exactness = Exactness(criterion.tables, criterion.values)
    rows = ~repetitions.differ & (pool.residual.min(axis=1) > exactness.rounding)
    if not rows.any():
        return pool
    part = take(repetitions, np.flatnonzero(rows), np.ones(len(points), dtype=bool))
    found, exact = model_counts(points, criterion.tables, part, exact_only=True)
    specification, coefficients = found.specification[:, 0], found.coefficients[:, 0]
    exact &= (coefficients != 0).sum(axis=1) <= len(points) - 2
    used = np.asarray((specification >= 0).any(axis=1), dtype=bool)
    for apart in never_together(points):
        exact &= used[:, apart].sum(axis=1) < 2
    if criterion.nonnegative:
        exact &= ~negative(criterion.tables, beyond, specification, coefficients)
    score = np.where(exact[:, None], found.score[:, :1], np.inf)
    divisor = np.concatenate([np.ones((len(exact), 1)), criterion.tables.divisor(specification)], axis=1)
    clean = (whole_coefficients(coefficients / divisor) * divisor)[:, None]
    first = replace(found.rows((slice(None), slice(0, 1))), coefficients=clean, score=score)
    return merge([pool, spread(first, rows)], pool.score.shape[1])
