# SPDX-License-Identifier: Apache-2.0
"""Counts of work along a row of a process grid, and the grids that counts confirm."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, Options, fit_models
from quipu.modeling.pmnf.grids.models import checked
from quipu.modeling.pmnf.model import Alternative
from quipu.modeling.process_grid import ProcessGrid, assumed

COUNTS = Metric("messages_sent", "1", "effort")
SIZES = (12.0, 16.0, 24.0, 40.0)
SQUARES, POWERS = (1.0, 4.0, 9.0, 16.0), (1.0, 2.0, 4.0, 8.0, 16.0)
GRID = ProcessGrid("p", "balanced", 2, "declared")
Counts = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]

# of the extents x and y and the size n
ROWS: dict[str, tuple[tuple[float, ...], Counts]] = {
    "length of a row": (POWERS, lambda x, y, n: x + 0 * n),
    "messages to all others of a row": (SQUARES, lambda x, y, n: 4 * x - 4 + 0 * n),
    "steps of a reduction": (POWERS, lambda x, y, n: (312 * np.log2(x) + 104) * (x * y > 1) + 0 * n),
    "gathering columns": (POWERS, lambda x, y, n: 2 * n / y * (1 - 1 / (x * y))),
    "bytes in steps": (POWERS, lambda x, y, n: 8 * n * np.log2(x) / y),
}


def _model(processes: tuple[float, ...], counts: list[Counts], grids: tuple[ProcessGrid, ...]) -> list[Model]:
    points = np.array(list(product(processes, SIZES)))
    x, y = GRID.extents(points[:, 0]).T
    values = np.stack([own(x, y, points[:, 1]) for own in counts])
    found = fit_models(points, values[:, :, None], COUNTS, ("p", "n"), Options(grids=grids))
    assert all(isinstance(own, Model) for own in found)
    return [own for own in found if isinstance(own, Model)]


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_a_known_grid(name: str) -> None:
    processes, counts = ROWS[name]
    (model,) = _model(processes, [counts], (GRID,))
    truth = float(counts(np.array([8.0]), np.array([8.0]), np.array([96.0]))[0])
    prediction = model.predict((64.0, 96.0))
    assert prediction.lower <= truth * (1 + 1e-9) and truth * (1 - 1e-9) <= prediction.upper
    assert prediction.value == pytest.approx(truth, rel=1e-6)


def test_extents_of_2_and_4_leave_open_what_grows_with_a_row() -> None:
    """As many as ranks in a row, or twice the steps of a reduction: the interval contains both."""
    (model,) = _model(POWERS[1:], [lambda x, y, n: x + 0 * n], (GRID,))
    prediction = model.predict((64.0, 40.0))
    assert prediction.lower < 6.0 + 1e-9 and prediction.upper > 8.0 - 1e-9


def test_what_is_passed_on_in_steps_may_be_the_share_of_a_rank() -> None:
    """Two extents do not distinguish it from other sums, which are the model; the interval contains it."""
    (model,) = _model(POWERS, [lambda x, y, n: 832 * n * (np.log2(x) + 1) / x * (x * y > 1)], (GRID,))
    prediction = model.predict((64.0, 40.0))
    assert prediction.lower <= 416 * 40.0 * (1 + 1e-9) < prediction.upper


def test_many_functions_are_no_reason_for_more_dimensions() -> None:
    """Grids of three dimensions have sums for all of these, which are longer than the counts themselves."""
    counts = [own for processes, own in ROWS.values() if processes == POWERS]
    for model, own in zip(_model(POWERS, counts, assumed("p")), counts, strict=True):
        assert all(f.axis is None or f.axis.dimensions < 3 for term in model.terms for f in term.factors)
        prediction = model.predict((64.0, 96.0))
        truth = float(own(np.array([8.0]), np.array([8.0]), np.array([96.0]))[0])
        assert prediction.lower <= truth * (1 + 1e-9) and truth * (1 - 1e-9) <= prediction.upper


def test_impossible_alternatives_leave_their_weight_to_the_others() -> None:
    """A function that becomes negative at more processes is no count."""
    points = np.array([[2.0], [4.0]])
    (grown,) = _model(POWERS[1:], [lambda x, y, n: x * y + 0 * n], ())
    falling = Alternative(0.4, 1000.0, tuple(term.scaled(-500.0) for term in grown.terms))
    others = (falling, Alternative(0.2, 1.0, grown.terms))
    model = Model(("p",), 0.0, grown.terms, alternatives=others)
    found = checked(model, points, points[:, 0], ("p",), "p")
    assert found is not None
    assert [own.weight for own in found.alternatives] == [pytest.approx(0.2 / 0.6)]
