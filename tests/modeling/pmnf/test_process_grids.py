# SPDX-License-Identifier: Apache-2.0
"""Counts of decomposed domains: exact in the extents of the process grid, at grids that were not measured."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import pytest
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, Options, fit_models, from_json, to_json
from quipu.modeling.pmnf.options import NoModel
from quipu.modeling.pmnf.proposers.grid_coefficients import Coefficients, OtherParameters
from quipu.modeling.pmnf.proposers.grid_forms import Domain, GridForms
from quipu.modeling.process_grid import (
    RULES,
    ProcessGrid,
    assumed,
    balanced,
    extents,
    infer,
    prime_factors_in_turn,
    telling,
)

BLOCKS = Metric("blocks", "1", "effort")
SIZES = (12.0, 16.0, 24.0, 32.0, 40.0)
Counts = Callable[[float, FloatArray], float]

# mean over the ranks of a grid with extents x, of n^d cells together
PLANTED: dict[str, tuple[int, Counts]] = {
    "cells in 2D": (2, lambda n, x: 7 * n**2 / x.prod() + 3 * n / x[0] + 5),
    "messages in 2D": (2, lambda n, x: 2 * (x[0] - 1) / x[0] + 2 * (x[1] - 1) / x[1] + 0 * n),
    "bytes in 2D": (2, lambda n, x: 16 * n * ((x[0] - 1) / x[0] / x[1] + (x[1] - 1) / x[1] / x[0])),
    "interior of columns": (2, lambda n, x: 26 * (n - 2) ** 3 / x.prod()),
    "ghosts of columns": (2, lambda n, x: 4 * (n / x[0] + 2) * (n / x[1] + 2) * n),
    "faces in 3D": (3, lambda n, x: 6 * n**2 * sum((e - 1) for e in x) / x.prod()),
    "neighbours of 3D stencils": (3, lambda n, x: 10 * (3 - 2 / x).prod() - 10 + 0 * n),
    "corners that one of two ranks sends in 2D": (2, lambda n, x: 5 * (2 - 1 / x).prod() - 5 + 0 * n),
    "cells in 3D": (3, lambda n, x: 11 * n**3 / x.prod() + 9),
}


def _models(
    dimensions: int, counts: list[Counts], processes: tuple[int, ...], grids: tuple[ProcessGrid, ...]
) -> list[Model | NoModel]:
    points = np.array(list(product(processes, SIZES)), dtype=np.float64)
    places = ProcessGrid("p", "balanced", dimensions).extents(points[:, 0])
    values = np.array([[own(n, x) for (_, n), x in zip(points, places, strict=True)] for own in counts])
    return fit_models(points, values[:, :, None], BLOCKS, ("p", "n"), Options(grids=grids))


@pytest.mark.parametrize("name", PLANTED)
def test_a_grid_that_is_known_predicts_larger_ones(name: str) -> None:
    dimensions, counts = PLANTED[name]
    grid = ProcessGrid("p", "balanced", dimensions, "declared")
    # the domain shows in the program as a whole
    whole: Counts = lambda n, x: 5 * n ** (3 if "columns" in name or "3D" in name else 2) / x.prod()  # noqa: E731
    model, _ = _models(dimensions, [counts, whole], (1, 2, 4), (grid,))
    assert isinstance(model, Model)
    for p in (8, 12, 16):
        prediction = model.predict((p, 64.0))
        assert prediction.value == pytest.approx(counts(64.0, np.array(grid.at(p))), rel=1e-6)


@pytest.mark.parametrize("periodic", [(True, True), (True, False)])
def test_neighbours_of_periodic_dimensions(periodic: tuple[bool, ...]) -> None:
    """Two ranks of a ring have as many neighbours as ten; two ranks of a row have half as many."""
    grid = ProcessGrid("p", "balanced", 2, "of MPI_Cart_create", periodic)

    def neighbours(x: FloatArray) -> FloatArray:
        return np.where(periodic, 2.0 * (x > 1), 2.0 * (x - 1) / x)

    counts: list[Counts] = [lambda n, x: 10 * neighbours(x).sum() + 0 * n, lambda n, x: 5 * n**2 / x.prod()]
    counts.append(lambda n, x: 80 * n * (neighbours(x) * x).sum() / x.prod())
    for model, own in zip(_models(2, counts, (1, 2, 4), (grid,)), counts, strict=True):
        assert isinstance(model, Model)
        for p in (3, 6, 12, 16):
            assert model.predict((p, 64.0)).value == pytest.approx(own(64.0, np.array(grid.at(p))), rel=1e-6)


@pytest.mark.parametrize("source", ["declared", "of MPI_Cart_create"])
def test_where_periods_are_not_known_both_are_possible(source: str) -> None:
    grid = ProcessGrid("p", "balanced", 2, source)
    counts: Counts = lambda n, x: 20.0 * (x > 1).sum() + 0 * n  # noqa: E731
    whole: Counts = lambda n, x: 5 * n**2 / x.prod()  # noqa: E731
    model, _ = _models(2, [counts, whole], (1, 2, 4), (grid,))
    assert isinstance(model, Model)
    prediction = model.predict((16.0, 64.0))
    assert prediction.lower <= 40.0 * (1 + 1e-6) <= prediction.upper
    assert any("measure p" in note for note in model.notes)


def test_ranks_in_a_chain_are_no_faces_of_a_grid() -> None:
    """Slabs: 2·(p-1)/p neighbours, at 1, 2, 4 ranks as many as mean faces of a 3D grid, which get fewer with p."""
    messages: Counts = lambda n, x: 300 * (x[0] - 1) / x[0] + 0 * n  # noqa: E731
    sent: Counts = lambda n, x: 2400 * n**2 * (x[0] - 1) / x[0]  # noqa: E731
    for counts, model in zip((messages, sent), _models(1, [messages, sent], (1, 2, 4), assumed("p")), strict=True):
        assert isinstance(model, Model)
        assert model.predict((1024.0, 64.0)).value == pytest.approx(counts(64.0, np.array([1024.0])))


def test_neighbours_at_edges_and_corners_from_two_cubes() -> None:
    """Messages to up to 26 ranks, at 1, 8 and 27: three functions of the grid would need another cubic grid."""
    messages: Counts = lambda n, x: 20 * ((3 - 2 / x).prod() - 1) + 0 * n  # noqa: E731
    grid = ProcessGrid("p", "balanced", 3, "declared")
    (model,) = _models(3, [messages], (1, 8, 27), (grid,))
    assert isinstance(model, Model)
    for p in (12, 64, 120):
        assert model.predict((p, 64.0)).value == pytest.approx(messages(64.0, np.array(grid.at(p))))


def test_functions_that_the_grids_do_not_tell_apart_are_in_the_interval() -> None:
    grid = ProcessGrid("p", "balanced", 2, "declared")
    # (1 - 2/px)·(1 - 1/py) is 0 at 1×1, 2×1 and 2×2, where 4 cannot be told from 3 + 2/px + 1/py - 2/(px·py)
    (model,) = _models(2, [lambda n, x: 4 + (1 - 2 / x[0]) * (1 - 1 / x[1]) + n / x.prod()], (1, 2, 4), (grid,))
    assert isinstance(model, Model)
    assert model.predict((16.0, 64.0)).value == pytest.approx(4 + 64 / 16)
    (model,) = _models(2, [lambda n, x: 6 * n * (x[0] - 1) / x[0] + 2 * n], (1, 2), (grid,))
    assert isinstance(model, Model)
    prediction = model.predict((16.0, 64.0))
    assert prediction.lower < prediction.upper
    assert any("measure p = " in note for note in model.notes)


def test_an_extent_that_was_always_one_may_have_ghost_layers() -> None:
    grid = ProcessGrid("p", "balanced", 3, "declared")
    counts: Counts = lambda n, x: 26 * (n / x[0]) * (n / x[1]) * (n / x[2] + 2)  # noqa: E731
    (model,) = _models(3, [counts], (1, 2, 4), (grid,))
    assert isinstance(model, Model)
    for p in (8, 16):
        prediction = model.predict((p, 64.0))
        assert prediction.lower <= counts(64.0, np.array(grid.at(p))) <= prediction.upper


def test_an_unknown_grid_is_said_to_be_assumed() -> None:
    counts = PLANTED["bytes in 2D"][1]
    (model,) = _models(2, [counts], (1, 2, 4, 8), assumed("p"))
    assert isinstance(model, Model)
    assert model.at(p=16, n=64) == pytest.approx(counts(64.0, np.array([4.0, 4.0])))
    assert any("assumed grid px × py" in note for note in model.notes)


def test_what_no_sum_reproduces_has_none() -> None:
    grid = ProcessGrid("p", "balanced", 1)
    forms = GridForms(grid.extents(np.array([1.0, 2, 4, 8, 16, 32])), grid.extents(np.array([64.0, 128.0])))
    assert forms.propose(np.array([1.0, 1.37, 2.11, 2.93, 4.24, 7.77]), 1e-9, 0, True, None) is None


def test_counts_without_a_grid_keep_their_models() -> None:
    counts: list[Counts] = [lambda n, x: 3 * n**2 + 7 * n / x.prod(), lambda n, x: 5 * n * np.log2(x.prod())]
    with_grids = _models(2, counts, (1, 2, 4, 8, 16), assumed("p"))
    assert list(map(str, with_grids)) == list(map(str, _models(2, counts, (1, 2, 4, 8, 16), ())))


def test_models_with_extents_survive_as_documents() -> None:
    (model,) = _models(2, [PLANTED["bytes in 2D"][1]], (1, 2, 4, 8), (ProcessGrid("p", "balanced", 2, "declared"),))
    assert isinstance(model, Model)
    again = from_json(to_json(model))
    assert again == model
    assert str(model) == "16·n·(px-1)/px/py + 16·n·(py-1)/py/px"
    data = to_json(model)
    for rule in ("by hand", "balanced, but 2x1x3", "balanced, but 2xa", "balanced, but 1x2, but 2x1"):
        data["terms"][0]["factors"][0]["axis"] = {"rule": rule, "dimensions": 2, "index": 0}
        with pytest.raises(FormatError, match="unknown process grid"):
            from_json(data)
    data["terms"][0]["factors"][0]["axis"] = {"rule": "balanced, but 1x2", "dimensions": 2, "index": 0}
    assert from_json(data).terms[0].factors[0].axis is not None


@pytest.mark.parametrize(
    ("processes", "dimensions", "grid"),
    [(1, 2, (1, 1)), (2, 2, (2, 1)), (8, 2, (4, 2)), (12, 3, (3, 2, 2)), (72, 2, (9, 8)), (7, 3, (7, 1, 1))],
)
def test_balanced_grids(processes: int, dimensions: int, grid: tuple[int, ...]) -> None:
    assert balanced(processes, dimensions) == grid


def test_rules_follow_from_what_was_measured() -> None:
    assert prime_factors_in_turn(72, 2) == (12, 6)
    for name, grids in {
        "balanced": [(2, 1), (4, 2)],
        "balanced, smallest first": [(1, 2), (2, 4)],
        "prime factors in turn": [(2, 1), (12, 6)],
    }.items():
        processes = [a * b for a, b in grids]
        found = infer("p", processes, np.array(grids), "measured")
        assert found is not None and found.rule == name
    assert infer("p", [8], np.array([[8, 1]]), "measured") is None
    others = infer("p", [1, 2, 4, 6, 8], np.array([(1, 1, 1), (1, 1, 2), (1, 2, 2), (2, 1, 3), (2, 2, 2)]), "measured")
    assert others is not None and others.rule == "balanced, smallest first, but 2x1x3"
    assert (others.at(6.0), others.at(12.0)) == ((2.0, 1.0, 3.0), (2.0, 2.0, 3.0))
    assert others.extents(np.array([6.0, 8.0])).tolist() == [[2.0, 1.0, 3.0], [2.0, 2.0, 2.0]]
    assert infer("p", [1, 2, 6], np.array([(1, 1), (1, 2), (1, 6)]), "measured") is None
    assert all(extents(rule, 10.5, 2) == pytest.approx((10.5**0.5,) * 2) for rule in RULES)


def test_the_numbers_of_processes_that_tell_extents_apart() -> None:
    assert telling(ProcessGrid("p", "balanced", 2), [1, 2, 4]) == [6]
    assert telling(ProcessGrid("p", "balanced", 2), [1, 2, 4, 6]) == []


def test_grids_share_what_counts_are_at_each_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of the other parameters are equal under all tried grids."""
    calls: list[int] = []
    solve = OtherParameters.coefficients

    def counted(self: OtherParameters, values: FloatArray) -> list[Coefficients | None]:
        calls.append(1)
        return solve(self, values)

    monkeypatch.setattr(OtherParameters, "coefficients", counted)
    faces: Counts = lambda n, x: 4 * n * ((x[0] - 1) / x[0] / x[1] + (x[1] - 1) / x[1] / x[0])  # noqa: E731
    _models(2, [faces], (1, 2, 4), assumed("p"))
    assert len(assumed("p")) > 1
    assert len(calls) == 1


def test_extents_of_many_and_of_few_points_are_the_same() -> None:
    for grid in assumed("p"):
        for axis in grid.axes:
            few = np.array([[1.0, 6.0], [12.0, 5.5]])
            assert axis.extent(few).shape == few.shape
            assert (axis.extent(np.tile(few, (1024, 1)))[:2] == axis.extent(few)).all()


def test_polynomials_through_counts_that_depend_on_data_are_no_models() -> None:
    """At four sizes equally far apart any whole counts are those of a cubic polynomial with small fractions.

    Regions of a material and the iterations in them, means over ranks; beside them what a grid makes.
    """
    points = np.array(list(product((1.0, 8, 27), (6.0, 8, 10, 12))))
    p, n = points.T
    random = np.random.default_rng(3)
    cells = np.round(16 * n**3 * random.uniform(0.9, 1.1, (20, len(points))) * p) * 10 / p
    side = np.round(np.cbrt(p))
    known = np.stack([60 * (1 - 1 / side), 10 * n**3 + 50])
    values = np.concatenate([cells, known])[:, :, None]
    found = fit_models(points, values, BLOCKS, ("p", "n"), Options(grids=assumed("p")))
    for model in found[:20]:
        assert isinstance(model, Model)
        assert model.at(p=64, n=14) == pytest.approx(160 * 14**3, rel=0.3)
    messages, work = found[20:]
    assert isinstance(messages, Model) and isinstance(work, Model)
    assert messages.at(p=64, n=14) == pytest.approx(45)
    assert work.at(p=64, n=14) == pytest.approx(10 * 14**3 + 50)


def _counts(
    counts: Callable[[float, float], float], processes: tuple[int, ...], sizes: tuple[float, ...]
) -> FloatArray:
    return np.array([[counts(p, n) for p, n in product(processes, sizes)]])[:, :, None]


def _of_messages(
    counts: Callable[[float, float], float], *grids: ProcessGrid, sizes: tuple[float, ...] = SIZES
) -> Model:
    """Return the model of counts at p = 1, 2, 4."""
    points = np.array(list(product((1, 2, 4), sizes)), dtype=np.float64)
    values = _counts(counts, (1, 2, 4), sizes)
    (model,) = fit_models(points, values, BLOCKS, ("p", "n"), Options(grids=grids))
    assert isinstance(model, Model)
    return model


CHAIN = ProcessGrid("p", "balanced", 1, "of messages")


@pytest.mark.parametrize("grids", [(), assumed("p"), (CHAIN,)])
def test_what_more_than_one_process_does_is_no_function_of_their_number(grids: tuple[ProcessGrid, ...]) -> None:
    """4, 5, 5 at p = 1, 2, 4 are a branch for p > 1, and not 2·log2(p)/p + 4."""
    model = _of_messages(lambda p, n: 4.0 + (p > 1), *grids)
    assert str(model) == "5"
    assert any("without p=1" in note for note in model.notes)


def test_something_for_each_other_rank() -> None:
    assert str(_of_messages(lambda p, n: 6 * (p - 1), CHAIN)) == "6·(p-1)"
    transposed = _of_messages(lambda p, n: 48 * n**2 * (p - 1) / p**2, CHAIN)
    assert str(transposed) == "48·n²·(p-1)/p²"
    assert transposed.predict([8, 640]).value == pytest.approx(48 * 640**2 * 7 / 64)


def test_as_many_coefficients_as_points_need_other_evidence() -> None:
    """Any four counts at 2, 4, 6, 8 have a polynomial with (nearly) whole coefficients."""
    of_data = {2.0: 313344, 4.0: 828928, 6.0: 1398784, 8.0: 2110848}
    model = _of_messages(lambda p, n: of_data[n] / p, *assumed("p"), sizes=tuple(of_data))
    prediction = model.predict([8, 12])
    assert prediction.upper - prediction.lower > 0.01 * prediction.value
    of_loops = _of_messages(lambda p, n: (3 * n**3 + 5 * n**2 + 4 * n + 7) / p, *assumed("p"), sizes=(10, 20, 30, 40))
    assert of_loops.predict([8, 100]).value == pytest.approx((3e6 + 5e4 + 407) / 8)


def test_products_of_coefficients_and_functions_of_even_sizes_are_no_common_factor() -> None:
    """A sparse matrix times a vector, 300 operations per row: its counts differ by multiples of 360."""

    def counts(p: float, n: float) -> float:
        return 300 * n**3 - (360 + 180 / p) * n**2 + (120 + 240 / p) * n - 80 / p + 30

    model = _of_messages(counts, *assumed("p"), sizes=(8, 10, 12, 16))
    assert model.predict([24, 48]).value == pytest.approx(counts(24, 48))


def test_no_count_becomes_negative() -> None:
    """-6·n²·p + 36·n²·(p-1)/p + 6·n² fits these counts, too."""
    model = _of_messages(lambda p, n: 48 * n**2 * (p - 1) / p**2, ProcessGrid("p", "balanced", 1))
    assert model.evaluate(np.array([[8.0, 40.0], [16.0, 40.0], [32.0, 40.0]])).min() >= 0


def test_the_domain_is_that_of_the_largest_counts() -> None:
    """Columns alone do not show that the domain has two dimensions; the cells of the program do."""
    grid = ProcessGrid("p", "balanced", 2, "declared")
    columns: Counts = lambda n, x: 316 * (n / x[0] + 2)  # noqa: E731
    cells: Counts = lambda n, x: 333 * n**2 / x.prod()  # noqa: E731
    model, _ = _models(2, [columns, cells], (1, 2, 4), (grid,))
    assert str(model) == "316·n/px + 632"


def test_what_one_rank_does_for_all_is_no_part_of_a_plane() -> None:
    grid = ProcessGrid("p", "balanced", 3, "of messages")
    root: Counts = lambda n, x: 19 / x.prod()  # noqa: E731
    cells: Counts = lambda n, x: 11 * n**3 / x.prod() + 3 * n**2 / x[0]  # noqa: E731
    model, _ = _models(3, [root, cells], (1, 2, 4), (grid,))
    assert str(model) == "19/p"


# Bytes and blocks of the 26 neighbours of a process in 3D, mean over the ranks.
FACES: Counts = lambda n, x: 128 * n**2 * ((x - 1) / x).sum() + 256 * n * _edges((x - 1) / x)  # noqa: E731


def _edges(sides: FloatArray) -> float:
    return float(sides[0] * sides[1] + sides[0] * sides[2] + sides[1] * sides[2])


@pytest.mark.parametrize("more", [((32, 8),), ((32, 8), (32, 16)), ((16, 24),)])
def test_points_that_are_no_line_confirm_a_grid(more: tuple[tuple[int, int], ...]) -> None:
    points = np.array([*product((1, 2, 4, 8, 16), (4, 8, 12, 16)), *more], dtype=np.float64)
    places = ProcessGrid("p", "balanced", 3).extents(points[:, 0])
    values = np.array([[FACES(n, x) for (_, n), x in zip(points, places, strict=True)]])
    (model,) = fit_models(points, values[:, :, None], BLOCKS, ("p", "n"), Options(grids=assumed("p")))
    assert isinstance(model, Model)
    assert model.at(p=64, n=64) == pytest.approx(FACES(64.0, np.array([4.0, 4.0, 4.0])))
    wrong = values.copy()
    wrong[0, -1] *= 1.5  # what the line of another number of processes does not have confirms nothing
    (model,) = fit_models(points, wrong[:, :, None], BLOCKS, ("p", "n"), Options(grids=assumed("p")))
    assert isinstance(model, Model) and not any(f.axis for term in model.terms for f in term.factors)


def _pairs(of_data: dict[float, int], p: float, n: float) -> float:
    return of_data[n] / p + 900


def test_counts_with_a_common_factor_are_no_polynomials_by_luck() -> None:
    """Pairs of neighbours of atoms, in vectors of 32: any four counts are whole at n = 8, 12, 16, 20."""
    random = np.random.default_rng(3)
    sizes, claimed = (8.0, 12.0, 16.0, 20.0), 0
    for _ in range(20):
        of_data = {n: 32 * int(5400 * n**3 / 32 * random.uniform(0.98, 1.02)) for n in sizes}
        model = _of_messages(partial(_pairs, of_data), *assumed("p"), sizes=sizes)
        prediction = model.predict([8, 32])
        claimed += prediction.upper - prediction.lower < 1e-6 * prediction.value
    assert claimed == 0


def test_sums_of_a_grid_are_the_shortest_of_their_equals() -> None:
    """(n+1)²/2, n(n+1)/2, n(n+1)/4 at p = 4, 8, 16, nothing below: a longer form has the same values."""
    table = {1: 0.0, 2: 0.0, 4: 0.5, 8: 0.5, 16: 0.25}
    points = np.array(list(product(table, (8, 12, 16, 20))), dtype=np.float64)
    p, n = points.T
    own = np.array([table[int(one)] for one in p]) * (n + 1) * (n + (p == 4))
    values = np.stack([own, 7 * n**3 / p])
    models = fit_models(points, values[:, :, None], BLOCKS, ("p", "n"), Options(grids=assumed("p")))
    assert all(isinstance(model, Model) for model in models)
    for dimensions in (1, 2, 3):
        grids = ProcessGrid("p", "balanced", dimensions).extents(np.array([1.0, 2, 4, 8, 16]))
        forms = GridForms(grids, ProcessGrid("p", "balanced", dimensions).extents(np.array([32.0, 64.0])))
        for order, coefficients in ((2, [0, 0, 0.5, 0.5, 0.25]), (1, [0, 0, 1, 0.5, 0.25]), (0, [0, 0, 0.5, 0, 0])):
            found = forms.propose(np.array(coefficients, dtype=np.float64), 1e-9, order, order == 2, Domain(3, True))
            assert found is None or (len(found.rows) and found.lengths[0] == found.lengths.min())
