# SPDX-License-Identifier: Apache-2.0
"""Words, labels, ticks and buttons of the page: no more said than is so, nothing enlarged or left over."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from quipu.modeling.experiment import CallTree
from quipu.modeling.pmnf.model import Factor, Model, Term
from quipu.report.html import html_report
from quipu.report.refinement_views import RefinementPanel

from .planted import planted, quality
from .test_program_views import ITERATION_ROWS, TARGET, TEXTS, report, seen


def test_most_of_the_time_is_more_than_half(tmp_path: Path) -> None:
    verdict = seen(report(), TEXTS, tmp_path)["overview-verdict"]
    share = re.search(r": (\d+)% at the target", verdict)
    assert share is not None
    assert verdict.startswith("Most of the time" if int(share[1]) > 50 else "The largest part of the time")


def test_terms_that_do_not_matter_are_no_growth(tmp_path: Path) -> None:
    experiment, models = planted()
    place = next(at for at, one in enumerate(models) if (one.path, one.metric) == (6, "time"))
    slow = Term(1e-9, (Factor("p", Fraction(1)),))
    constant = Model(("p", "n"), 100.0, (slow,), quality(0.0), ((1, 16), (32, 256)))
    models[place] = replace(models[place], model=constant)
    advice = seen(html_report(experiment, models, target=TARGET), TEXTS, tmp_path)["overview-advice"]
    assert "takes 100% at the target and does not grow: only a faster implementation helps" in advice


def test_only_tables_with_rows_can_be_saved(tmp_path: Path) -> None:
    script = """
const bars = [...document.querySelectorAll('.card .scroll > table')].filter((one) => one.id);
give(bars.map((one) => [one.id, one.hidden, getComputedStyle(one.parentNode.nextElementSibling).display]));
"""
    found = seen(report(), script, tmp_path)
    assert {hidden for _, hidden, _ in found} == {True, False}
    assert all((display == "none") == hidden for _, hidden, display in found), found


def test_call_paths_of_one_name_have_their_callers_in_the_map_of_ranks(tmp_path: Path) -> None:
    experiment, models = planted()
    region = experiment.tree.region.copy()
    region[4] = region[3]  # MPI_Sendrecv in main, too
    several = replace(experiment, tree=CallTree(experiment.tree.regions, region, experiment.tree.parent))
    times = np.ones((len(region), 4))
    page = html_report(several, models, target=TARGET, ranks={tuple(experiment.points[-1].tolist()): times})
    names = seen(page, "give([...document.querySelectorAll('#ranks text')].map((one) => one.textContent))", tmp_path)
    assert {"exchange_halo → MPI_Sendrecv", "main → MPI_Sendrecv", "MPI_Allreduce"} <= set(names)


def test_text_of_charts_has_its_size_in_wide_cards(tmp_path: Path) -> None:
    script = """
const drawn = [...document.querySelectorAll('.plot > svg')].map((one) => [one, one.getBoundingClientRect().width]);
give(drawn.filter(([, wide]) => wide > 0).map(([one, wide]) => [one.id, wide / one.viewBox.baseVal.width]));
"""
    scales = dict(seen(report(), script, tmp_path))
    assert {"surface", "matrix", "ranks"} <= set(scales)
    assert all(0.95 < scale < 1.05 for scale in scales.values()), scales


def test_ticks_between_percents_are_not_rounded(tmp_path: Path) -> None:
    rows = tuple(replace(row, overhead=overhead) for row, overhead in zip(ITERATION_ROWS, (0.095, 0.02), strict=True))
    page = html_report(*planted(), refinement=RefinementPanel("cycle", 0.05, rows))
    script = "give([...document.querySelectorAll('#refinement-overhead text')].map((one) => one.textContent))"
    ticks = [text for text in seen(page, script, tmp_path) if re.fullmatch(r"[\d.]+%", text)]
    assert ticks == ["0%", "2.5%", "5%", "7.5%", "10%"]


def test_the_call_path_that_is_shown_first_is_the_largest_root(tmp_path: Path) -> None:
    experiment, models = planted()
    parent = experiment.tree.parent.copy()
    parent[6] = -1  # a root beside main
    experiment = replace(experiment, tree=CallTree(experiment.tree.regions, experiment.tree.region, parent))
    times = experiment.values["time"].copy()
    times[6] = 1e6
    for values, name in ((experiment.values, "main"), ({**experiment.values, "time": times}, "</script")):
        page = html_report(replace(experiment, values=values), models, target=TARGET)
        row = seen(page, "give(document.querySelector('[aria-selected=true]').textContent)", tmp_path)
        assert row.removeprefix("▾").startswith(name)


def test_no_label_leaves_its_chart(tmp_path: Path) -> None:
    script = """
const right = (one) => one.getBBox().x + one.getBBox().width;
const labels = [...document.querySelectorAll('.plot > svg text')].filter((one) => one.getBBox().width > 0);
const beyond = labels.filter((one) => right(one) > one.ownerSVGElement.viewBox.baseVal.width + 1);
give([labels.length, beyond.map((one) => one.ownerSVGElement.id + ': ' + one.textContent)]);
"""
    count, beyond = seen(html_report(*planted(), target={"p": 1e6, "n": 1e6}), script, tmp_path)
    assert count > 20
    assert beyond == []
