# SPDX-License-Identifier: Apache-2.0
"""Models as values: evaluation, text, order, JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quipu.modeling.errors import FormatError, ModelingError
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import fit_models
from quipu.modeling.pmnf.model import Alternative, Factor, Model, Quality, Term, add, collect
from quipu.modeling.pmnf.model.serialize import from_json, to_json
from quipu.modeling.process_grid import Axis


def _term(coefficient: float, **exponents: tuple[str, int]) -> Term:
    return Term(coefficient, tuple(Factor(name, Fraction(i), j) for name, (i, j) in exponents.items()))


CUBIC = Model(("n",), 7.0, (_term(4.0, n=("1", 1)), _term(3e-8, n=("3", 0))), ranges=((10.0, 50.0),))


def test_text_forms() -> None:
    assert str(CUBIC) == "3e-08·n³ + 4·n·log2(n) + 7"
    assert CUBIC.python == "3e-08*n**3 + 4.0*n*log2(n) + 7.0"
    assert CUBIC.latex == r"3 \cdot 10^{-8} \, n^{3} + 4 \, n \, \log_2(n) + 7"
    assert str(Model(("p", "n"), 0.0, (_term(-2.0, n=("1", 0), p=("-1", 0)),))) == "-2·n/p"
    assert str(Model(("p",), -1.0, (_term(1.0, p=("2/3", 2)),))) == "p^(2/3)·log2(p)² - 1"
    assert str(Model((), 0.0)) == "0"
    assert str(Model(("p",), 53.0, (_term(3.0, p=("-1", 0)),))) == "3/p + 53"
    share = Model(("p",), 0.0, (Term(2.0, (Factor("p", shares=1),)),))
    assert str(share) == "2·(p-1)/p"
    assert share.at(p=4) == 1.5
    several = Model(("p",), 0.0, (Term(2.0, (Factor("p", several=True),)),))
    assert (str(several), several.python, several.latex) == ("2·[p>1]", "2.0*(p>1)", r"2 \, [p > 1]")
    assert (several.at(p=1), several.at(p=2), several.at(p=9)) == (0.0, 2.0, 2.0)
    assert str(several.times(several)) == "4·[p>1]"
    assert str(several.times(share)) == "4·(p-1)/p"
    assert from_json(to_json(several)) == several


def test_python_form_evaluates_to_the_model() -> None:
    text = CUBIC.python
    assert eval(text, {"log2": np.log2, "n": 32.0}) == pytest.approx(CUBIC.at(n=32))


def test_leading_exponents() -> None:
    model = Model(("n", "p"), 1.0, (_term(1e-9, n=("2", 0)), _term(5.0, n=("1", 1), p=("0", 1))))
    assert model.leading == {"n": (Fraction(2), 0), "p": (Fraction(0), 1)}
    assert Model(("p",), 0.0, (_term(1.0, p=("-1", 0)),)).lead("p") == (Fraction(-1), 0)
    assert Model(("p",), 1.0, (_term(1.0, p=("-1", 0)),)).lead("p") == (Fraction(0), 0)
    with pytest.raises(ModelingError, match="no parameter 'q'"):
        model.lead("q")


def test_sums_collect_like_terms() -> None:
    total = add([CUBIC, CUBIC, Model(("p",), 1.0, (_term(2.0, p=("1", 0)),))])
    assert total.constant == 15.0
    assert total.parameters == ("n", "p")
    assert total.at(n=16, p=3) == pytest.approx(2 * CUBIC.at(n=16) + 7)
    assert len(total.terms) == 3


def test_products() -> None:
    product = CUBIC.times(Model(("p",), 0.0, (_term(1.0, p=("0", 1)),)))
    assert product.at(n=16, p=8) == pytest.approx(3 * CUBIC.at(n=16))


def test_points_are_checked() -> None:
    with pytest.raises(ModelingError, match="missing n; unknown m"):
        CUBIC.at(m=3)
    with pytest.raises(ModelingError, match="no finite value at n=0"):
        CUBIC.at(n=0)
    with pytest.raises(ModelingError, match="shape"):
        CUBIC.evaluate(np.zeros((2, 3)))


def test_prediction_spreads_over_alternatives() -> None:
    alternative = Alternative(0.25, 0.0, (_term(1.0, n=("2", 0)),))
    model = Model(("n",), 0.0, (_term(1.0, n=("1", 0)),), ranges=((1.0, 8.0),), alternatives=(alternative,))
    inside, outside = model.predict((1.0,)), model.predict((16.0,))
    assert inside.value == inside.lower == inside.upper == 1.0
    assert (outside.value, outside.lower, outside.upper) == pytest.approx((16, 16, 256))
    assert (inside.extrapolates, outside.extrapolates) == (False, True)


def test_standard_error_widens_the_interval() -> None:
    noisy = Model(("n",), 1.0, (_term(1.0, n=("1", 0)),), ranges=((1, 8),), covariance=((0.0, 0.0), (0.0, 0.01)))
    prediction = noisy.predict((9.0,))
    assert prediction.value == pytest.approx(10.0)
    assert prediction.upper / prediction.value == pytest.approx(np.exp(1.6449 * 0.09), rel=1e-3)
    assert add([noisy, noisy]).standard_error((9.0,)) == pytest.approx(0.9 * 2**0.5)


_names = st.sampled_from(["n", "p", "size_x"])
_factors = st.builds(
    Factor,
    _names,
    st.fractions(min_value=-3, max_value=3, max_denominator=5),
    st.integers(0, 2),
    st.integers(0, 1),
)
_numbers = st.floats(-1e300, 1e300, allow_nan=False)
_terms = st.builds(Term, _numbers, st.lists(_factors, max_size=3, unique_by=lambda f: f.parameter).map(tuple))


@given(_numbers, st.lists(_terms, max_size=4), st.text(max_size=5))
def test_json_round_trip(constant: float, terms: list[Term], note: str) -> None:
    quality = Quality(1.0, 0.01, float("nan"), 0.5, 0.02, 5)
    alternatives = (Alternative(0.1, 1.0, tuple(terms)),)
    ranges = ((1.0, 2.0), (1.0, 4.0), (2.0, 3.0))
    covariance = tuple((0.5,) * (len(terms) + 1) for _ in range(len(terms) + 1))
    model = Model(("n", "p", "size_x"), constant, tuple(terms), quality, ranges, covariance, alternatives, (note,))
    text = json.dumps(to_json(model), allow_nan=False)
    again = from_json(json.loads(text))
    assert json.dumps(to_json(again), allow_nan=False) == text
    assert again.terms == model.terms


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"constant": "x"}, "constant must be a finite number"),
        ({"constant": float("nan")}, "finite"),
        ({"terms": 3}, "terms must be a list"),
        ({"parameters": ["n", "n"]}, "twice"),
        ({"terms": [{"coefficient": 1, "factors": [{"parameter": "q"}]}]}, "'q'"),
        ({"terms": [{"coefficient": 1, "factors": [{"parameter": "n", "exponent": "1/0"}]}]}, "fraction"),
        ({"terms": [{"coefficient": 1, "factors": [{"parameter": "n", "log": 1.5}]}]}, "whole number"),
        ({"covariance": [[1.0]]}, "square of 3 rows"),
        ({"ranges": [[1, 2], [1, 2]]}, "one pair per parameter"),
    ],
)
def test_bad_json_is_refused(change: dict[str, object], message: str) -> None:
    data = to_json(CUBIC) | change
    with pytest.raises(FormatError, match=message):
        from_json(data, "models.json")


def test_a_sum_of_many_models_evaluates_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    evaluate = Model.evaluate

    def counted(self: Model, points: object) -> object:
        calls.append(1)
        return evaluate(self, points)  # type: ignore[arg-type]

    monkeypatch.setattr(Model, "evaluate", counted)
    unsure, term = ((1.0, 0.0), (0.0, 1.0)), _term(2.0, p=("1", 0))
    parts = [Model(("p",), float(k), (term,), ranges=((1, 4),), covariance=unsure) for k in range(9)]
    assert add(parts).covariance
    assert len(calls) == len(parts)


def test_products_may_be_what_their_factors_may_be() -> None:
    squares, tree = Alternative(0.25, 3.0, (_term(1.0, n=("2", 0)),)), Alternative(0.5, 0.0, (_term(2.0, p=("0", 1)),))
    calls = Model(("n",), 1.0, (_term(2.0, n=("1", 0)),), alternatives=(squares,))
    steps = Model(("p",), 0.0, (_term(1.0, p=("0", 1)),), alternatives=(tree,))
    alone, both = calls.times(replace(steps, alternatives=())), calls.times(steps)
    assert [(own.weight, own.constant) for own in alone.alternatives] == [(0.25, 0.0)]
    assert alone.predict((4.0, 8.0)).upper == pytest.approx((3 + 16) * 3)
    assert [own.weight for own in both.alternatives] == [0.125, 0.375]
    assert str(Model(both.parameters, 0.0, both.alternatives[1].terms)) == "4·n·log2(p) + 2·log2(p)"


def test_a_chain_of_ranks_is_the_number_of_ranks() -> None:
    chain = Factor("p", Fraction(-1), axis=Axis("balanced", 1, 0))
    product = Term(3.0, (Factor("p", Fraction(1)),)).times(Term(2.0, (chain, Factor("n", Fraction(1)))))
    assert product.factors == (Factor("n", Fraction(1)),)
    several = Term(1.0, (Factor("p", Fraction(2)), replace(chain, log=1)))
    constant, terms = collect(1.0, [several, Term(5.0, (Factor("p", Fraction(1)), chain))])
    assert str(Model(("p",), constant, terms)) == "p·log2(p) + 6"


def test_the_interval_of_a_multiple_is_that_multiple() -> None:
    # Deviations of exponents and curvature included: the last is a part of the whole, in whatever unit.
    n = np.array([16.0, 24, 32, 48, 64])
    (model,) = fit_models(
        n[:, None], np.array([[[19.0], [24], [33], [41], [58]]]), Metric("visits", "1", "effort"), ["n"]
    )
    assert isinstance(model, Model) and len(model.covariance) > len(model.terms) + 1
    mine, its = model.scaled(1e-6).predict((512.0,)), model.predict((512.0,))
    assert (mine.lower, mine.upper) == pytest.approx((1e-6 * its.lower, 1e-6 * its.upper))
