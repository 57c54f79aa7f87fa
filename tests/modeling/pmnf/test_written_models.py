# SPDX-License-Identifier: Apache-2.0
"""Every written model is read back: products of any two kinds of factors, also of one variable."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from quipu.modeling.errors import FormatError
from quipu.modeling.pmnf.model import Alternative, Factor, Model, Term
from quipu.modeling.pmnf.model.serialize import from_json, to_json
from quipu.modeling.pmnf.model.steps import BASES, Steps
from quipu.modeling.pmnf.model.term import Blocks
from quipu.modeling.process_grid import RULES, Axis

N = Factor("n", Fraction(1))
AXES = [Axis(rule, dimensions, index) for rule in RULES for dimensions in (1, 2, 3) for index in range(dimensions)]
STEPS = [Steps(base, unit, down) for base in BASES for unit in (1, 7) for down in (False, True)]
PRODUCTS = [(N,), (Factor("n", Fraction(2)),), (N, Factor("p", Fraction(-1))), (Factor("p", Fraction(1), 1),)]
KINDS = [
    Factor("n", Fraction(3, 2)),
    Factor("n", Fraction(-1), 2),
    Factor("p", shares=2),
    Factor("p", several=True),
    *(Factor("p", Fraction(1), axis=axis) for axis in AXES),
    *(Factor("n", Fraction(1), log=index % 2, steps=steps) for index, steps in enumerate(STEPS)),
    Factor("n", Fraction(1), steps=Steps(2, itself=True)),
    *(
        Factor(own[0].parameter, blocks=Blocks(size, own, power))
        for own in PRODUCTS
        for size in (2, 8)
        for power in (1, 3)
    ),
]
POINTS = np.array([[4.0, 2.0], [64.0, 6.0], [100.0, 16.0]])


def read_back(model: Model) -> Model:
    return from_json(json.loads(json.dumps(to_json(model))))


@pytest.mark.parametrize("beside", [False, True], ids=["multiplied", "beside each other"])
def test_a_term_of_two_factors(beside: bool) -> None:
    for one, other in product(KINDS, KINDS):
        whole = Term(2.0, (one,)).times(Term(3.0, (other,)))
        term = Term(6.0, (one, other)) if beside else whole
        model = Model(("n", "p"), 1.0, (term,), alternatives=(Alternative(1.0, 1.0, (term,)),))
        again = read_back(model)
        np.testing.assert_allclose(again.evaluate(POINTS), model.evaluate(POINTS), rtol=1e-12)
        if not beside:
            assert (again.terms, again.alternatives) == (model.terms, model.alternatives)


def test_a_factor_that_stands_twice_is_no_model_of_ours() -> None:
    document = to_json(Model(("n", "p"), 1.0, (Term(2.0, (N,)),)))
    document["terms"][0]["factors"] *= 2
    with pytest.raises(FormatError, match="two factors of one function of a parameter"):
        from_json(document, "x")
