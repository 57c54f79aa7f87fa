# SPDX-License-Identifier: Apache-2.0
"""The efficiency hierarchy on the first screen of the page, with links to the call paths that lose the time."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
from quipu.modeling.efficiency import RunTimes, computation_factors, losses, parallel_factors, scalings, work_of
from quipu.modeling.experiment import CallTree, Experiment
from quipu.modeling.root_causes import Cause, Charge, RootCauses
from quipu.modeling.run_times import RankColumns
from quipu.report.efficiency_views import EfficiencyColumn, EfficiencyView
from quipu.report.html import html_report

from .browser import document, instrumented
from .planted import planted


def run_of(tree: CallTree, ranks: int, path: int) -> RunTimes:
    """Return a run in which this call path takes 1 s on all ranks together, twice as long on the last as on average."""
    values = np.zeros((len(tree), ranks))
    values[path] = 1.0 / ranks
    if ranks > 1:
        values[path, -1] *= 2.0
        values[path, 0] = 0.0
    nothing = RankColumns.of_ranks(np.zeros((len(tree), ranks)))
    return RunTimes("r", {"p": ranks, "n": 32}, 1, ranks, 1, tree, RankColumns.of_ranks(values), nothing)


def view_of(experiment: Experiment, path: int, *sizes: int) -> EfficiencyView:
    runs = [run_of(experiment.tree, ranks, path) for ranks in sizes]
    columns = []
    for run, scaling in zip(runs, scalings(runs), strict=True):
        computed = computation_factors(work_of(run), work_of(scaling.reference), scaling.kind)
        factors = parallel_factors(run).joined(computed)
        columns.append(EfficiencyColumn(run.point, run.ranks, 1, 1.0, factors, scaling.kind, "p=1", run))
    charge = Charge(path, sizes[-1] - 1, None, 0.2, more_work=True)
    waiting = RootCauses((Cause(0, 0.2, (charge,), 0.0),), np.zeros(len(experiment.tree)), 1.0)
    lost = losses(runs[-1], scalings(runs)[-1])
    return EfficiencyView("planted", experiment.tree, tuple(columns), (), lost, waiting)


def found_on(page: str, folder: Path) -> dict[str, Any]:
    script = """whenDrawn(() => {
      const textOf = (one) => one.textContent.replace(/\\s+/g, ' ').trim();
      const rows = [...document.querySelectorAll('#factors tbody tr')].map((row) => [...row.cells].map(textOf));
      const link = document.querySelector('#losses button');
      if (link) link.click();
      document.documentElement.dataset.found = JSON.stringify({
        hidden: document.getElementById('overview-efficient').hidden, rows,
        grades: [...document.querySelectorAll('#factors tbody td')].map((cell) => cell.className),
        title: textOf(document.getElementById('losses-title')),
        losses: [...document.querySelectorAll('#losses li')].map(textOf),
        opened: textOf(document.getElementById('crumbs')) });
    });"""
    file = folder / "page.html"
    file.write_text(instrumented(page, script), encoding="utf-8")
    dom, console = document(file, folder / "profile")
    assert console == ""
    found = re.search(r'data-found="([^"]*)"', dom)
    assert found is not None
    result: dict[str, Any] = json.loads(unescape(found[1]))
    return result


def test_factors_and_losses_are_on_the_first_screen(tmp_path: Path) -> None:
    experiment, models = planted()
    path = len(experiment.tree) - 1
    found = found_on(html_report(experiment, models, efficiency=view_of(experiment, path, 1, 4)), tmp_path)
    assert found["hidden"] is False
    assert ["load balance", "100.0%", "50.0%"] in found["rows"]
    assert ["global efficiency", "100.0%", "50.0%"] in found["rows"]
    assert set(found["grades"]) == {"good", "poor"}
    assert found["title"] == "50.0% of the time is lost at p=4, n=32, where rank 3 has most time outside of MPI:"
    loss, waits = found["losses"]
    assert "loses 50.0%, by imbalance." in loss
    assert re.search(r" waits 200 ms, 100% because of rank 3 in \S.* \(more work than on the others\)\.$", waits)
    assert str(found["opened"]).endswith(experiment.tree.name(path))


def test_without_ranks_there_is_no_section(tmp_path: Path) -> None:
    experiment, models = planted()
    for view in (None, view_of(experiment, 0, 1)):
        assert found_on(html_report(experiment, models, efficiency=view), tmp_path)["hidden"] is True
