# SPDX-License-Identifier: Apache-2.0
"""Counts that are sums of loop nests over the part of a domain that a rank has: their coefficients all together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, Options, fit_models
from quipu.modeling.pmnf.proposers.grid_forms import Domain
from quipu.modeling.pmnf.proposers.loop_nests import LoopNests, ranges
from quipu.modeling.pmnf.proposers.nest_sums import NestSums
from quipu.modeling.pmnf.proposers.size_polynomials import SizePolynomials
from quipu.modeling.process_grid import ProcessGrid, assumed

BLOCKS = Metric("blocks", "1", "effort")
SIZES = (12.0, 16.0, 24.0, 32.0, 40.0)
OPEN, RING = (False, False), (True, True)
PLANE = ProcessGrid("p", "balanced", 2, "declared", OPEN)


def _mean(over: tuple[str, ...], n: float, grid: FloatArray, ring: bool) -> float:
    """Return the mean over all ranks of a nest that runs over `over`, counted rank by rank."""
    total = 0.0
    for rank in product(*(range(int(x)) for x in grid)):
        trips = 1.0
        for what, place, x in zip(over, rank, grid, strict=True):
            before = float(place > 0 or (ring and x > 1))
            after = float(place < x - 1 or (ring and x > 1))
            trips *= {
                "cells": n / x,
                "ghosts": n / x + 2,
                "faces": n / x + 1,
                "inside": n / x - 2 + before + after,
                "one": 1.0,
                "before": before,
                "first": 1.0 - before,
            }[what]
        total += trips
    return total / float(grid.prod())


def _models(
    paths: Sequence[Sequence[tuple[int, tuple[str, ...]]]], grids: tuple[ProcessGrid, ...], ring: bool = False
) -> tuple[list[Model], FloatArray]:
    """Return the models of sums of nests measured at p = 1, 2, 4, and what they are at p = 8, 16 and n = 64."""

    def values(points: list[tuple[float, float]]) -> FloatArray:
        at = [np.array(grids[0].at(p)) for p, _ in points]
        return np.array(
            [
                [sum(c * _mean(over, n, x, ring) for c, over in path) for (_, n), x in zip(points, at, strict=True)]
                for path in paths
            ]
        )

    points = list(product((1.0, 2.0, 4.0), SIZES))
    found = fit_models(np.array(points), values(points)[:, :, None], BLOCKS, ("p", "n"), Options(grids=grids))
    assert all(isinstance(model, Model) for model in found)
    return [model for model in found if isinstance(model, Model)], values([(8.0, 64.0), (16.0, 64.0)])


@pytest.mark.parametrize("ring", [False, True])
def test_nests_are_means_over_ranks(ring: bool) -> None:
    """Each range of a loop, compared with a count rank by rank."""
    own = {(r.cells, r.one, r.share, r.several): r for r in ranges(ring)}
    inside = (1, -2, 0, 2) if ring else (1, 0, -2, 0)
    names = {
        "cells": (1, 0, 0, 0),
        "ghosts": (1, 2, 0, 0),
        "faces": (1, 1, 0, 0),
        "inside": inside,
        "one": (0, 1, 0, 0),
    }
    names |= {"before": (0, 0, 0, 1) if ring else (0, 1, -1, 0), "first": (0, 1, 0, -1) if ring else (0, 0, 1, 0)}
    nests = LoopNests(Domain(2, True), (ring, ring))
    grids = np.array([[1.0, 1.0], [3.0, 1.0], [4.0, 2.0]])
    for over in product(names, repeat=2):
        nest = next(one for one in nests.nests if one.over == (tuple(own[names[what]] for what in over),))
        (found,) = nests.coefficients([nest], grids)
        for place, grid in enumerate(grids):
            assert np.polyval(found[::-1, place], 24.0) == pytest.approx(_mean(over, 24.0, grid, ring))


def test_one_nest_is_more_likely_than_four_coefficients() -> None:
    """26·(n/px + 1)·(n/py + 2) is 26·n²/p + 26·n + 52·n/p + 52 at 1×1, 2×1 and 2×2, and not beyond."""
    (model,), true = _models([[(26, ("faces", "ghosts"))]], (PLANE,))
    assert str(model) == "26·n²/p + 26·n/py + 52·n/px + 52"
    assert [model.at(p=8, n=64), model.at(p=16, n=64)] == pytest.approx(true[0])


def test_sums_of_three_nests() -> None:
    paths = [
        [(195, ("inside", "one")), (155, ("inside", "faces")), (66, ("ghosts", "inside"))],
        [(7, ("one", "first")), (300, ("cells", "ghosts")), (5, ("faces", "faces"))],
    ]
    models, true = _models(paths, (PLANE,))
    for model, own in zip(models, true, strict=True):
        assert [model.at(p=8, n=64), model.at(p=16, n=64)] == pytest.approx(own)


def test_rings_are_seen_where_nothing_is_known() -> None:
    """Without edges of the domain where a rank is alone in a ring, and with all cells elsewhere."""
    paths = [[(268, ("inside", "cells"))], [(100, ("inside", "inside")), (31, ("faces", "inside"))]]
    for grids in ((ProcessGrid("p", "balanced", 2, "of MPI_Cart_create", RING),), assumed("p")[1:]):
        models, true = _models(paths, grids, ring=True)
        for model, own in zip(models, true, strict=True):
            assert [model.at(p=8, n=64), model.at(p=16, n=64)] == pytest.approx(own)


def test_grids_that_nothing_tells_apart_are_in_the_interval() -> None:
    """Columns of a 3D domain: 2×2 and 2×2×1 are equal, 4×2 and 2×2×2 are not."""
    grid = ProcessGrid("p", "balanced", 2)
    (model, _), _ = _models([[(40, ("ghosts", "ghosts"))], [(9, ("cells", "cells"))]], (grid,))
    assert not model.alternatives
    points = np.array(list(product((1.0, 2.0, 4.0), SIZES)))
    columns = np.array(
        [
            40 * (n / x + 2) * (n / y + 2) * (n + 2)
            for (x, y), n in zip(map(grid.at, points[:, 0]), points[:, 1], strict=True)
        ]
    )
    (found,) = fit_models(points, columns[None, :, None], BLOCKS, ("p", "n"), Options(grids=assumed("p")))
    assert isinstance(found, Model)
    prediction = found.predict((16.0, 64.0))
    assert prediction.lower <= 40 * 18 * 18 * 66 <= prediction.upper
    assert prediction.lower <= 40 * 18 * 34 * 34 <= prediction.upper
    assert any("other grids" in note for note in found.notes)


def test_what_the_grids_do_not_decide_is_in_the_interval() -> None:
    """Where pz was 1, 147·(n - 2) + 244 is 25·(n - 2) + 122·n as well: both sums of two nests, one is shorter."""
    grid = ProcessGrid("p", "balanced", 3, "declared", (False,) * 3)
    inside = ("inside", "inside")
    sums = [
        [(147, (*inside, "inside")), (244, (*inside, "one"))],
        [(25, (*inside, "inside")), (122, (*inside, "cells"))],
    ]
    models, true = _models(sums, (grid,))
    assert str(models[0]) == str(models[1])
    for place, p in enumerate((8.0, 16.0)):
        prediction = models[0].predict((p, 64.0))
        for own in true[:, place]:
            assert prediction.lower - 1e-6 * own <= own <= prediction.upper + 1e-6 * own


def test_numbers_that_no_few_nests_have() -> None:
    grids = np.array([[1.0, 1.0], [2.0, 1.0], [2.0, 2.0]])
    sums = NestSums(LoopNests(Domain(2, True), OPEN), grids, 2 * grids)
    random = np.random.default_rng(1)
    assert not sums.propose(random.integers(1, 400, (3, 3)).astype(float), 3)
    assert not sums.propose(np.zeros((3, 3)), 3)


def test_polynomials_have_no_rounding() -> None:
    """The constant is seven digits beneath the last one of the largest count."""
    sizes = np.tile([1e4, 2e4, 3e4, 4e4, 5e4], 2)
    processes = np.repeat([1.0, 2.0], 5)
    polynomials = SizePolynomials(sizes, processes, 3)
    found = polynomials.coefficients((19 * sizes**3 + 3 * sizes + 7) / processes)
    assert found is not None
    np.testing.assert_array_equal(found, np.outer([7, 3, 0, 19], [1.0, 0.5]))
    assert polynomials.coefficients((19 * sizes**3 + 3 * sizes + 7 + (sizes == 3e4)) / processes) is None
    assert polynomials.coefficients(np.sqrt(sizes)) is None


def test_nests_that_do_something_at_each_of_their_loops() -> None:
    """Three loops in compiled code: blocks of the innermost loop, and some per iteration of the outer loops."""
    grid = ProcessGrid("p", "balanced", 3, "declared", (False,) * 3)
    over = ("faces", "ghosts", "inside")
    ends = [(*over[:many], *["one"] * (3 - many)) for many in range(4)]
    starts = [(*["one"] * (3 - many), *over[3 - many :]) for many in range(4)]
    paths = [list(zip((4, 7, 3, 11), own, strict=True)) for own in (ends, starts)]
    models, true = _models(paths, (grid,))
    for model, own in zip(models, true, strict=True):
        assert [model.at(p=8, n=64), model.at(p=16, n=64)] == pytest.approx(own)


def test_all_ranks_alike_is_likelier_than_neighbours_in_one_dimension() -> None:
    """Work of ranks if p > 1 is as frequent at 2×1 and 2×2 as work with a neighbour in x."""
    points = np.array(list(product((1.0, 2.0, 4.0), SIZES)))
    (p, n), (x, y) = points.T, PLANE.extents(points[:, 0]).T
    nests = [c * (n / x + 1) * (n / y + ghosts) for c, ghosts in ((26, 2), (7, 1))]  # these show the grid
    counts = np.stack([*nests, np.where(p > 1, 8.0, 0.0)])
    *_, model = fit_models(points, counts[:, :, None], BLOCKS, ("p", "n"), Options(grids=(PLANE,)))
    assert isinstance(model, Model)
    assert model.at(p=16, n=64) == 8.0


def test_what_is_seen_at_one_number_of_processes_is_doubted() -> None:
    """Faces in y that only exist at 2×2: n/px + 1/2 and (n + 1)/px, among others, are equal there."""
    points = np.array(list(product((1.0, 2.0, 4.0), SIZES)))
    extents = np.array([PLANE.at(p) for p in points[:, 0]])
    (x, y), n = extents.T, points[:, 1]

    def faces(n: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
        return (y - 1) / y * (240 * n / x + 120)

    counts = np.stack([n**2 / (x * y), (n / x + 2) * (n / y + 2), faces(n, x, y)])
    *_, model = fit_models(points, counts[:, :, None], BLOCKS, ("p", "n"), Options(grids=(PLANE,)))
    assert isinstance(model, Model)
    for p in (8.0, 16.0):
        size = np.array([64.0])
        (own,) = faces(size, *np.array(PLANE.at(p))[:, None])
        prediction = model.predict((p, 64.0))
        assert prediction.lower <= own <= prediction.upper


def test_a_run_that_is_missing_does_not_hide_the_third_dimension() -> None:
    """Three sizes at one number of processes show no cubes: edges of the domain, n²/p, would explain everything."""
    grids = tuple(sorted(assumed("p"), key=lambda grid: -grid.dimensions))
    cubes = [("cells", "cells", "cells"), ("ghosts", "ghosts", "ghosts")]
    nests = [*cubes, ("first", "cells", "cells"), ("before", "ghosts", "ghosts"), ("ghosts", "before", "ghosts")]

    def values(points: Sequence[tuple[float, float]]) -> FloatArray:
        at = [np.array(grids[0].at(p)) for p, _ in points]
        counts = [[24 * _mean(over, n, x, False) for (_, n), x in zip(points, at, strict=True)] for over in nests]
        several = [[visits * float(p > 1) for p, _ in points] for visits in (24, 32, 144, 178, 280)]
        return np.array([*counts, *several])

    points = [own for own in product((1.0, 2.0, 4.0, 8.0, 16.0, 32.0), (16.0, 32.0, 48.0, 64.0)) if own != (16.0, 16.0)]
    options = Options(grids=grids, ranked=True)
    found = fit_models(np.array(points), values(points)[:, :, None], BLOCKS, ("p", "n"), options)
    further = [(64.0, 128.0), (256.0, 64.0)]
    for model, own in zip(found, values(further), strict=True):
        assert isinstance(model, Model)
        np.testing.assert_allclose(model.evaluate(np.array(further)), own, rtol=1e-9)
