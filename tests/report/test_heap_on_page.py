# SPDX-License-Identifier: Apache-2.0
"""The largest heap of a rank on the first screen of the page, beside the time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import HELD, PEAK, Experiment
from quipu.modeling.heap import largest_heap
from quipu.modeling.metrics import FURTHER
from quipu.report.html import placed_models
from quipu.report.text import quantity

from .planted import planted
from .test_overview_page import said


def with_heap() -> Experiment:
    """Return the planted experiment whose root holds 800 n bytes, and MPI, or another call path, 4 MB."""
    experiment, _ = planted()
    n = experiment.points[:, list(experiment.parameters).index("n")]
    held = np.zeros_like(experiment.values["time"])
    held[0] = 800.0 * n[:, None]
    held[1] = 4e6
    peak = np.where(held > 0, held.sum(axis=0), 0.0)
    values = {**experiment.values, HELD: held, PEAK: peak}
    return replace(experiment, values=values, metrics={**experiment.metrics, HELD: FURTHER[HELD], PEAK: FURTHER[PEAK]})


def test_the_page_predicts_the_heap_as_the_command_does(tmp_path: Path) -> None:
    measured = with_heap()
    models = analyze(measured)
    (title, facts) = said(measured, ("overview-title", "overview-facts"), tmp_path, models=placed_models(models))
    assert "largest heap of a rank" in facts
    target = dict(part.split("=") for part in title.rpartition(" at ")[2].split(", "))
    found = largest_heap(models, {name: float(value) for name, value in target.items()})
    assert found is not None
    assert f"largest heap of a rank{quantity(found.value, 'B')}" in facts


def test_a_single_configuration_shows_what_was_measured(tmp_path: Path) -> None:
    measured = with_heap()
    single = {name: values[:, :1] for name, values in measured.values.items()}
    (facts,) = said(replace(measured, points=measured.points[:1], values=single), ("overview-facts",), tmp_path)
    n = float(measured.points[0, list(measured.parameters).index("n")])
    assert f"largest heap of a rank{quantity(4e6 + 800 * n, 'B')}" in facts
