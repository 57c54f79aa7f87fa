# SPDX-License-Identifier: Apache-2.0
"""Polynomials through all sizes that were measured, and the next power."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray
from quipu.modeling.pmnf.grids.higher_power import with_higher_power
from quipu.modeling.pmnf.model import Factor, Model, Term, collect


def through(sizes: FloatArray, counts: FloatArray) -> Model:
    """Return the polynomial that goes through counts at sizes (K,), shared by p processes, and 8 for each of them."""
    coefficients = np.round(2 * np.linalg.solve(np.vander(sizes, increasing=True), counts)) / 2
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


def in_a_chain(inner: list[float], ends: list[float], mixed: bool) -> Model:
    """Return polynomials of a rank with two neighbours, and of both with one, as the mean over p ranks of a chain.

    mixed: coefficients with 1 and with (p-1)/p in turn beside those with 1/p, as each is shortest.
    """
    share, others = Factor("p", Fraction(-1)), Factor("p", shares=1)
    terms = []
    for power, (each, both) in enumerate(zip(inner, ends, strict=True)):
        own = (Factor("n", Fraction(power)),) if power else ()
        if mixed and power % 2:
            terms += [Term(each, (others, *own)), Term(both - each, (share, *own))]
        else:
            terms += [Term(each, own), Term(both - 2 * each, (share, *own))]
    return Model(("p", "n"), *collect(0.0, terms))


@pytest.mark.parametrize("mixed", [False, True])
def test_the_next_power_makes_coefficients_short_of_which_none_is_zero(mixed: bool) -> None:
    sizes = np.array([6.0, 8.0, 12.0, 16.0])
    inner, ends = [92.0, -408.0, 393.0, -153.0, 54.0], [68.0, -324.0, 291.0, -90.0, 27.0]
    seen_inner, seen_ends = (
        np.round(np.linalg.solve(np.vander(sizes, increasing=True), np.polyval(own[::-1], sizes))).tolist()
        for own in (inner, ends)
    )
    former, right = in_a_chain(seen_inner, seen_ends, mixed), in_a_chain(inner, ends, mixed=False)
    points = {"p": 8.0, "n": 12.0}
    assert former.at(**points) == pytest.approx(right.at(**points))
    model, saved = with_higher_power(former, "n", sizes)
    assert saved > 2
    assert model.at(p=24, n=48) == pytest.approx(right.at(p=24, n=48))
    assert any(other.terms == former.terms for other in model.alternatives)


def test_powers_that_are_hardly_longer_are_alternatives() -> None:
    sizes = np.array([6.0, 8.0, 12.0, 16.0])
    model, _ = with_higher_power(through(sizes, np.polyval([13.5, -45, 145.5, -162, 34], sizes)), "n", sizes)
    sums = [model.terms, *(other.terms for other in model.alternatives)]
    highest = {term.coefficient for terms in sums for term in terms if Factor("n", Fraction(4)) in term.factors}
    assert 13.5 in highest
    assert len(highest) > 1
    assert sum(other.weight for other in model.alternatives) < 0.5
