# SPDX-License-Identifier: Apache-2.0
"""Polynomials with more terms than sets of functions are tried with, at as many sizes as terms and at one less."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, fit_models
from quipu.modeling.pmnf.forms.polynomials import polynomials

BLOCKS = Metric("blocks", "1", "effort")
COEFFICIENTS = ((24, 48, 48, 48, 24), (312, 288, 240, 240, 312), (7, 0, 3, 2, 5), (1, 5, 10, 10, 5, 1))


def at(coefficients: tuple[int, ...], sizes: FloatArray) -> FloatArray:
    return np.asarray(np.polyval(coefficients[::-1], sizes), dtype=np.float64)


@pytest.mark.parametrize("sizes", [(4.0, 5, 6, 8), (3.0, 4, 6, 9, 11), (8.0, 12, 16, 24, 32, 48)])
def test_deep_loop_nests_are_found_beside_ranks_that_do_the_same(sizes: tuple[float, ...]) -> None:
    points = np.array([(p, n) for p in (1.0, 2, 4, 8) for n in sizes])
    chosen = [own for own in COEFFICIENTS if len(own) <= len(sizes) + 1]
    values = np.stack([at(own, points[:, 1]) for own in chosen])
    for own, model in zip(chosen, fit_models(points, values[:, :, None], BLOCKS, ("p", "n")), strict=True):
        assert isinstance(model, Model)
        assert model.at(p=64.0, n=8 * sizes[-1]) == pytest.approx(
            float(at(own, np.array([8 * sizes[-1]]))[0]), rel=1e-9
        )


def test_chance_has_no_short_polynomials() -> None:
    random = np.random.default_rng(2)
    sizes = (4, 5, 6, 8)
    noisy = [tuple(int(24 * (n**4 + random.integers(0, 9) * n)) for n in sizes) for _ in range(500)]
    assert sum(bool(polynomials(sizes, counts)) for counts in noisy) <= 4
    anything = [tuple(sorted(random.integers(1, 9999, 4).tolist())) for _ in range(2000)]
    assert sum(bool(polynomials(sizes, counts)) for counts in anything) == 0
