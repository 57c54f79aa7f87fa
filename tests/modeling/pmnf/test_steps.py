# SPDX-License-Identifier: Apache-2.0
"""Counts that rise in steps are found exactly: passes of merges, levels of trees, sizes that are doubled."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor, log2

import numpy as np
import pytest
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model
from quipu.modeling.pmnf.model import Factor, Steps, Term
from quipu.modeling.pmnf.model.serialize import from_json, to_json

from ..counted import fit_counts

BLOCKS = Metric("blocks", "1", "effort")
FREE = np.array([100.0, 170, 300, 520, 900, 1600])
DOUBLED = np.array([250.0, 500, 1000, 2000, 4000, 8000])


def _model(n: FloatArray, counts: FloatArray) -> Model:
    (model,) = fit_counts(n[:, None], counts[None, :, None], ("n",))
    assert isinstance(model, Model)
    return model


def _passes(n: FloatArray, base: int, run: int) -> FloatArray:
    """Return how often runs are merged, counted as a loop does."""
    result = np.zeros_like(n)
    for place, size in enumerate(n.tolist()):
        length = float(run)
        while length < size:
            length *= base
            result[place] += 1
    return result


@pytest.mark.parametrize(("base", "run"), [(2, 1), (2, 16), (2, 32), (4, 1), (4, 16)])
def test_passes_over_runs_of_powers_of_the_base(base: int, run: int) -> None:
    """Other run lengths with steps between the same sizes are alternatives, so the interval contains the true value."""
    counts = 3 * FREE * _passes(FREE, base, run) + 2 * FREE + 11
    model = _model(FREE, counts)
    assert model.evaluate(FREE[:, None]) == pytest.approx(counts, rel=1e-12)
    for far in (2100.0, 3300.0, 12800.0, 100000.0):
        there = np.array([far])
        truth = float((3 * there * _passes(there, base, run) + 2 * there + 11)[0])
        prediction = model.predict((far,))
        assert prediction.lower - 1e-6 <= truth <= prediction.upper + 1e-6


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda n: n * _passes(n, 2, 1) - 2 ** _passes(n, 2, 1) + 1, "⌈log2(n)⌉·n - 2^⌈log2(n)⌉ + 1"),
        (lambda n: 4 * n + 3 * 2 ** _passes(n, 2, 1) + 9, "4·n + 3·2^⌈log2(n)⌉ + 9"),
        (lambda n: 5 * 2 ** _passes(n, 2, 1) * _passes(n, 2, 1) + n, "10·⌈log2(n)⌉·2^⌊log2(n)⌋ + n"),
    ],
)
def test_forms(function: Callable[[FloatArray], FloatArray], text: str) -> None:
    """Merges of runs, insertion with binary search, vectors that double, transforms of padded length."""
    assert str(_model(FREE, function(FREE))) == text


def test_steps_of_four_times_the_size_at_sizes_that_double() -> None:
    counts = 5 * DOUBLED * _passes(DOUBLED, 4, 16)
    for far in (64000.0, 128000.0):
        assert _model(DOUBLED, counts).predict((far,)).value == 5 * far * _passes(np.array([far]), 4, 16)[0]


def test_what_follows_a_logarithm_has_no_steps() -> None:
    """Sizes that double do not distinguish steps of two from log2(n)."""
    assert "⌈" not in str(_model(DOUBLED, 3 * DOUBLED * _passes(DOUBLED, 2, 7)))


def test_counts_that_depend_on_data_have_no_steps() -> None:
    random = np.random.default_rng(3)
    for _ in range(50):
        counts = np.round(9 * FREE * np.log2(FREE) * (1 + 0.01 * random.normal(size=FREE.size)))
        assert not any(symbol in str(_model(FREE, counts)) for symbol in "⌈⌊")


def test_small_numbers_have_no_steps_by_chance() -> None:
    random = np.random.default_rng(4)
    for _ in range(50):
        assert not any(symbol in str(_model(FREE, random.integers(1, 9, 6).astype(float))) for symbol in "⌈⌊")


def _deviating(counts: FloatArray, part: float, seed: int) -> FloatArray:
    """Return counts (C, 5) of runs with other data: each event depends on chance, so that relative deviations fall."""
    random = np.random.default_rng(seed)
    size = np.sqrt(counts[-1] / counts)[:, None]
    return np.round(counts[:, None] * (1 + part * size * random.normal(size=(counts.size, 5))))


@pytest.mark.parametrize("part", [0.001, 0.01])
def test_logarithms_of_work_that_depends_on_data_have_no_steps(part: float) -> None:
    counts = [9 * FREE * np.log2(FREE) + 40 * FREE, 70 * FREE, 3 * FREE**1.5 + 20 * FREE]
    values = np.array([_deviating(own, part, seed) for own in counts for seed in range(20)])
    models = fit_counts(FREE[:, None], values, ("n",))
    assert sum(any(symbol in str(model) for symbol in "⌈⌊") for model in models) <= 1


STEPS = Model(
    ("n",),
    1.0,
    (
        Term(2.0, (Factor("n", Fraction(1)), Factor("n", log=1, steps=Steps(4, 7)))),
        Term(3.0, (Factor("n", Fraction(1), steps=Steps(2, 1, True)),)),
    ),
)


def test_text_of_steps() -> None:
    assert str(STEPS) == "2·n·⌈log4(n/7)⌉ + 3·2^⌊log2(n)⌋ + 1"
    assert r"\lceil \log_{4}(n/7) \rceil" in STEPS.latex
    names = {"log2": log2, "ceil": ceil, "floor": floor, "n": 1000}
    assert eval(STEPS.python, {"__builtins__": {"max": max}}, names) == STEPS.at(n=1000) == 2 * 1000 * 4 + 3 * 512 + 1


def test_steps_are_written_and_read() -> None:
    assert from_json(json.loads(json.dumps(to_json(STEPS)))) == STEPS
    assert STEPS.times(STEPS).at(n=50) == pytest.approx(STEPS.at(n=50) ** 2)


def test_steps_of_no_base_are_refused() -> None:
    document = to_json(STEPS)
    document["terms"][0]["factors"][1]["steps"]["base"] = 1
    with pytest.raises(FormatError, match="steps of an unknown kind"):
        from_json(document)
