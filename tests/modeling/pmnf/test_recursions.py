# SPDX-License-Identifier: Apache-2.0
"""Counts of recursions that halve a size: n^log2(3) of Karatsuba, n^log2(7) of Strassen."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from quipu.modeling.expectations import order_text
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, from_json, to_json
from quipu.modeling.pmnf.model import parse_product, recursion, recursion_of

from ..counted import fit_counts

BLOCKS = Metric("blocks", "1", "effort")
N: FloatArray = np.array([32.0, 64, 128, 256, 512])


def model_of(values: FloatArray, points: FloatArray = N[:, None], names: tuple[str, ...] = ("n",)) -> Model:
    (model,) = fit_counts(points, values[None, :, None], names)
    assert isinstance(model, Model)
    return model


def recursive(n: FloatArray, calls: int, squares: float, lines: float) -> FloatArray:
    """Return the blocks of a function that does squares·n² + lines·n, and calls itself on half of n, down to 16."""
    below = np.where(n > 16, n, 32) / 2
    return (
        squares * n**2
        + lines * n
        + np.where(n > 16, calls * (recursive(below, calls, squares, lines) if (n > 16).any() else 0), 7)
    )


@pytest.mark.parametrize("calls", [3, 5, 6])
def test_exact_recursions_are_found(calls: int) -> None:
    model = model_of(recursive(N, calls, 11.0, 2.0))
    assert f"n^log2({calls})" in str(model)
    far = np.array([4096.0])
    prediction = model.predict((4096.0,))
    assert prediction.value == pytest.approx(recursive(far, calls, 11.0, 2.0)[0], rel=1e-9)
    assert prediction.lower == prediction.value == prediction.upper
    assert from_json(to_json(model)) == model
    assert eval(model.python, {"n": 4096.0, "log2": np.log2}) == pytest.approx(prediction.value)
    assert rf"n^{{\log_2({calls})}}" in model.latex
    assert order_text({"n": model.lead("n")}) == (f"n^log2({calls})" if calls > 4 else "n^2")


def test_shares_of_ranks() -> None:
    points = np.array(list(product([1.0, 2, 4, 8], N)))
    p, n = points.T
    model = model_of(recursive(n, 7, 4.0, 0.0) / p, points, ("p", "n"))
    assert model.at(p=32, n=4096) == pytest.approx(recursive(np.array([4096.0]), 7, 4.0, 0.0)[0] / 32, rel=1e-9)


def test_chance_makes_no_recursion() -> None:
    random = np.random.default_rng(5)
    points = np.array(list(product([1.0, 2, 4, 8], N)))
    p, n = points.T
    for power in (1.0, 1.58, 2.0, 2.8):
        alone = np.round(N**power * random.uniform(0.98, 1.02, (40, N.size)))
        small = np.cumsum(random.integers(1, 12, (40, N.size)), axis=1).astype(np.float64)
        shared = np.round(n**power / p * random.uniform(0.98, 1.02, (20, n.size)))
        models = [
            *fit_counts(N[:, None], alone[:, :, None], ("n",)),
            *fit_counts(N[:, None], small[:, :, None], ("n",)),
            *fit_counts(points, shared[:, :, None], ("p", "n")),
        ]
        assert not [model for model in models if "^log2" in str(model)]


def test_sizes_that_do_not_double_have_none() -> None:
    sizes = np.array([40.0, 60, 100, 180, 300])
    model = model_of(np.round(sizes ** np.log2(7.0)), sizes[:, None])
    assert "^log2" not in str(model)


def test_exponents_are_written_and_read() -> None:
    term = parse_product("3*n^log2(7)", ("n",))
    assert term.exponents("n") == (recursion(7), 0)
    assert recursion_of(recursion(3) + 1) == 6
    assert [recursion_of(recursion(4)), recursion_of(recursion(7) / 2)] == [None, None]


@pytest.mark.parametrize(
    ("written", "python", "latex"),
    [
        ("n^log2(7)", "n**log2(7)", r"n^{\log_2(7)}"),
        ("n^(log2(7)-1)", "n**(log2(7)-1)", r"n^{\log_2(7)-1}"),
    ],
)
def test_whole_powers_beside_a_recursion_are_written_and_read(written: str, python: str, latex: str) -> None:
    """Calls times what each of them computes for a share of its size: no fraction of two eight-digit numbers."""
    model = Model(("n",), 0.0, (parse_product(written, ("n",)),))
    assert (str(model), model.python, model.latex) == (written, python, latex)
