# SPDX-License-Identifier: Apache-2.0
"""Growth, bounds and baselines as expected; differences of effort and time between two experiments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quipu.modeling.differences import effort_differences, rank_test, time_differences
from quipu.modeling.errors import ModelingError
from quipu.modeling.expectations import growth_of
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.line_changes import line_changes
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf.model import parse_sum
from scipy.stats import mannwhitneyu, permutation_test, rankdata

TREE = CallTree((Region("main", "main"), Region("f", "f")), np.array([0, 1]), np.array([-1, 0]))


def experiment(**values: FloatArray) -> Experiment:
    points = np.array([[n] for n in range(1, 1 + next(iter(values.values())).shape[1])], dtype=float)
    return Experiment("e", ("n",), points, TREE, {name: METRICS[name] for name in values}, values)


def test_growth_names_all_parameters_or_some() -> None:
    assert growth_of("n·log2(n)", ("p", "n"), False).exponents == {"p": (0, 0), "n": (1, 1)}
    assert growth_of({"n": "constant"}, ("p", "n"), True).exponents == {"n": (0, 0)}
    with pytest.raises(ModelingError, match="no parameter m"):
        growth_of({"m": "m"}, ("p", "n"), True)


@pytest.mark.parametrize("text", ["n^2/p", "n²/p", "n**2/(2*p)", "n^2*p^(-1)", "n^2/p^(1/2)/p^(1/2)"])
def test_growth_is_read_as_models_are_printed(text: str) -> None:
    assert growth_of(text, ("p", "n"), False).exponents == {"p": (-1, 0), "n": (2, 0)}
    assert parse_sum("2·n¹⁰", ("n",)).at(n=2) == 2048


def test_bounds_are_sums_of_products() -> None:
    assert parse_sum("48*n^2 - 2*log2(p) + 7", ("p", "n")).at(p=4, n=10) == 48 * 100 - 4 + 7
    for wrong in ("n^2 + exp(n)", "n/p", "-n", "1e999*n", "9" * 5000, "(" * 300 + "n", "n\0"):
        with pytest.raises(ModelingError, match="growth"):
            parse_sum(wrong, ("p", "n"))


samples = st.lists(st.integers(0, 5).map(float), min_size=2, max_size=4).map(np.array)


@given(samples, samples)
def test_the_rank_test_is_exact_with_ties(a: FloatArray, b: FloatArray) -> None:
    exact = permutation_test((a, b), lambda x, y: rankdata(np.concatenate([x, y]))[len(x) :].sum(), n_resamples=np.inf)
    assert rank_test([(a, b)])[0] == pytest.approx(exact.pvalue)


def test_the_rank_test_is_that_of_mann_and_whitney_and_adds_configurations() -> None:
    random = np.random.default_rng(5)
    a, b = random.normal(size=6), random.normal(0.7, 1.0, size=5)
    assert rank_test([(a, b)])[0] == pytest.approx(mannwhitneyu(a, b, method="exact").pvalue)
    apart = (np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert rank_test([apart])[0] == pytest.approx(2 / 6)
    assert rank_test([apart] * 4)[0] == rank_test([apart] * 4)[1] == pytest.approx(2 / 6**4)


def test_a_slower_function_is_significant_and_an_equal_one_is_not() -> None:
    random = np.random.default_rng(7)
    before = np.exp(random.normal(0, 0.05, (2, 4, 3)))
    after = np.exp(random.normal(0, 0.05, (2, 4, 3)))
    after[1] *= 1.3
    found = {one.path: one for one in time_differences(experiment(time=before), experiment(time=after))}
    assert found[1].significant
    assert found[1].ratio == pytest.approx(1.3, rel=0.05)
    assert not found[0].significant
    assert found[-1].significant
    single = time_differences(experiment(time=before[:, :1, :1]), experiment(time=after[:, :1, :1]))
    assert not any(one.testable or one.significant for one in single)


def test_effort_differs_exactly_or_not_at_all() -> None:
    before = np.full((2, 3, 2), 1e12)
    after = before.copy()
    after[1, 2] += 1
    found = effort_differences(experiment(blocks=before), experiment(blocks=after), ["blocks"])
    assert [(one.path, one.configurations, one.of, one.after - one.before) for one in found] == [(1, (2,), 3, 1.0)]
    after[1, 2] = [1e12, 1e12 + 5]  # repetitions of it vary, and hold what was there before
    assert effort_differences(experiment(blocks=before), experiment(blocks=after), ["blocks"]) == []
    other = Experiment("o", ("n",), np.array([[9.0]]), TREE, {"blocks": METRICS["blocks"]}, {"blocks": before[:, :1]})
    with pytest.raises(ModelingError, match="different call paths or configurations"):
        effort_differences(experiment(blocks=before), other, ["blocks"])


def test_lines_that_moved_did_not_change() -> None:
    before = {10: (5.0,), 11: (70.0,), 14: (1.0,)}
    assert line_changes(before, {number + 3: effort for number, effort in before.items()}) == []
    found = line_changes(before, {12: (5.0,), 13: (700.0,), 15: (3.0,), 17: (1.0,)})
    assert [(one.old_line, one.line, one.before, one.after) for one in found] == [
        (11, 13, (70.0,), (700.0,)),
        (0, 15, (0.0,), (3.0,)),
    ]
