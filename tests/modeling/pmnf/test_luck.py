# SPDX-License-Identifier: Apache-2.0
"""Exact functions of small numbers by coincidence are no models, and nothing grows without measured growth."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, Options, fit_models
from quipu.modeling.pmnf.criterion.one_process import reproduces
from quipu.modeling.pmnf.proposers.grid_coefficients import Coefficients
from quipu.modeling.process_grid import ProcessGrid, assumed

BLOCKS = Metric("blocks", "1", "effort")
RANKS = (1.0, 2.0, 4.0, 8.0, 16.0)


def model_of(values: FloatArray, points: FloatArray, options: Options | None = None) -> Model:
    names = ("p", "n")[: points.shape[1]]
    (model,) = fit_models(points, values[None, :, None], BLOCKS, names, options or Options())
    assert isinstance(model, Model)
    return model


def along_p(values: tuple[float, ...], ranks: tuple[float, ...] = RANKS) -> Model:
    """Return the model of values that three sizes have alike."""
    sizes = (4.0, 8.0, 12.0)
    return model_of(np.repeat(values, len(sizes)), np.array(list(product(ranks, sizes))))


@pytest.mark.parametrize(
    ("values", "ranks", "truth"),
    [
        # p·log2(p), p, 1/p and a constant have the five of them: 210 at p = 64
        ((1320, 710, 400, 240, 160), RANKS, 93.75),
        # log2(p)², log2(p) and a constant have the last four: 300
        ((1270, 850, 520, 300, 190), RANKS, 1300 * 64**-0.69),
        # means over ranks are multiples of 1/16, and log2(p), 1/p² and a constant have these
        ((9, 9.5, 9.25, 8.8125), RANKS[1:], 7.39),
        # shares of a visit at three numbers of ranks, of which p and 1/p have 1.6 at p = 64
        ((0.5, 0.4, 0.5), (4.0, 8.0, 16.0), 0.5),
    ],
)
def test_what_small_numbers_have_by_luck_is_no_model(
    values: tuple[float, ...], ranks: tuple[float, ...], truth: float
) -> None:
    model = along_p(values, ranks)
    assert not reproduces(model)
    prediction = model.predict((64.0, 16.0))
    assert prediction.lower < truth < prediction.upper or abs(prediction.value / truth - 1) < 0.1
    assert prediction.upper > 1.05 * prediction.lower


def test_few_of_many_tables_have_an_exact_model() -> None:
    random = np.random.default_rng(11)
    ranks = np.array(RANKS)
    values = np.stack(
        [
            10 * np.round(130 * ranks ** random.uniform(-1.2, -0.6) * np.exp(random.normal(0, 0.05, 5)))
            for _ in range(100)
        ]
    )
    models = fit_models(ranks[:, None], values[:, :, None], BLOCKS, ("p",))
    exact = [model for model in models if isinstance(model, Model) and reproduces(model)]
    assert sum(len(model.terms) + bool(model.constant) > 2 for model in exact) <= 4


def test_small_numbers_of_loops_stay_exact() -> None:
    n = np.array([8.0, 16.0, 32.0, 64.0])
    assert str(model_of(3 * n**2 + 4 * n, n[:, None])) == "3·p² + 4·p"
    assert str(along_p(tuple(2 * np.log2(RANKS) + 9))) == "2·log2(p) + 9"


def test_nothing_on_one_of_the_lines_is_no_reason_to_doubt() -> None:
    points = np.array(list(product(RANKS, (1000.0, 2000.0, 4000.0, 8000.0, 16000.0))))
    p, n = points.T
    (model,) = fit_models(
        points,
        (20 * np.log2(p) + 49 * n * (p - 1) / p)[None, :, None],
        BLOCKS,
        ("p", "n"),
        executed=np.ones((1, len(points)), dtype=bool),
    )
    assert str(model) == "49·n + 20·log2(p) - 49·n/p"


EXTENT = {1.0: 1.0, 2.0: 2.0, 4.0: 2.0, 8.0: 4.0, 16.0: 4.0}


@pytest.mark.parametrize(
    ("count", "truth"),
    [
        (lambda p, n: n / 8 * (1 / p + 1 / EXTENT[p]), 384 / 8 * (1 / 64 + 1 / 8)),
        (lambda p, n: n**2 / 64 * (1 + 3 / EXTENT[p]), 384**2 / 64 * (1 + 3 / 8)),
    ],
)
def test_what_falls_does_not_rise_beyond(count: object, truth: float) -> None:
    """Parts of a grid without further evidence: p^(5/2)·n fits them without one process."""
    assert callable(count)
    points = np.array(list(product(RANKS, (32.0, 64.0, 128.0, 192.0))))
    model = model_of(np.array([count(p, n) for p, n in points.tolist()]), points)
    prediction = model.predict((64.0, 384.0))
    assert prediction.value == pytest.approx(truth, rel=0.7)
    assert prediction.lower < truth < prediction.upper


def test_a_parameter_without_effect_is_no_evidence() -> None:
    """Nearly 7·2^⌈log2(n)⌉, equal at all p: three functions of n fit the four values, and are wrong beyond."""
    points = np.array(list(product(RANKS, (1400.0, 2800.0, 5600.0, 8400.0))))
    model = model_of(np.tile([14497.0, 28835.0, 57369.0, 114851.0], len(RANKS)), points)
    prediction = model.predict((64.0, 14000.0))
    assert prediction.lower < 114760 < prediction.upper
    assert prediction.value < 2 * 114760
    assert not model.depends_on("p")


def test_shares_of_the_same_totals_are_no_evidence() -> None:
    """Subdivisions of n intervals to tolerances of 1/n: their totals do not depend on the number of ranks."""
    sizes, each = (64.0, 96.0, 128.0, 192.0, 256.0), (325, 355, 381, 407, 441)
    points = np.array(list(product((1.0, 2.0, 4.0, 8.0, 16.0, 32.0), sizes)))
    total = dict(zip(sizes, each, strict=True))
    model = model_of(np.array([n * total[n] / p for p, n in points.tolist()]), points)
    prediction = model.predict((128.0, 1024.0))
    assert prediction.lower < 645 * 1024 / 128 < prediction.upper


def test_sums_of_an_assumed_grid_that_say_no_less_than_the_counts_come_after_others() -> None:
    """Messages of an adaptive mesh: five functions of px and py fit them, and predict 443.75 at 64 ranks."""
    points = np.array(list(product(RANKS, (4.0, 8.0, 12.0))))
    model = model_of(np.repeat((0.0, 80, 130, 180, 250), 3), points, Options(grids=assumed("p")))
    prediction = model.predict((64.0, 14.0))
    assert prediction.value < 350
    assert prediction.upper > 443


def test_intervals_of_what_no_grid_confirms_hold_what_the_counts_say_without_it() -> None:
    """Blocks that an adaptive mesh sends at four numbers of ranks: sums of grid functions fit all of them."""
    random, ranks = np.random.default_rng(3), np.array([2.0, 4.0, 8.0, 16.0])
    visits = [
        np.round(random.uniform(3, 60) * ranks ** random.uniform(0.4, 1.1) * np.exp(random.normal(0, 0.15, 4))) / ranks
        for _ in range(100)
    ]
    points = np.array(list(product((1.0, 2.0, 4.0, 8.0), (4.0, 6.0, 8.0, 10.0))))
    measured = np.array([np.repeat([0.0, *own[:3]], 4) for own in visits])
    options = Options(grids=(ProcessGrid("p", "balanced", 3, "of messages"),))
    models = fit_models(points, measured[:, :, None], BLOCKS, ("p", "n"), options)
    predictions = [model.predict((16.0, 10.0)) for model in models if isinstance(model, Model)]
    inside = [one.lower <= own[3] <= one.upper for one, own in zip(predictions, visits, strict=True)]
    assert sum(inside) >= 75


def test_a_domain_whose_size_counts_too_confirms_functions_of_few_grids() -> None:
    """Corners, faces with ghosts and work per rank have separate functions, which also hold at other sizes."""
    points = np.array(list(product((1.0, 2.0, 4.0, 8.0, 16.0, 32.0), (8.0, 12.0, 16.0, 20.0))))
    grid = ProcessGrid("p", "balanced", 2, "of messages")

    def counts(places: FloatArray) -> FloatArray:
        x, y = grid.extents(places[:, 0]).T
        n = places[:, 1]
        return (n / x + 2) * (y - 1) / y + (n / y + 2) * (x - 1) / x + 3 * (n / x + 1) * (n / y + 1)

    far = np.array([[128.0, 40.0]])
    model = model_of(counts(points), points, Options(grids=(grid,)))
    prediction = model.predict(tuple(far[0]))
    assert prediction.value == pytest.approx(counts(far)[0])
    assert prediction.upper <= 1.05 * prediction.value


def test_as_unlikely_as_no_floating_point_number_of_machine_words() -> None:
    """Denominators above 64 bits cause no error."""
    many = np.array([[1 / 65521.0], [1 / 65519.0], [1 / 65497.0], [1 / 65479.0], [1 / 65449.0]])
    own = Coefficients(((),) * 5, many, np.full(5, 1e-12), np.ones(5), 0, 10.0, (Fraction(1),) * 5)
    assert own.by_luck() < 0
