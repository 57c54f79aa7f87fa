# SPDX-License-Identifier: Apache-2.0
"""What terminal views leave out is named, and what they show has one form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from quipu.modeling.experiment import CallTree, Metric, Region, RegionKind
from quipu.report.terminal import Layout, call_tree, plain_text
from quipu.report.terminal.tables import configuration_table
from quipu.report.text import quantity
from quipu.report.views import ConfigurationRow, TreeOptions, TreeView

from .test_terminal import METRICS, VIEW, lines


def test_metrics_without_room_are_named_whole() -> None:
    names = [f"a_metric_with_a_long_name_{at}" for at in range(4)]
    added = dict.fromkeys(names, np.ones_like(VIEW.values["time"]))
    metrics = {**VIEW.metrics, **{name: Metric(name, "1") for name in names}}
    view = replace(VIEW, values={**VIEW.values, **added}, metrics=metrics)
    text = plain_text(call_tree(view, TreeOptions(metrics=("time", *names), scope="exclusive"), Layout(80)))
    below = " ".join(text.splitlines()).partition("hidden columns: ")[2]
    assert below
    assert "…" not in below
    assert names[-1] in below


def test_code_in_no_region_is_executed_without_a_visit() -> None:
    regions = tuple(Region(name, name, RegionKind.FUNCTION) for name in ("main", "(outside any region)"))
    tree = CallTree(regions, np.array([0, 1]), np.array([-1, -1]))
    values = {"time": np.array([[1.0], [0.5]]), "visits": np.array([[1.0], [0.0]])}
    assert "not executed" not in plain_text(
        call_tree(TreeView("run", tree, METRICS, values), TreeOptions(), Layout(92))
    )


def test_a_single_repetition_has_no_spread() -> None:
    rows = [ConfigurationRow((2.0,), 1, 1.5, "s", float("nan")), ConfigurationRow((4.0,), 2, 1.5, "s", 0.25)]
    assert lines(plain_text(configuration_table(("p",), rows, Layout(80)))) == lines("""
p  repetitions  program  spread
2            1   1.50 s
4            2   1.50 s   25.0%
""")


def test_counts_of_a_column_have_one_unit() -> None:
    assert [quantity(value) for value in (999.4, 1250.5, 9632.3, 12128.4)] == ["999", "1250", "9632", "12128"]
    assert quantity(7281.8, "B") == "7282 B"
