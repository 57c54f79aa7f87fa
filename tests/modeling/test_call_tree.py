# SPDX-License-Identifier: Apache-2.0
"""Call trees: who is below whom."""

from __future__ import annotations

import numpy as np
from quipu.modeling.experiment import CallTree, Region

# a calls b and e, b calls c, e calls d; f is a root of its own
TREE = CallTree(tuple(Region(own, own) for own in "abcedf"), np.arange(6), np.array([-1, 0, 1, 0, 3, -1]))


def test_below_is_a_call_path_and_all_that_it_calls() -> None:
    assert [TREE.below(path) for path in range(6)] == [(0, 1, 2, 3, 4), (1, 2), (2,), (3, 4), (4,), (5,)]


def test_below_is_the_inverse_of_ancestry() -> None:
    for path in range(len(TREE)):
        assert all(path in TREE.ancestry(own) for own in TREE.below(path))
        assert all(own in TREE.ancestry(path) for own in range(len(TREE)) if path in TREE.below(own))
