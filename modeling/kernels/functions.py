# SPDX-License-Identifier: Apache-2.0
"""The fitting functions a·g(x) + b of APMT, where g is a power, a logarithm, x·log2(x) or an exponential.

Section 3.3 of the paper (kernels/__init__.py): "a set of linear fitting functions including polynomial, exponential and
logarithm for each hardware counter". The function with the highest R² is selected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from scipy.stats import t as student

from ..errors import ModelingError
from ..experiment import FloatArray
from ..pmnf.model import Prediction

# Differences of R² by rounding: among functions with equal R², the first and simplest is selected.
_ALIKE = 1e-12
_COVERAGE = 0.90  # probability of intervals, as for all models


@dataclass(frozen=True)
class Form:
    """g(x) and its text. scaled: g is evaluated at x divided by the largest measured x, because exp(x) overflows."""

    text: str
    function: Callable[[FloatArray], FloatArray]
    scaled: bool = False


def _power(exponent: float, text: str) -> Form:
    return Form(text, lambda x: np.asarray(x**exponent))


FORMS = (
    _power(1.0, "x"),
    _power(2.0, "x²"),
    _power(3.0, "x³"),
    Form("log2(x)", lambda x: np.asarray(np.log2(x))),
    Form("x·log2(x)", lambda x: np.asarray(x * np.log2(x))),
    Form("exp(x/xmax)", lambda x: np.asarray(np.exp(x)), scaled=True),
)
"""The predefined functions, simplest first: polynomial, logarithm, their product, exponential."""


@dataclass(frozen=True)
class Fitted:
    """The function a·g(x) + b.

    - r2: the coefficient of determination. error: standard deviation of the residuals. points: their number.
    - largest: the largest measured x. Functions with `scaled` get x / largest.
    - mean, spread: mean of g at the measured points, and its sum of squares about the mean; infinite for a constant.
    """

    form: Form
    a: float
    b: float
    r2: float
    error: float
    points: int
    largest: float
    mean: float
    spread: float

    def at(self, x: float) -> Prediction:
        """Return the value at x, not below 0, and the 90 % interval of the regression line.

        The interval has no width without a point beyond the coefficients. Raises ModelingError if the value is not
        finite.
        """
        g = float(_terms(self.form, np.array([x]), self.largest)[0])
        value = self.a * g + self.b
        if not isfinite(value):
            raise ModelingError(f"{self} has no finite value at x = {x:g}")
        freedom = self.points - (2 if self.a else 1)
        half = 0.0
        if freedom > 0 and self.error > 0 and self.spread > 0:
            scale = (1 / self.points + (g - self.mean) ** 2 / self.spread) ** 0.5
            half = float(student.ppf(0.5 + _COVERAGE / 2, freedom)) * self.error * scale
        return Prediction(max(value, 0.0), max(value - half, 0.0), max(value + half, 0.0), x > self.largest)

    def __str__(self) -> str:
        """Return the function as text."""
        if not self.a:
            return f"{self.b:.4g}"
        return f"{self.a:.4g}·{self.form.text}" + (f" {'+' if self.b > 0 else '-'} {abs(self.b):.4g}" if self.b else "")


def best_fit(x: FloatArray, y: FloatArray, forms: tuple[Form, ...] = FORMS) -> Fitted:
    """Return the function with the highest R² at points x > 0 (N,) with values y (N,). Section 3.3 of the APMT paper.

    The result is a constant if y does not change or there is one x. Raises ModelingError without points, and
    for x <= 0.
    """
    if not x.size:
        raise ModelingError("nothing was measured that a function could be fitted to")
    if bool(np.any(x <= 0)):
        raise ModelingError("fitting functions need values above 0")
    largest = float(x.max())
    total = float(np.sum((y - y.mean()) ** 2))
    if np.unique(x).size < 2 or total <= _ALIKE * float(np.sum(y**2)):
        error = float(np.sqrt(total / max(y.size - 1, 1)))
        return Fitted(forms[0], 0.0, float(y.mean()), 1.0, error, y.size, largest, 0.0, inf)
    best: Fitted | None = None
    for form in forms:
        g = _terms(form, x, largest)
        spread = float(np.sum((g - g.mean()) ** 2))
        if not isfinite(spread) or spread <= _ALIKE * float(np.sum(g**2)):
            continue
        a = float(np.sum((g - g.mean()) * (y - y.mean())) / spread)
        b = float(y.mean() - a * g.mean())
        left = float(np.sum((y - a * g - b) ** 2))
        freedom = max(y.size - 2, 1)
        found = Fitted(form, a, b, 1 - left / total, (left / freedom) ** 0.5, y.size, largest, float(g.mean()), spread)
        if best is None or found.r2 > best.r2 + _ALIKE:
            best = found
    assert best is not None
    return best


def _terms(form: Form, x: FloatArray, largest: float) -> FloatArray:
    with np.errstate(over="ignore"):
        return form.function(x / largest if form.scaled else x)
