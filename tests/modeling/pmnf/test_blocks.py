# SPDX-License-Identifier: Apache-2.0
"""Counts of work that is done in blocks of a size are found exactly: chunks of loops, tiles, full buffers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, fit_models
from quipu.modeling.pmnf.model import Blocks, Factor, Term
from quipu.modeling.pmnf.model.serialize import from_json, to_json

VISITS = Metric("visits", "1", "effort")
MESH = [(p, n) for p in (1, 2, 4, 8, 16, 32, 64) for n in (32, 48, 64, 96, 128)]
ROWS = [(p, n) for p in (1, 2, 4, 8) for n in (100, 200, 300, 400, 500)]
SIZES = [(n,) for n in (100, 150, 220, 330, 500, 750)]


def _model(points: Sequence[tuple[int, ...]], count: Callable[..., float], *repetitions: Callable[..., float]) -> Model:
    values = [[own(*point) for own in (count, *repetitions)] for point in points]
    names = ("n",) if len(points[0]) == 1 else ("p", "n")
    (model,) = fit_models(np.array(points, dtype=float), np.array([values], dtype=float), VISITS, names)
    assert isinstance(model, Model)
    return model


@pytest.mark.parametrize(
    ("points", "count", "text"),
    [
        (MESH, lambda p, n: 10 * ceil(n * n / p / 64), "10·⌈n²/(64·p)⌉"),
        (ROWS, lambda p, n: 4 * ceil(8 * n * n / p / 4096), "4·⌈n²/(512·p)⌉"),
        (ROWS, lambda p, n: 4 * ceil(n * n / p / 128) + n * n / p, "n²/p + 4·⌈n²/(128·p)⌉"),
        (ROWS, lambda p, n: 3 * ceil(n / 64) + 2, "3·⌈n/64⌉ + 2"),
        (SIZES, lambda n: 3 * ceil(n / 32) ** 2 + 5 * ceil(n / 32) + 1, "3·⌈n/32⌉² + 5·⌈n/32⌉ + 1"),
        ([(n * 1000,) for n in (1, 2, 4, 8, 16)], lambda n: ceil(n / 64), "⌈n/64⌉"),
    ],
)
def test_blocks_are_found(points: Sequence[tuple[int, ...]], count: Callable[..., float], text: str) -> None:
    model = _model(points, count)
    assert sorted(str(model).split(" + ")) == sorted(text.split(" + "))
    for factor in (3, 7):
        far = (*points[-1][:-1], points[-1][-1] * factor + 5)
        prediction = model.predict(far)
        assert prediction.value == pytest.approx(count(*far), rel=1e-12)
        assert prediction.lower <= prediction.value <= prediction.upper


def test_sizes_with_the_same_numbers_of_blocks_are_alternatives() -> None:
    """Nine sizes do not distinguish all block sizes: the interval contains the true value of each."""
    points = [(n,) for n in (130, 200, 310, 470, 700, 1050, 1580, 2370, 3550)]
    found = 0
    for size in range(40, 72):
        model = _model(points, lambda n, size=size: 5 * ceil(n / size))
        found += bool(model.alternatives) and "⌈" in str(model)
        for far in (7001, 15_003, 40_009):
            prediction = model.predict((far,))
            assert prediction.lower - 1e-6 <= 5 * ceil(far / size) <= prediction.upper + 1e-6
    assert found


def test_counts_of_other_functions_have_no_blocks() -> None:
    chance = np.random.default_rng(5)
    points = np.array(MESH, dtype=float)
    share = points[:, 1] ** 2 / points[:, 0]
    values = []
    for _ in range(60):
        size = 10 ** chance.uniform(2.0, 5.0) / share.max()
        smooth = size * share + chance.uniform(0.0, 20.0)
        values.append(np.maximum(1.0, np.round(smooth * (1.0 + 0.02 * chance.normal(size=len(share))))))
        values.append(np.maximum(1.0, np.round(smooth * (1.0 + 0.1 * np.sin(3.0 * np.log(share))))))
    models = fit_models(points, np.array(values)[:, :, None], VISITS, ("p", "n"))
    assert [str(model) for model in models if "⌈" in str(model)] == []


def test_work_that_blocks_would_have_less_of_is_no_block() -> None:
    """Six counts of passes of a radix sort, which 72000·⌈n/33⌉ - 2104·n - 72008 reproduces by coincidence."""
    sizes = [300, 500, 900, 1500, 2600, 4500]
    counts = [72_000 * ceil(n / 33) - 2_104 * n - 72_008 for n in sizes]
    model = _model([(n,) for n in sizes], lambda n: counts[sizes.index(n)])
    assert "⌈n/" not in str(model)


def test_counts_that_repetitions_change_have_no_blocks() -> None:
    def count(p: int, n: int) -> int:
        return 10 * ceil(n * n / p / 64)

    assert "⌈" not in str(_model(MESH, count, lambda p, n: count(p, n) + (1 if n == 96 else 0)))


@pytest.mark.parametrize("points", [np.zeros((1, 0)), np.zeros((3, 1)), np.full((1, 1), 7.0), np.empty((0, 1))])
def test_few_points_are_no_obstacle(points: FloatArray) -> None:
    names = ("n",)[: points.shape[1]]
    (model,) = fit_models(points, np.arange(5.0, 5.0 + len(points))[None, :, None], VISITS, names)
    assert "⌈" not in str(model)


def test_many_parameters_and_huge_counts_are_no_obstacle() -> None:
    points = np.array(
        [(a, b, c, d) for a in (1.0, 2, 4) for b in (8.0, 16, 32) for c in (3.0, 5, 7) for d in (10.0, 30)]
    )
    blocks = 3.0 * np.ceil(points[:, 1] * points[:, 3] / points[:, 0] / 64.0)
    values = np.array([blocks, blocks * 2.0**60, np.exp(points[:, 2]) // 1 + 1e20])
    models = fit_models(points, values[:, :, None], VISITS, ("p", "n", "k", "m"))
    assert str(models[0]) == "3·⌈n·m/(64·p)⌉"
    assert all(isinstance(model, Model) for model in models)


SHARE = (Factor("n", Fraction(2)), Factor("p", Fraction(-1)))


def _in_blocks(coefficient: float, power: int, *others: Factor) -> Term:
    """Return a coefficient times ⌈n²/(64·p)⌉ to a power, times others."""
    whole = Term(coefficient / 64.0**power, others)
    for _ in range(power):
        whole = whole.times(Term(1.0, SHARE))
    return Term(whole.coefficient, (*whole.factors, Factor("n", blocks=Blocks(64, SHARE, power))))


MODEL = Model(("p", "n"), 3.0, (_in_blocks(10.0, 1), _in_blocks(2.0, 2, Factor("n", Fraction(1)))))


def test_text_of_blocks() -> None:
    assert str(MODEL) == "2·n·⌈n²/(64·p)⌉² + 10·⌈n²/(64·p)⌉ + 3"
    assert r"10 \, \left\lceil \frac{n^{2} \, p^{-1}}{64} \right\rceil" in MODEL.latex
    p, n = 4, 100
    value = 2 * n * ceil(n * n / 64 / p) ** 2 + 10 * ceil(n * n / 64 / p) + 3
    assert eval(MODEL.python, {"__builtins__": {}}, {"ceil": ceil, "p": p, "n": n}) == pytest.approx(value, rel=1e-14)
    assert MODEL.at(p=p, n=n) == pytest.approx(value, rel=1e-14)


def test_blocks_are_written_and_read() -> None:
    assert from_json(json.loads(json.dumps(to_json(MODEL)))) == MODEL
    assert MODEL.times(MODEL).at(p=2, n=50) == pytest.approx(MODEL.at(p=2, n=50) ** 2)


def test_growth_in_blocks_is_that_of_the_product() -> None:
    assert MODEL.leading == {"p": (-2, 0), "n": (5, 0)} or MODEL.lead("n") == (5, 0)
    assert MODEL.depends_on("p")


@pytest.mark.parametrize(("entry", "value"), [("size", 1), ("power", 0), ("product", [])])
def test_blocks_of_no_kind_are_refused(entry: str, value: object) -> None:
    document = to_json(MODEL)
    document["terms"][0]["factors"][-1]["blocks"][entry] = value
    with pytest.raises(FormatError, match="blocks of an unknown kind"):
        from_json(document)


def test_whole_numbers_of_blocks_are_not_rounded_up() -> None:
    """Powers of floating point numbers are not exact: 300²/(8·p)·p is 90 000 except for its last digits."""
    own = Blocks(30, SHARE)
    points = {"n": np.arange(30.0, 3000.0, 30.0), "p": np.full(99, 30.0)}
    exact: FloatArray = points["n"] ** 2 / 900.0
    assert own.number(points).tolist() == [ceil(round(value, 9)) for value in exact.tolist()]
