# SPDX-License-Identifier: Apache-2.0
"""Numbers that do not determine their extrapolation: benchmarks/undecided_counts.py."""

from __future__ import annotations

import numpy as np
import pytest
from undecided_counts import FORMS, ROUNDED, extremes, undecided


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rounded", ROUNDED)
def test_both_functions_give_all_measured_numbers(form: str, rounded: str) -> None:
    sizes, there = np.array([8.0, 11, 14, 17, 20, 24]), np.array([192.0])
    first, second = FORMS[form]
    planted = 3.7 * first(sizes) + 4.3 * second(sizes)
    counts = ROUNDED[rounded](planted)
    found = extremes(sizes, counts, 192.0, form, rounded)
    assert found is not None
    for (a, b), value in zip(found.coefficients, found.values, strict=True):
        assert (ROUNDED[rounded](a * first(sizes) + b * second(sizes)) == counts).all()
        assert ROUNDED[rounded](a * first(there) + b * second(there))[0] == value
    truth = ROUNDED[rounded](3.7 * first(there) + 4.3 * second(there))[0]
    assert found.values[0] <= truth <= found.values[1]


def test_larger_sizes_decide() -> None:
    sizes = np.array([8.0, 11, 14, 17, 20, 24])
    assert undecided(sizes, np.ceil(3.7 * sizes + 4.3), 192.0) is not None
    assert undecided(4 * sizes, np.ceil(3.7 * 4 * sizes + 4.3), 4 * 192.0) is None


def test_what_no_such_function_gives_is_not_undecided() -> None:
    sizes = np.array([8.0, 11, 14, 17, 20, 24])
    assert undecided(sizes, sizes**2, 192.0) is None
