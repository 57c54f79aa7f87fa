# SPDX-License-Identifier: Apache-2.0
"""The report in one file: safe with any names, complete, and alive in a browser."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quipu.modeling.behaviour import Behaviour
from quipu.modeling.experiment import CallTree, Experiment, Metric, Region
from quipu.modeling.pmnf import Change, Deviation
from quipu.modeling.pmnf.model import Alternative, Factor, Model, Term
from quipu.modeling.priors.slowdown import Cause, Line, Slowdown
from quipu.report.html import html_report
from quipu.report.html.page import script_json
from quipu.report.text import interval_text, quantity
from quipu.report.views import PlacedModel

from .browser import document, instrumented
from .planted import HOSTILE, TEMPLATE, model, planted


class Elements(HTMLParser):
    """Collects start tags, and the text of each script."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


def report(extra: int = 0) -> str:
    experiment, models = planted(extra)
    facts = [("machine", f"node {HOSTILE}"), ("program", "./heat")]
    return html_report(experiment, models, facts=facts, notes=[HOSTILE], target={"p": 1024, "n": 4096})


def parsed(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    return elements


def test_one_file_that_loads_nothing() -> None:
    page = report()
    elements = parsed(page)
    assert "http://" not in page
    assert "https://" not in page
    assert not [tag for tag, _ in elements.tags if tag in ("link", "img", "iframe", "object", "base", "form_action")]
    for _, attributes in elements.tags:
        assert "src" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
    policy = next(a["content"] for _, a in elements.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_names_stay_data() -> None:
    elements = parsed(report())
    assert len(elements.scripts) == 2
    data = json.loads(elements.scripts[0])
    names = {region["display"] for region in data["regions"]}
    assert {HOSTILE, TEMPLATE} <= names
    assert not [tag for tag, _ in elements.tags if tag in ("img", "b")]


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_json_cannot_leave_its_element(data: object) -> None:
    text = script_json({"x": data, "y": HOSTILE + "\u2028\u2029<!--"})
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == {"x": data, "y": HOSTILE + "\u2028\u2029<!--"}


def test_not_measured_is_null_and_exact_counts_stay_exact() -> None:
    experiment, models = planted()
    data = json.loads(parsed(html_report(experiment, models)).scripts[0])
    where = data["points"].index([1, 256])
    assert data["repetitions"]["time"][where] == 2
    assert data["repetitions"]["blocks"][where] == 3
    assert len(data["values"]["time"][1][where]) == 2
    assert data["values"]["blocks"][1][where] == 3 * 256**3 + 12
    assert data["values"]["bytes_sent"][0] == 0
    assert data["target"] == [256, 256]


def test_an_experiment_without_parameters_or_models(tmp_path: Path) -> None:
    experiment, _ = planted()
    single = type(experiment)(
        name="one",
        parameters=(),
        points=experiment.points[:1, :0],
        tree=experiment.tree,
        metrics=experiment.metrics,
        values={name: values[:, :1, :] for name, values in experiment.values.items()},
    )
    page = tmp_path / "one.html"
    page.write_text(html_report(single, []), encoding="utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    assert 'data-ready="true"' in dom
    assert "there is nothing to plot over" in dom
    assert dom.count('role="treeitem"') >= 5


def test_alive_in_a_browser(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(report(), encoding="utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    assert 'data-ready="true"' in dom
    assert dom.count('role="treeitem"') == 6
    assert dom.count('class="point"') >= 15  # 5 values of p, 3 repetitions
    assert 'class="curve"' in dom
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in dom
    assert "<img" not in dom
    assert "far extrapolation: p=1024 is 64× beyond the measured 1 to 16, n=4096 is 16× beyond" in dom
    assert ">p 64×, n 16× beyond (far)</span>" in dom
    assert "Table I: allreduce" not in dom.split("<script")[0]  # main is chosen, not the reduction


def test_the_start_of_mpi_and_oversubscribed_points_in_a_browser(tmp_path: Path) -> None:
    """MPI_Init has a separate line below the program and below the ranking."""
    experiment, models = planted()
    regions = tuple(
        Region("MPI_Init", "MPI_Init", region.kind) if region.name == "MPI_Allreduce" else region
        for region in experiment.tree.regions
    )
    tree = CallTree(regions, experiment.tree.region, experiment.tree.parent)
    experiment = replace(experiment, tree=tree, oversubscribed=experiment.points[:, 0] > 8)
    models = [replace(one, oversubscribed=one.path == 5) for one in models]
    page = tmp_path / "report.html"
    script = "const c=document.getElementById('configuration');c.value='16';c.dispatchEvent(new Event('change'));"
    page.write_text(instrumented(html_report(experiment, models, target={"p": 32, "n": 256}), script), "utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    rows = dom[dom.index('<div id="rows"') : dom.index('id="tree-status"')]
    labels = re.findall(r'class="label">([^<]*)<|class="name">(start and end of MPI)<', rows)
    assert ["".join(pair) for pair in labels][-2:] == ["start and end of MPI", "MPI_Init"]
    assert "8 of 8 call paths shown" not in dom and re.search(r"\d of 8 call paths shown", dom)
    ranking = dom[dom.index('<table id="ranked"') : dom.index('id="diagnosis"')]
    body, foot = ranking.split("<tfoot>")
    assert "MPI_Init" not in body and "MPI_Init" in foot and ">oversubscribed</span>" in foot
    assert ">p 2× beyond</span>" in foot
    total = sum(m.model.predict((32, 256)).value for m in models if m.metric == "time" and m.model and m.path != 5)
    assert f"<dt>program, time</dt><dd>{quantity(total, 's')}</dd>" in dom
    assert '<option value="15">' in dom and "p=16, n=256 (oversubscribed)</option>" in dom
    plot = dom[dom.index('<div id="plot" ') : dom.index('<table id="models">')]
    assert plot.count('class="point oversubscribed"') > 1 and plot.count('class="point"') > 1


def test_what_is_only_counted_has_no_time_in_a_browser(tmp_path: Path) -> None:
    experiment, models = planted()
    leaf = next(path for path in range(len(experiment.tree)) if not experiment.tree.children[path])
    times = experiment.values["time"].copy()
    times[leaf] = 0.0
    experiment = replace(experiment, values={**experiment.values, "time": times})
    page = tmp_path / "report.html"
    page.write_text(instrumented(html_report(experiment, models), ""), "utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    row = dom[dom.index(f'id="row-{leaf}"') :]
    assert re.findall(r'class="value">([^<]*)<', row)[0] == "-"


def test_an_experiment_without_times_in_a_browser(tmp_path: Path) -> None:
    experiment, models = planted()
    counted = {name: metric for name, metric in experiment.metrics.items() if name != "time"}
    values = {name: experiment.values[name] for name in counted}
    experiment = replace(experiment, metrics=counted, values=values)
    page = tmp_path / "report.html"
    of_counts = [one for one in models if one.metric in counted]
    verdict = "document.getElementById('overview-verdict').textContent"
    report = html_report(experiment, of_counts, target={"p": 32, "n": 256})
    page.write_text(instrumented(report, f"whenDrawn(() => until(() => {verdict}, () => {{}}));"), "utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    assert "How many blocks, and how sure?" in dom
    verdict = dom[dom.index('id="overview-verdict"') :]
    assert re.match(r"[^<]*>(Most of the |The largest part of the )blocks is in", verdict)


def test_long_sums_are_behind_a_button_in_a_browser(tmp_path: Path) -> None:
    experiment, _ = planted()
    paths = len(experiment.tree)
    terms = [(1.0, {"n": (f"{power}/10", 0)}) for power in range(1, 31)]
    models = [PlacedModel(path, "time", model(5.0, *terms[: 4 if path else 30]), "effort") for path in range(paths)]
    button = "document.querySelector('#ranked tr[data-path=\"0\"] button.more')"
    click = f"until(() => {button}, () => {button}.click());"
    scope = "const s=document.getElementById('scope');s.value='exclusive';s.dispatchEvent(new Event('change'));"
    page = tmp_path / "report.html"
    page.write_text(instrumented(html_report(experiment, models), scope + click), "utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    rows = re.findall(r'<tr data-path="(\d+)".*?</tr>', dom[dom.index('<table id="ranked"') :])
    assert len(rows) == paths
    buttons = re.findall(r'aria-expanded="(\w+)">([^<]*)</button>', dom)
    # of the advice, of the call path, and in the ranking
    assert buttons == [("false", " + 27 more terms"), ("false", " + 27 more terms"), ("true", "fewer terms")]
    assert dom.count('<span hidden="">') == 2


def test_quantiles_of_mixtures_in_the_page_are_those_of_the_models(tmp_path: Path) -> None:
    """300 call paths have two to four hypotheses, with exact, narrow or wide errors."""
    random = np.random.default_rng(5)
    paths, parameters = 300, ("p",)
    tree = CallTree((Region("main", "main"),), np.zeros(paths, dtype=int), np.arange(paths) - 1)
    points = np.array([[2.0], [4.0], [8.0]])
    models = []
    for path in range(paths):
        others = [random.lognormal(0, 1.5) for _ in range(random.integers(1, 4))]
        weights = random.dirichlet(np.ones(len(others) + 1) * random.choice([0.3, 3]))
        scatter = random.choice([0.0, 1e-4, 0.02, 0.5])
        terms = [(Term(size, (Factor("p", Fraction(int(random.integers(1, 4)), 2)),)),) for size in (1.0, *others)]
        alternatives = tuple(
            Alternative(float(weight), 0.1, term) for weight, term in zip(weights[1:], terms[1:], strict=True)
        )
        covariance = ((0.0, 0.0), (0.0, float(scatter) ** 2)) if scatter else ()
        form = Model(parameters, 0.1, terms[0], None, ((2.0, 8.0),), covariance, alternatives)
        models.append(PlacedModel(path, "time", form, "effort"))
    values = {"time": np.ones((paths, 3, 1))}
    experiment = Experiment("mixtures", parameters, points, tree, {"time": Metric("time", "s")}, values)
    script = "const s=document.getElementById('scope');s.value='exclusive';s.dispatchEvent(new Event('change'));"
    page = tmp_path / "report.html"
    page.write_text(instrumented(html_report(experiment, models, target={"p": 64}), script), "utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    table = dom[dom.index('<table id="ranked"') :]
    shown = re.findall(r'<tr data-path="(\d+)".*?"number">([^<]*)</td><td class="number interval">([^<]*)<', table)
    assert len(shown) == 25
    for path, middle, interval in shown:
        form_of_path = models[int(path)].model
        assert form_of_path is not None
        expected = form_of_path.predict((64.0,))
        assert middle == quantity(expected.value, "s")
        ends = interval_text(expected.lower, expected.upper, "s")
        assert interval == (ends if expected.upper > expected.lower else "-")


def test_noise_and_changes_of_behaviour_in_a_browser(tmp_path: Path) -> None:
    experiment, models = planted()
    change = Change("p", 4, 8, model(8e-4), model(0, (1e-4, {"p": ("1", 0)})), 30.0)
    noise = Deviation((-0.1, -0.05, 0.0, 0.05, 0.1), 0.04, 0.05, 0.2, 3, (2, 3), 0.12, f"too loud {HOSTILE}")
    observed = {"time": [Behaviour(noise, change if path == 5 else None) for path in range(len(experiment.tree))]}
    page = tmp_path / "report.html"
    script = "document.querySelector('#changes button').click();"
    page.write_text(instrumented(html_report(experiment, models, observed=observed), script), encoding="utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    plot = dom[dom.index('<div id="plot" ') : dom.index('<table id="models">')]
    assert plot.count('class="gap"') == 1 and plot.count('class="part"') == 2
    models_table = dom[dom.index('<table id="models">') : dom.index('id="ranking"')]
    assert "changes from p=4 to p=8: " in models_table
    assert "repetitions: range 12.0% of the mean, 90 % of the deviations from -10.0% to 10.0%" in models_table
    below = dom[dom.index('id="noise"') :]
    assert re.search(r'<table id="levels"><caption>', below) and 'class="half"' in below
    assert below.count("too loud &lt;/script&gt;") == 8 and "<img" not in dom


def test_the_ranking_in_the_page_is_that_of_the_models(tmp_path: Path) -> None:
    _, models = planted()
    script = "const s=document.getElementById('scope');s.value='exclusive';s.dispatchEvent(new Event('change'));"
    page = tmp_path / "report.html"
    page.write_text(instrumented(report(), script), encoding="utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    table = dom[dom.index('<table id="ranked"') :]
    rows = re.findall(
        r'<tr data-path="(\d+)".*?</td><td class="number">([^<]*)</td><td class="number interval">', table
    )
    predictions = {m.path: m.model.predict((1024, 4096)) for m in models if m.metric == "time" and m.model is not None}
    expected = sorted(predictions, key=lambda path: -predictions[path].value)
    assert [int(path) for path, _ in rows] == expected
    assert [text for _, text in rows] == [quantity(predictions[path].value, "s") for path in expected]


_KEYS = """
const tree = document.getElementById('tree'), seen = [];
const press = (key, on = tree) => {
  on.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
  const row = document.getElementById(tree.getAttribute('aria-activedescendant'));
  seen.push(row.querySelector('.label').textContent + row.getAttribute('aria-expanded'));
};
for (const key of ['End', 'Home', 'ArrowLeft', 'ArrowRight', 'ArrowDown', 'ArrowUp']) press(key);
press('/', document.body);
document.documentElement.dataset.focus = document.activeElement.id;
const box = document.getElementById('search');
box.value = 'OPERATOR<';
box.dispatchEvent(new Event('input'));
document.documentElement.dataset.marked = document.querySelector('#tree mark').textContent;
document.documentElement.dataset.found = document.getElementById('tree-status').textContent;
document.documentElement.dataset.seen = JSON.stringify(seen);
"""


def test_the_tree_obeys_the_keyboard_and_the_search(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(instrumented(report(), _KEYS), encoding="utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    told = {name: html.unescape(text) for name, text in re.findall(r'data-(\w+)="([^"]*)"', dom[: dom.index("<head")])}
    sweep = "heat::sweep(…)null"  # no room for the arguments
    assert json.loads(told["seen"])[:6] == ["MPI_Allreducenull", "maintrue", "mainfalse", "maintrue", sweep, "maintrue"]
    assert told["focus"] == "search"
    assert told["marked"] == "operator<"
    assert told["found"] == "1 of 8 call paths match"


def test_a_hostile_name_of_the_experiment() -> None:
    experiment, models = planted()
    elements = parsed(html_report(replace(experiment, name=HOSTILE), models))
    assert not [tag for tag, _ in elements.tags if tag == "img"]
    assert len(elements.scripts) == 2


# A browser window has a smallest width, a frame has not: the page measures itself and tells the page around it.
_MEASURE = """
const told = parent.document.documentElement.dataset, root = document.documentElement;
document.getElementById('expand').click();
document.getElementById('tree').scrollTop = 20000;
dispatchEvent(new Event('resize'));
told.width = root.clientWidth;
told.beyond = root.scrollWidth - root.clientWidth;
told.rows = document.querySelectorAll('[role=treeitem]').length;
told.status = document.getElementById('tree-status').textContent;
"""


@pytest.mark.parametrize("width", [400, 1400])
def test_three_thousand_call_paths_and_narrow_screens(width: int, tmp_path: Path) -> None:
    page = tmp_path / "frame.html"
    inner = html.escape(instrumented(report(3000), _MEASURE))
    frame = f'<iframe style="width:{width}px;height:900px;border:0" srcdoc="{inner}"></iframe>'
    page.write_text(frame, encoding="utf-8")
    dom, console = document(page, tmp_path / "profile", width + 100)
    assert console == ""
    told = dict(re.findall(r'data-(\w+)="([^"]*)"', dom[: dom.index("<body")]))
    assert width - 20 <= int(told["width"]) <= width  # a scroll bar takes up to 20
    assert told["beyond"] == "0"
    assert told["status"].startswith("3008 of 3008 call paths shown")
    assert 0 < int(told["rows"]) < 80


_SLOW = (
    Slowdown(1, Cause.CACHE, 1, Fraction(0), 1, "log2(n)", 1e-5, math.nan, (Line((1.0,), 32, 256, 0.9, 0.1, 0.1),)),
    Slowdown(
        5,
        Cause.WAITING,
        0,
        Fraction(1, 3),
        0,
        "p^(1/3)",
        2e-9,
        0.87,
        (Line((32.0,), 1, 16, 0.8, 0.1, 0.7), Line((256.0,), 1, 16, 0.9, 0.2, 0.7)),
    ),
)


@pytest.mark.parametrize("ranks", [256, 64])
def test_the_diagnosis_in_the_page_is_that_of_the_slowdowns(ranks: int, tmp_path: Path) -> None:
    experiment, models = planted()
    change = f"const p=document.querySelector('#target input');p.value='{ranks}';p.dispatchEvent(new Event('input'));"
    page = tmp_path / "report.html"
    page.write_text(instrumented(html_report(experiment, models, slow=_SLOW), change if ranks != 256 else ""))
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    card = dom[dom.index('id="diagnosis"') : dom.index('id="noise"')]
    assert f"What will hurt at p={ranks}, n=256</h2>" in card
    lost = {}
    for one in _SLOW:
        _, first, there = one.factors((ranks, 256.0))
        own = next(m.model for m in models if m.metric == "time" and m.path == one.path)
        assert own is not None
        lost[one.path] = own.predict((ranks, 256.0)).value * (there - first)
    rows = re.findall(r'<tr data-path="(\d+)".*?<span class="tag">([^<]*)</span></td><td class="number">([^<]*)<', card)
    order = sorted(_SLOW, key=lambda one: -lost[one.path])
    assert rows == [(str(one.path), one.cause.value, quantity(lost[one.path], "s")) for one in order]
    assert "87% of the longest time was waiting" in card
    assert "slower over the measured p = 1 to 16" in card


def test_without_time_there_is_no_diagnosis(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(report(), encoding="utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    assert re.search(r'id="diagnosis"[^>]* hidden=""', dom)
