# SPDX-License-Identifier: Apache-2.0
"""The view of iterations: order, groups, change."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.agent.archive.run import IterationTable
from quipu.modeling.errors import UsageError
from quipu.report.iteration_views import iterations_json, iterations_view
from quipu.report.terminal.glyphs import Layout
from quipu.report.terminal.iterations import iteration_facts, iteration_table
from rich.console import Console


def table(spans: int, width: int = 1, descending: bool = False) -> IterationTable:
    """Return a phase whose iteration i takes i + 1 seconds and 10 blocks, and another phase."""
    numbers = np.arange(spans) * width
    first = numbers[::-1] if descending else numbers
    rows = [("step", metric, at) for at in range(spans) for metric in ("time", "blocks")] + [("other", "time", 0)]
    places = np.array([at for *_, at in rows])
    values = np.array([10.0 if metric == "blocks" else at + 1.0 for _, metric, at in rows])
    return IterationTable(
        [phase for phase, *_ in rows],
        first[places],
        first[places] + width - 1,
        np.full(places.size, width),
        np.full(places.size, 2),
        [metric for _, metric, _ in rows],
        values,
        2 * values,
    )


def test_spans_are_in_the_order_of_the_run() -> None:
    view = iterations_view(table(4, descending=True), "step")
    assert view.first.tolist() == [3, 2, 1, 0]
    assert view.mean["time"].tolist() == [1, 2, 3, 4]


def test_the_change_compares_quarters() -> None:
    assert iterations_view(table(8), "step").changes() == {"time": 7.5 / 1.5, "blocks": 1.0}


def test_groups_keep_sums() -> None:
    view = iterations_view(table(100, width=2), "step").grouped(24)
    assert view.iterations.size <= 24
    assert view.iterations.sum() == 200
    assert (view.first[0], view.last[-1]) == (0, 199)
    assert np.average(view.mean["time"], weights=view.iterations) == pytest.approx(50.5)
    assert view.max["time"][-1] == 200


@pytest.mark.parametrize(
    ("phase", "metrics", "message"),
    [("none", (), "is not a phase of this run; its phases are step, other"), ("step", ("flops",), "have time, blocks")],
)
def test_unknown_names_are_errors(phase: str, metrics: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        iterations_view(table(2), phase, metrics)


def test_terminal() -> None:
    console = Console(width=60, force_terminal=False)
    view = iterations_view(table(3), "step")
    with console.capture() as capture:
        console.print(iteration_table(view, Layout(60)))
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert lines == [
        "iterations    time  blocks  slowest rank",
        "         0  1.00 s      10        2.00 s",
        "         1  2.00 s      10        4.00 s",
        "         2  3.00 s      10        6.00 s",
    ]
    assert dict(iteration_facts(view))["phase"] == "step, 3 iterations"


def test_json_has_all_spans() -> None:
    data = iterations_json("run", iterations_view(table(200), "step", ("blocks",)))
    assert len(data["spans"]) == 200
    assert data["spans"][7]["values"] == {"blocks": {"mean": 10.0, "max": 20.0}}
