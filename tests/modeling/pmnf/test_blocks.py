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
from quipu.modeling.pmnf import Model
from quipu.modeling.pmnf.model import Blocks, Factor, Term
from quipu.modeling.pmnf.model.serialize import from_json, to_json

from ..counted import fit_counts

VISITS = Metric("visits", "1", "effort")
MESH = [(p, n) for p in (1, 2, 4, 8, 16, 32, 64) for n in (32, 48, 64, 96, 128)]
ROWS = [(p, n) for p in (1, 2, 4, 8) for n in (100, 200, 300, 400, 500)]
SIZES = [(n,) for n in (100, 150, 220, 330, 500, 750)]


def _model(points: Sequence[tuple[int, ...]], count: Callable[..., float], *repetitions: Callable[..., float]) -> Model:
    values = [[own(*point) for own in (count, *repetitions)] for point in points]
    names = ("n",) if len(points[0]) == 1 else ("p", "n")
    (model,) = fit_counts(np.array(points, dtype=float), np.array([values], dtype=float), names)
    assert isinstance(model, Model)
    return model


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
