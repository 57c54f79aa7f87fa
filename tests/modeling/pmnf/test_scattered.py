# SPDX-License-Identifier: Apache-2.0
"""Functions measured at points that form no lines, without noise: counts, and times that repeat themselves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, fit_models
from quipu.modeling.pmnf.criterion.criterion import choose
from quipu.modeling.pmnf.criterion.exactness import Exactness
from quipu.modeling.pmnf.hypotheses.library import Library
from quipu.modeling.pmnf.hypotheses.tables import make_tables
from quipu.modeling.pmnf.proposers.scattered import ScatteredSums, on_no_lines

NAMES = ("p", "n", "s")
KINDS = {"time": Metric("time", "s", "cost"), "blocks": Metric("blocks", "1", "effort")}
Function = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
FUNCTIONS: dict[str, Function] = {
    "p·n² + s": lambda p, n, s: 3 * p * n**2 + 5 * s,
    "n·log2(p) + s²": lambda p, n, s: 7 * n * np.log2(p) + 2 * s**2 + 11,
    "product of three": lambda p, n, s: 4 * n**1.5 * s * np.log2(p) + 100,
    "sum of two products": lambda p, n, s: 2 * n * s**2 + 9 * n * np.sqrt(p) + 40,
}


def points() -> FloatArray:
    random = np.random.default_rng(12)
    columns = [np.unique(random.integers(low, high, 200))[:60] for low, high in ((2, 300), (10, 900), (64, 5000))]
    return np.stack([random.permutation(column)[:45] for column in columns], axis=1).astype(float)


@pytest.mark.parametrize("metric", KINDS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_without_noise_are_found(function: str, metric: str) -> None:
    at = points()
    assert on_no_lines(at)
    exact = FUNCTIONS[function](*at.T)
    (model,) = fit_models(at, np.repeat(exact[None, :, None], 3, axis=2), KINDS[metric], NAMES)
    assert isinstance(model, Model)
    far = np.array([[1024.0, 4000.0, 20000.0]])
    np.testing.assert_allclose(model.evaluate(far), FUNCTIONS[function](*far.T), rtol=1e-6)


def test_counts_may_have_negative_terms() -> None:
    at = points()
    p, n, s = at.T
    counts = 5 * n * s - 300 * n + 2 * p
    (model,) = fit_models(at, counts[None, :, None], KINDS["blocks"], NAMES)
    assert str(model) == "5·n·s + 2·p - 300·n"


def test_what_is_next_to_exact_is_no_constant() -> None:
    """The nearest fits contain invisible terms; the model is the sum without them."""
    at = points()
    p, n, s = at.T
    counts = 5 * n * s - 3 * n + 2 * p
    (model,) = fit_models(at, counts[None, :, None], KINDS["blocks"], NAMES)
    assert isinstance(model, Model)
    assert model.at(p=1024, n=4000, s=20000) == pytest.approx(5 * 8e7, rel=0.01)


def test_what_no_sum_reproduces_has_no_exact_model() -> None:
    at = points()
    tables = make_tables(at, Library())
    counts = np.random.default_rng(3).uniform(1.0, 2.0, (4, len(at)))
    sums = ScatteredSums(at, tables)
    criterion = Exactness(tables, counts)
    candidates = [*sums.propose(counts), *sums.propose_thoroughly(counts, np.array([True, False, True, False]))]
    assert not np.isfinite(choose(candidates, criterion, 1).score).any()
    assert {
        int(path) for own in sums.propose_thoroughly(counts, np.array([False, True, False, False])) for path in own.path
    } <= {1}
