# SPDX-License-Identifier: Apache-2.0
"""The predictor that knows how planted functions are drawn: benchmarks/modeling_known.py and modeling_limits.py."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from modeling_known import Known, functions, structures
from modeling_layout_sets import NormalForm, draw_function, draw_products, planted_set, started
from modeling_limits import _curves, _normal


def test_probabilities_are_those_of_the_draws() -> None:
    random, count = np.random.default_rng(3), 20000
    drawn = Counter(draw_function(random) for _ in range(count))
    known = functions()
    assert sum(known.values()) == pytest.approx(1.0)
    assert {(float(power), log) for power, log in drawn} <= set(known)
    assert sum(abs(drawn[key] / count - odds) for key, odds in known.items()) < 0.06
    for parameters in (1, 2, 3):
        of_products = Counter(tuple(sorted(draw_products(random, parameters))) for _ in range(count))
        expected = structures(parameters)
        assert sum(expected.values()) == pytest.approx(1.0)
        assert set(of_products) <= set(expected)
        assert sum(abs(of_products[key] / count - odds) for key, odds in expected.items()) < 0.06


@pytest.mark.parametrize("parameters", [1, 2])
def test_almost_exact_values_leave_the_truth(parameters: int) -> None:
    own = planted_set("grid", parameters, 0.001, 4, 5)
    corner = np.array([column[-1] for column in started("grid", parameters, 0.001, 5)[1]])
    known = Known(own.points, corner, own.targets[0], 0.001 / np.sqrt(15), 5)
    for values, truth, form in zip(own.values, own.truth[:, 0], own.forms, strict=True):
        assert isinstance(form, NormalForm)
        value, share = known.predict(values.mean(axis=1), known.state(form), 0.05)
        assert value == pytest.approx(truth, rel=0.05)
        assert share > 0.9


def test_both_ways_to_integrate_agree() -> None:
    own = planted_set("grid", 1, 0.05, 8, 6)
    corner = started("grid", 1, 0.05, 6)[1][0][-1]
    known = Known(own.points, np.array([corner]), own.targets[0], 0.05 / np.sqrt(15), 6)
    curves = _curves(own.points[:, 0], float(corner), float(own.targets[0, 0]))
    drawn, integrated = [], []
    for values, form in zip(own.values, own.forms, strict=True):
        assert isinstance(form, NormalForm)
        drawn.append(known.predict(values.mean(axis=1), known.state(form), 0.05)[1])
        integrated.append(_normal(curves, values, 0.05)[1])
    assert np.mean(drawn) == pytest.approx(np.mean(integrated), abs=0.05)
