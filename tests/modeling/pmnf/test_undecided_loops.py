# SPDX-License-Identifier: Apache-2.0
"""Counts that do not decide which loops they are of: benchmarks/undecided_loops.py, and programs on process grids."""

from __future__ import annotations

import numpy as np
from process_grids import KINDS, Loop, assumed, counts, known, undecided
from undecided_loops import extremes

SOLID = next(kind for kind in KINDS if kind.name == "3D, strong")
PLANE = next(kind for kind in KINDS if kind.name == "2D, strong")
COLUMNS = next(kind for kind in KINDS if kind.name == "3D in a 2D grid, strong")


def test_both_sums_give_all_counts() -> None:
    """2·(n + 1) equals n + (n + 2), but only one of them is divided at the target."""
    here = np.array([[1.0, 2, 3], [2.0, 3, 4], [3.0, 4, 5]])  # n, n + 1, n + 2
    there = np.array([10.0, 20.0, 11.0])
    found = extremes(here, there, 2 * here[1], 2, 9)
    assert found is not None
    assert found.coefficients == ({0: 1, 2: 1}, {1: 2})
    assert found.values == (21.0, 40.0)
    assert found.apart


def test_fewer_nests_or_smaller_coefficients_decide() -> None:
    here, there = np.array([[1.0, 2, 3], [2.0, 3, 4], [3.0, 4, 5]]), np.array([10.0, 20.0, 11.0])
    one = extremes(here, there, 2 * here[1], 1, 9)
    assert one is not None and one.values == (40.0, 40.0) and not one.apart
    assert extremes(here, there, 20 * here[1], 1, 9) is None


def test_what_an_extent_that_was_always_one_hides() -> None:
    """147·(n - 2) + 244 in z, where pz = 1, is 25·(n - 2) + 122·n, too: at pz = 2 these are not the same."""
    inside = ("inner", "inner")
    loops = [Loop(147, (*inside, "inner")), Loop(244, (*inside, "one"))]
    other = [Loop(25, (*inside, "inner")), Loop(122, (*inside, "cells"))]
    points = [(p, n) for p in (1, 2, 4) for n in SOLID.sizes]
    np.testing.assert_allclose(counts(SOLID, [loops], points), counts(SOLID, [other], points))
    assert undecided(SOLID, loops, known(SOLID), (1, 2, 4), (8, 64)) is not None
    assert undecided(SOLID, loops, known(SOLID), (1, 2, 4, 8), (16, 64)) is None


def test_one_nest_in_a_plane_is_decided() -> None:
    assert undecided(PLANE, [Loop(26, ("faces", "with ghosts"))], known(PLANE), (1, 2, 4), (16, 128)) is None


def test_grids_that_are_alike_up_to_four_processes_are_not_told_apart() -> None:
    ghosts = [Loop(7, ("with ghosts",) * 3)]
    found = undecided(COLUMNS, ghosts, assumed(COLUMNS), (1, 2, 4), (16, 64))
    assert found is not None
    assert "[4, 4, 1]" in found[0] and "[4, 2, 2]" in found[1]
    assert undecided(COLUMNS, ghosts, known(COLUMNS), (1, 2, 4), (16, 64)) is None
