# SPDX-License-Identifier: Apache-2.0
"""Kinds of functions of one size: recursions, exponentials, steps, and whole blocks, each from a small program."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from quipu.modeling.counts.program import fit

DOUBLING = (16, 32, 64, 128, 256)
UNEVEN = (100, 170, 300, 520, 900)


@cache
def karatsuba(n: int) -> int:
    return 3 * karatsuba(n // 2) + 8 * n if n > 1 else 1


@cache
def strassen(n: int) -> int:
    return 7 * strassen(n // 2) + 18 * (n // 2) ** 2 if n > 1 else 1


def merge_sort(n: int) -> int:
    """Return the work of a sort that doubles its runs from 1, 2 units for each element and 3 in each pass."""
    width, passes = 1, 0
    while width < n:
        width, passes = 2 * width, passes + 1
    return 2 * n + 3 * n * passes


@pytest.mark.parametrize(
    ("count", "sizes", "far", "law"),
    [
        (karatsuba, DOUBLING, 4096, "-16·n + 17·n^log2(3)"),
        (strassen, DOUBLING, 4096, "-6·n^2 + 7·n^log2(7)"),
        (lambda n: 5 * 4**n + 7 * 2**n + 30, (3, 4, 5, 6, 7), 14, "30 + 7·2^n + 5·4^n"),
        (merge_sort, UNEVEN, 9000, "2·n + 3·n·ceil(log2(n))"),
        (lambda n: 10 * -(-n // 64) + 3, UNEVEN, 9000, "3 + 10·ceil(n/64)"),
        (lambda n: 7 * (n // 4) + 5, (10, 17, 30, 52, 90, 130), 901, "5 + 7·floor(n/4)"),
    ],
)
def test_a_kind_is_found_and_continues(count: Callable[[int], int], sizes: tuple[int, ...], far: int, law: str) -> None:
    points = np.array([[float(n)] for n in sizes])
    (model,) = fit(points, ["n"], [np.array([float(count(n)) for n in sizes])], None)
    assert model.exact
    assert model.text == law
    prediction = model.at([float(far)])
    assert prediction.quantile(0.05) == pytest.approx(count(far), rel=1e-9)
    assert prediction.quantile(0.95) == pytest.approx(count(far), rel=1e-9)


def test_twenty_parameters_have_a_law_of_two_of_them() -> None:
    random = np.random.default_rng(0)
    names = ["p", "n", *(f"a{number}" for number in range(18))]
    others = random.integers(1, 6, (40, 18)).astype(float)
    points = np.column_stack([2.0 ** random.integers(0, 4, 40), random.integers(4, 40, 40), others])
    p, n, first = points.T[:3]
    (model,) = fit(points, names, [p * (3 * n**2 + 5 * first)])
    assert model.exact
    assert model.at([64.0] * 20).quantile(0.5) == pytest.approx(64 * (3 * 64**2 + 5 * 64), rel=1e-9)


def test_a_remainder_at_the_largest_size_is_no_exponential() -> None:
    """Adaptive meshes count a little more at some size. 2^n of that size would predict millions of times as much."""
    n = np.array([8.0, 12.0, 16.0, 24.0, 32.0])
    counts = np.rint(40 * n**2 * np.array([1.0, 1.01, 0.98, 1.02, 1.1]))
    (model,) = fit(n[:, None], ["n"], [counts])
    assert "2^n" not in model.text
    assert model.at([64.0]).quantile(0.95) < 100 * 40 * 64**2
