"""Polynomials through all sizes that were measured, and the next power."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray
from quipu.modeling.pmnf.grids.exact.higher_power import with_higher_power
from quipu.modeling.pmnf.model import Factor, Model, Term


def through(sizes: FloatArray, counts: FloatArray) -> Model:
    """Return the polynomial that goes through counts at sizes (K,), shared by p processes, and 8 for each of them."""
    coefficients = np.round(np.linalg.solve(np.vander(sizes, increasing=True), counts))
    share = Factor("p", Fraction(-1))
    terms = [Term(c, (share, Factor("n", Fraction(i))) if i else (share,)) for i, c in enumerate(coefficients.tolist())]
    return Model(("p", "n"), 8.0, tuple(terms))


@pytest.mark.parametrize("sizes", [[16.0, 32.0, 64.0], [12.0, 20.0, 28.0], [100.0, 200.0, 400.0]])
def test_a_cubic_through_three_sizes_is_one(sizes: list[float]) -> None:
    at = np.array(sizes)
    former = through(at, 4 * at**3 + 12 * at**2 + 12 * at)
    model, saved = with_higher_power(former, "n", at)
    assert saved > 1
    assert model.at(p=4, n=1000) == pytest.approx((4e9 + 12e6 + 12e3) / 4 + 8)
    (other,) = model.alternatives
    assert 0 < other.weight < 0.5
    assert (other.constant, other.terms) == (former.constant, former.terms)


@pytest.mark.parametrize("sizes", [[16.0, 32.0, 64.0], [0.0, 10.0, 20.0], [1e6, 3e6, 7e6], [0.5, 1.5, 2.25]])
@pytest.mark.parametrize("coefficients", [(3, 0, 5), (0, 7, 0), (2, -1, 1)])
def test_a_quadratic_stays_one(sizes: list[float], coefficients: tuple[int, ...]) -> None:
    at = np.array(sizes)
    terms = [Term(float(c), (Factor("n", Fraction(i)),) if i else ()) for i, c in enumerate(coefficients) if c]
    former = Model(("p", "n"), 0.0, tuple(term for term in terms if term.factors))
    former = Model(("p", "n"), float(coefficients[0]), former.terms)
    model, saved = with_higher_power(former, "n", at)
    assert (model.constant, model.terms, saved) == (former.constant, former.terms, 0.0)


def test_other_functions_stay_as_they_are() -> None:
    model = Model(("p", "n"), 1.0, (Term(3.0, (Factor("n", Fraction(1), 1),)),))
    assert with_higher_power(model, "n", np.array([8.0, 16.0, 32.0])) == (model, 0.0)
