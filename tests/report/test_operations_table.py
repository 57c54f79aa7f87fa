# SPDX-License-Identifier: Apache-2.0
"""The table of MPI operations in the page says what was not measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from quipu.modeling.metrics import METRICS
from quipu.report.html import html_report

from .planted import planted
from .test_program_views import seen


def test_operations_without_any_waiting_have_none_that_was_measured(tmp_path: Path) -> None:
    experiment, models = planted()
    waiting = np.zeros_like(experiment.values["time"])
    sendrecv = experiment.tree.region.tolist().index(4)
    waiting[sendrecv, 0] = 0.25
    page = html_report(
        replace(
            experiment,
            metrics={**experiment.metrics, "wait_time": METRICS["wait_time"]},
            values={**experiment.values, "wait_time": waiting},
        ),
        models,
    )
    script = """
    const column = [...document.querySelectorAll('#operations th')].findIndex((one) => one.textContent === 'wait time');
    const rows = [...document.querySelectorAll('#operations tbody tr')];
    const name = (row) => row.querySelector('button').textContent;
    give(Object.fromEntries(rows.map((row) => [name(row), row.cells[column].textContent])));
    """
    found = seen(page, script, tmp_path)
    assert found["MPI_Allreduce"] == "-"
    assert found["MPI_Sendrecv"].endswith(" s")
