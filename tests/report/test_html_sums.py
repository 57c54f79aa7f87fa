# SPDX-License-Identifier: Apache-2.0
"""Sums over call paths in the page: 0 where nothing is executed, as in predictions."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from quipu.modeling.pmnf.model import parse_product
from quipu.report.formats.extrap import parse_json_lines
from quipu.report.html import html_report

from .browser import document, instrumented
from .planted import planted


def evaluated(report: str, script: str, folder: Path) -> tuple[Any, str]:
    """Return what a script finds in the page of a report: data-found, as JSON, and data-text."""
    page = folder / "report.html"
    inside = "document.documentElement.dataset.ready = "
    page.write_text(instrumented(report, "").replace(inside, script + inside), encoding="utf-8")
    dom, console = document(page, folder / "profile")
    assert console == ""
    found, text = (re.search(rf'data-{name}="([^"]*)"', dom) for name in ("found", "text"))
    assert found and text
    return json.loads(html.unescape(found[1])), html.unescape(text[1])


def test_sums_in_the_page_are_those_of_what_is_executed(tmp_path: Path) -> None:
    experiment, models = planted()
    entry = next(one for one in models if (one.path, one.metric) == (3, "bytes_sent"))
    assert entry.model is not None
    absent = (("p", 1.0), ("p", 2.0))
    exchange, values = replace(entry.model, absent=absent), experiment.values["bytes_sent"].copy()
    values[3, experiment.points[:, 0] <= 2] = 0
    experiment.values["bytes_sent"] = values
    placed = [replace(one, model=exchange) if one is entry else one for one in models]
    script = """
    const set = modelsOf('bytes_sent'), sum = set.formula(2, 'inclusive');
    const at = (p) => [evaluate(sum, [p, 64]), set.middleOf(2, 'inclusive', [p, 64]), set.predictOwn(3, [p, 64]).high];
    document.documentElement.dataset.found = JSON.stringify([errorOfSum('bytes_sent', 2, sum), at(1), at(2), at(4)]);
    document.documentElement.dataset.text = formulaNode(sum).textContent;
    """
    found, formula = evaluated(html_report(experiment, placed), script, tmp_path)
    assert found == [0, [0, 0, 0], [0, 0, 0], [65536, 65536, 65536]]
    assert formula == "16·n2·[p>1]"


@pytest.mark.parametrize(
    ("power", "value", "printed"), [("log2(7)", 7**6, "log₂(7)"), ("(log2(7)-1)", 7**6 / 64, "log₂(7)-1")]
)
def test_recursions_have_their_exponents_in_the_page(tmp_path: Path, power: str, value: float, printed: str) -> None:
    experiment, models = planted()
    entry = next(one for one in models if (one.path, one.metric) == (3, "bytes_sent"))
    assert entry.model is not None
    strassen = replace(entry.model, constant=0.0, terms=(parse_product(f"2*n^{power}", ("n",)),), covariance=())
    placed = [replace(one, model=strassen) if one is entry else one for one in models]
    script = """
    const sum = modelsOf('bytes_sent').formula(3, 'exclusive');
    document.documentElement.dataset.found = JSON.stringify(evaluate(sum, [4, 64]));
    document.documentElement.dataset.text = formulaNode(sum).textContent;
    """
    found, formula = evaluated(html_report(experiment, placed), script, tmp_path)
    assert found == pytest.approx(2 * value)
    assert formula == f"2·n{printed}"


def test_parameters_that_are_called_like_members_of_objects(tmp_path: Path) -> None:
    text = "".join(
        json.dumps({"params": {"constructor": n, "__proto__": n % 3, "toString": 5}, "callpath": path, "value": n})
        + "\n"
        for n in (1, 2, 3, 4, 5, 6)
        for path in ("valueOf", "valueOf->hasOwnProperty")
    )
    page = html_report(parse_json_lines(text, "file", "x"), [])
    script = """
    const times = (point) => Object.entries(timesBeyond(point, DATA.ranges));
    const found = [times([6, 2, 5]), times([12, 2, 5]), times([6, 8, 5]), isFar(timesBeyond([6, 2, 5], DATA.ranges))];
    document.documentElement.dataset.found = JSON.stringify(found);
    document.documentElement.dataset.text = extrapolationText([12, 8, 5]);
    """
    found, said = evaluated(page, script, tmp_path)
    assert found == [[], [["constructor", 2]], [["__proto__", 4]], False]
    assert "constructor=12 is 2× beyond" in said
    assert "__proto__=8 is 4× beyond" in said
    assert "toString" not in said


def test_sums_in_the_page_have_the_mean_of_repetitions_that_a_call_path_lacks(tmp_path: Path) -> None:
    lines = [(p, path, value) for p in (1, 2) for path, value in (("main", [10, 10, 10]), ("main->f", [90, None, 110]))]
    text = "".join(
        json.dumps({"params": {"p": p}, "callpath": path, "metric": "time", "value": value}) + "\n"
        for p, path, value in lines
    )
    experiment = parse_json_lines(text, "file", "x")
    script = """
    const found = [valuesAt("time", "inclusive", 0)[0], repetitionsOf("time", "inclusive", 0, 1)];
    document.documentElement.dataset.found = JSON.stringify(found);
    document.documentElement.dataset.text = "-";
    """
    found, _ = evaluated(html_report(experiment, []), script, tmp_path)
    assert found == [[100, 110, 120], [100, 110, 120]]
    assert experiment.inclusive("time")[0].tolist() == found
