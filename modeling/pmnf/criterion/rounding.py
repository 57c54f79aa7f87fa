# SPDX-License-Identifier: Apache-2.0
"""Criterion for counts within rounding of a function: the marginal likelihood of deviations of about one count.

Many sums of two or three functions fit counts at five values. They are ranked by Laplace's approximation of their
marginal likelihood (MacKay, Information Theory, Inference, and Learning Algorithms, 2003, section 28.2) with
coefficients of unknown magnitude (Jeffreys' prior 1/|c|). The penalty of a coefficient is therefore the number of
digits that the counts determine; a large constant has the penalty of a further function.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import (
    ROUNDED,
    ROUNDED_LEAST_EVIDENCE,
    ROUNDED_LEAST_GAIN,
    ROUNDED_LEAST_TERM,
    ROUNDING_EXPECTED,
    ROUNDING_MOST,
)
from ..data.lines import independent
from ..data.preparation import unit_of
from ..fit.fitter import with_constant
from ..hypotheses.pool import Fitted
from ..hypotheses.tables import Tables
from .criterion import ALL, Criterion, Rows


class Rounding(Criterion):
    """Criterion for counts (N, C) at `points` (C, m)."""

    def __init__(self, points: FloatArray, tables: Tables, values: FloatArray) -> None:
        super().__init__(tables, values, np.ones_like(values))
        self.observations = independent(points, values, lambda part: ROUNDING_MOST)
        # values that are multiples of a message or of a page are rounded to that unit
        self.unit = unit_of(values, np.full(len(values), ROUNDING_MOST))

    def scores(self, fitted: Fitted, rows: Rows = ALL) -> FloatArray:
        """Return scores (M, 1) of hypotheses (M, 1, K, m) of call paths `rows`; inf without support by counts."""
        specification, coefficients = fitted.specification[:, 0], fitted.coefficients[:, 0]
        values = self.values[rows]
        constant = bool((coefficients[:, 0] != 0).any())
        scores = np.full((len(values), 1), np.inf)
        unit = self.unit[rows]
        width = specification.shape[1] + int(constant)
        near = np.flatnonzero(fitted.worst[:, 0] <= ROUNDING_MOST)
        specification, coefficients, values = specification[near], coefficients[near], values[near]
        design = self.tables.design(specification)
        part = np.abs(coefficients[:, 1:, None] * design).max(axis=2)
        order = self.tables.order(specification)
        lead = np.take_along_axis(coefficients[:, 1:], order.argmax(axis=1)[:, None], axis=1)[:, 0]
        number = self.observations[rows][near]
        evidence = np.log(np.maximum(np.ptp(values, axis=1), 1.0) / unit[near])
        credible = (part >= ROUNDED_LEAST_TERM * ROUNDING_MOST).all(axis=1) & (lead > 0)
        credible &= evidence * (number - width) >= ROUNDED_LEAST_EVIDENCE
        columns, factors = design[credible], coefficients[credible]
        columns, factors = (with_constant(columns), factors) if constant else (columns, factors[:, 1:])
        triangle = np.linalg.qr(columns.transpose(0, 2, 1), mode="r")
        sizes = np.abs(np.einsum("hkk->hk", triangle)) * np.abs(factors) / ROUNDING_EXPECTED
        squares = fitted.residual[near[credible], 0] ** 2
        scores[near[credible], 0] = (
            number[credible] * np.log(squares + ROUNDING_EXPECTED**2)
            + 2.0 * np.log(np.maximum(sizes, 1.0)).sum(axis=1)
            + ROUNDED.coefficient * width
            + ROUNDED.negative * (factors < 0).sum(axis=1)
            + ROUNDED.complexity * self.tables.complexity(specification[credible])
        )
        return scores

    def surer(self, width: NDArray[np.int64], deviations: FloatArray, rows: Rows = ALL) -> NDArray[np.bool_]:
        """Return (M,) whether rounding of hypotheses explains deviations of simpler hypotheses.

        width: (M,) coefficients of hypotheses within rounding. deviations: (M, C) of the simpler hypotheses, in counts;
        their part above rounding, at the remaining number of points, must exceed what functions fit by chance.
        """
        above = np.log(np.maximum(deviations / ROUNDING_EXPECTED, 1.0)).mean(axis=1)
        return np.asarray(above * (self.observations[rows] - width) >= ROUNDED_LEAST_GAIN, dtype=bool)
