# SPDX-License-Identifier: Apache-2.0
"""The views of the whole program in a browser: overview, flame graph, layers, scaling, communication, export."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest
from npm_packages import installed
from peers import installed_on_use
from quipu.agent.archive.run import CommunicationMatrix
from quipu.modeling.experiment import CallTree, Experiment, FloatArray
from quipu.modeling.slowest_rank import RankTimes
from quipu.report.html import html_report
from quipu.report.rank_views import rank_data
from quipu.report.refinement_views import RefinementPanel, RefinementRow
from quipu.report.views import PlacedModel

from .browser import document, instrumented
from .planted import HOSTILE, planted

TARGET = {"p": 1024, "n": 256}
ITERATION_ROWS = (
    RefinementRow(1, 40, 31, None, None, 0.31, 0.0, 0.05, 0.98, False, 20.0),
    RefinementRow(2, 12, 12, 0, 28, 0.02, 0.1, None, 0.9, True, 10.0),
)
REFINEMENT = RefinementPanel(HOSTILE, 0.05, ITERATION_ROWS)


MATRIX = CommunicationMatrix(
    *(np.array(column) for column in ([-1, 0, 1, 2], [0, 1, 0, 2], [5, 300, 4000, 7], [1, 9, 4, 3]))
)


def times_of_ranks(paths: int) -> FloatArray:
    """Return seconds of 130 ranks, three to a block: of the first call path 1 but for rank 4, of the second 2."""
    seconds = np.zeros((paths, 130))
    seconds[0], seconds[1] = 1.0, 2.0
    seconds[0, 4] = 4.0
    return seconds


def seen(page: str, script: str, folder: Path) -> Any:
    """Return what a script at the end of the page calls `give` with, all sections drawn; nothing may be said."""
    file = folder / "page.html"
    give = "const give = (found) => { document.documentElement.dataset.found = JSON.stringify(found); };"
    draw = "whenDrawn(() => { window.dispatchEvent(new Event('beforeprint')); work(); });"
    file.write_text(instrumented(page, f"{give} const work = () => {{ {script} }}; {draw}"), encoding="utf-8")
    dom, console = document(file, folder / "profile")
    assert console == ""
    assert "<img" not in dom[: dom.index("<script")]
    match = re.search(r'data-found="([^"]*)"', dom[: dom.index("<head")])
    assert match is not None
    return json.loads(html.unescape(match[1]))


def report(against: Experiment | None = None, **changes: Any) -> str:
    experiment, models = planted()
    return html_report(
        replace(experiment, **changes),
        models,
        target=TARGET,
        against=against,
        refinement=REFINEMENT,
        communication={tuple(experiment.points[0].tolist()): (MATRIX, 3)},
        ranks={tuple(experiment.points[0].tolist()): times_of_ranks(len(experiment.tree))},
    )


TEXTS = """
const all = (selector) => [...document.querySelectorAll(selector)];
const text = (id) => document.getElementById(id).textContent.replace(/\\s+/g, ' ').trim();
const ids = ['overview-title', 'overview-answer', 'overview-verdict', 'overview-facts', 'overview-advice',
  'stack-status', 'stack-legend', 'scaling-status', 'communication-status', 'operations',
  'accuracy-status', 'frame-status'];
give(Object.fromEntries([...ids.map((id) => [id, text(id)]), ['layers', all('#stack .layer').length],
  ['frames', all('#flame-graph .frame').map((one) => Number(one.dataset.path))],
  ['ideal', document.querySelectorAll('#speedup .ideal, #efficiency .ideal').length]]));
"""


def test_the_views_say_what_the_models_say(tmp_path: Path) -> None:
    found = seen(report(), TEXTS, tmp_path)
    assert found["overview-title"] == "The program at p=1024, n=256"
    assert "90 % interval" in found["overview-answer"]
    assert "determined" in found["overview-answer"]
    assert "MPI_Sendrecv" in found["overview-verdict"]
    assert "scaling efficiency" in found["overview-facts"]
    assert "grows as" in found["overview-advice"]
    assert "Measure closer to the target" in found["overview-advice"]
    assert found["stack-status"].startswith("heat::sweep")
    assert "has taken over at p=1024" in found["stack-status"]
    assert found["layers"] == 9
    assert "all others" not in found["stack-legend"]  # there are none
    assert found["scaling-status"].startswith("strong scaling, relative to p=1: efficiency ")
    assert found["operations"].startswith("operationvisitsbytes sent")
    assert "MPI_Allreduce1 call path" in found["operations"]
    assert "half of " in found["accuracy-status"]
    assert found["frames"][0] == 0
    assert 3 in found["frames"]
    assert found["ideal"] >= 2


def test_the_slowest_rank_stands_beside_the_mean(tmp_path: Path) -> None:
    mean = np.ones((20, 3))
    slow = RankTimes(mean, mean * np.linspace(1.0, 3.0, 20)[:, None], mean * np.linspace(1.0, 4.0, 20)[:, None])
    found = seen(report(rank_times=slow), TEXTS, tmp_path)
    assert (
        "slowest rank3.00 s to 4.00 s (of statistics over ranks) at p=16, n=256, 3× to 4× the mean over ranks, "
        "and the run takes as long (--over-ranks max)"
    ) in found["overview-facts"]
    assert re.search(r"% of p=1, by the mean over ranks, not by the slowest rank", found["overview-facts"])
    assert found["scaling-status"].endswith(", by the mean over ranks, not by the slowest rank")
    alike = seen(report(rank_times=RankTimes(mean, mean, 1.25 * mean)), TEXTS, tmp_path)
    assert "slowest" not in alike["overview-facts"] + alike["scaling-status"]


def test_nothing_to_show_is_said(tmp_path: Path) -> None:
    experiment, _ = planted()
    values = {"comm_size": experiment.values["comm_size"]}
    page = html_report(replace(experiment, values=values), [])
    ids = "['overview-verdict', 'stack', 'flame-graph', 'accuracy-plot']"
    script = f"give({ids}.map((id) => document.getElementById(id).textContent))"
    verdict, stack, flame, accuracy = seen(page, script, tmp_path)
    assert verdict.startswith("comm_size has no model")
    assert "does not add up" in stack
    assert "does not add up" in flame
    assert "no models of comm_size" in accuracy
    empty = Experiment("e", (), np.zeros((1, 0)), CallTree((), np.zeros(0, int), np.zeros(0, int)), {}, {})
    assert "nothing was measured" in document_of(html_report(empty, []), tmp_path)


def document_of(page: str, folder: Path) -> str:
    file = folder / "empty.html"
    file.write_text(page, encoding="utf-8")
    dom, console = document(file, folder / "profile")
    assert console == ""
    return dom


KEYS = """
const frames = document.getElementById('frames');
const press = (key) => {
  frames.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  return document.querySelector('#flame-graph .chosen')?.dataset.path;
};
const found = [press('ArrowDown'), press('ArrowRight'), press('Enter')];
found.push(document.querySelectorAll('#flame-graph .frame').length, document.getElementById('flame-reset').disabled);
press('Escape');
found.push(document.getElementById('flame-reset').disabled, document.getElementById('crumbs').textContent);
give(found);
"""


def test_the_flame_graph_obeys_the_keyboard(tmp_path: Path) -> None:
    first, second, zoomed, frames, off, reset, crumbs = seen(report(), KEYS, tmp_path)
    assert len({first, second}) == 2
    assert zoomed == second
    assert (off, reset) == (False, True)
    assert frames < 8
    assert crumbs.startswith("main → ")


def test_two_experiments_are_compared_frame_by_frame(tmp_path: Path) -> None:
    experiment, _ = planted()
    values = {name: list_of.copy() for name, list_of in experiment.values.items()}
    values["time"][1] *= 0.25
    before = replace(experiment, values=values, name=f"before {HOSTILE}")
    script = """
    const frames = [...document.querySelectorAll('#flame-graph .frame')];
    const kinds = Object.fromEntries(frames.map((one) => [one.dataset.path, one.firstChild.getAttribute('class')]));
    const table = document.getElementById('differences');
    give([kinds, table.hidden, table.querySelector('tbody tr').textContent,
      document.getElementById('flame-legend').hidden, document.getElementById('flame-title').textContent]);
    """
    kinds, hidden, first, no_legend, title = seen(report(before), script, tmp_path)
    assert kinds["1"] == "d4"
    assert kinds["2"] == "d0"
    assert (hidden, no_legend) == (False, False)
    assert first.startswith("heat::sweep")
    assert first.endswith("4×")
    assert HOSTILE in title


EXPORT = """
const saved = [];
window.Blob = class { constructor(parts) { saved.push(parts[0]); } };
URL.createObjectURL = () => 'data:,';
HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
window.Image = class { addEventListener() {} set src(picture) { saved.push(picture); } };
for (const [id, at] of [['stack-card', 0], ['stack-card', 1], ['communication', 0]])
  document.querySelectorAll('#' + id + ' .export button')[at].click();
give(saved);
"""


def test_plots_and_tables_are_saved(tmp_path: Path) -> None:
    svg, svg_name, png, table, table_name = seen(report(), EXPORT, tmp_path)
    assert re.fullmatch(r"heat-\S+\.svg", svg_name)
    assert svg.startswith("<svg")
    assert "class=" not in svg
    assert 'fill="rgb(' in svg
    assert unquote(png.partition(",")[2]) == svg
    assert re.fullmatch(r"heat-\S+\.csv", table_name)
    assert table.startswith('"operation","')
    assert table.endswith("\r\n")
    assert len({line.count('","') for line in table.splitlines()}) == 1


AXE = """
axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }).then((found) =>
  give(found.violations.map((one) => [one.id, one.nodes[0].html.slice(0, 200)])));
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(theme: str, tmp_path: Path) -> None:
    experiment, _ = planted()
    file = installed_on_use("axe-core", installed) / "axe-core" / "axe.min.js"
    axe = file.read_text(encoding="utf-8").replace("</script", "<\\/script")
    page = report(replace(experiment, name="before")).replace(
        '<html lang="en">', f'<html lang="en" data-theme="{theme}">'
    )
    page = page.replace("</body>", f"<script>{axe}</script></body>")
    assert seen(page, AXE, tmp_path) == []


MATRIX_SCRIPT = """
const node = (id) => document.getElementById(id);
const press = (key) => {
  node('matrix-frame').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  return node('matrix-status').textContent;
};
const cells = () => document.querySelectorAll('#matrix rect[class^=s]').length;
const choose = (id, value) => {
  node(id).value = value;
  node(id).dispatchEvent(new Event('change'));
  window.dispatchEvent(new Event('beforeprint'));  // draws now what waits
};
const found = {};
choose('configuration', '1');
found.none = [node('matrix').textContent, press('Enter')];
choose('configuration', '0');
found.cells = cells();
found.entered = [press('Enter'), press('Enter')];
found.moved = press('ArrowRight');
choose('matrix-values', '3');
found.messages = node('matrix-status').textContent;
found.label = node('matrix').getAttribute('aria-label');
give(found);
"""


def test_who_sends_to_whom(tmp_path: Path) -> None:
    found = seen(report(), MATRIX_SCRIPT, tmp_path)
    lost = "; 5 B go to or come from ranks that are not in the map"
    assert found["none"] == ["no messages from rank to rank at this configuration", ""]
    assert found["cells"] == 3 + 9  # and the colours beside it
    assert found["entered"] == [f"rank 1 to rank 0: 4000 B{lost}", f"rank 0 to rank 1: 300 B{lost}"]
    assert found["moved"] == f"rank 0 to rank 2: 0 B{lost}"
    assert found["messages"] == f"rank 0 to rank 2: 0 messages{lost}"
    assert found["label"].startswith("3 ranks send 16 messages to each other; most: rank 0 to rank 1 9; ")


RANKS_SCRIPT = """
const node = (id) => document.getElementById(id);
const press = (key) => {
  node('ranks-frame').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  return node('ranks-status').textContent;
};
const choose = (id, value) => {
  node(id).value = value;
  node(id).dispatchEvent(new Event('change'));
  window.dispatchEvent(new Event('beforeprint'));  // draws now what waits
};
const found = {};
choose('configuration', '1');
found.none = node('ranks').textContent;
choose('configuration', '0');
found.cells = document.querySelectorAll('#ranks rect[class^=s]').length;
found.first = press('ArrowRight');
found.below = press('ArrowDown');
choose('ranks-values', 'relative');
found.relative = node('ranks-status').textContent;
found.last = [press('ArrowDown'), [...Array(99)].map(() => press('ArrowRight')).pop()];
found.label = node('ranks').getAttribute('aria-label');
press('Enter');
found.chosen = document.querySelector('#rows [aria-selected=true]').dataset.path;
give(found);
"""


def test_which_rank_takes_how_long(tmp_path: Path) -> None:
    experiment, _ = planted()
    found = seen(report(), RANKS_SCRIPT, tmp_path)
    main = experiment.tree.region_of(0).display
    assert found["none"] == "no times of several ranks at this configuration"
    assert found["cells"] == 2 * 44 + 9  # and the colours beside it
    assert found["first"].endswith("ranks 3 to 5: 2.00 s; imbalance 0.0%")
    assert found["below"] == f"{main}, ranks 3 to 5: 2.00 s; imbalance 75.0%"
    mean = (43 * 1.0 + 2.0) / 44
    assert found["relative"] == f"{main}, ranks 3 to 5: {2 / mean:.3g} × mean; imbalance 75.0%"
    assert found["last"][0] == found["relative"]
    assert found["last"][1].startswith(f"{main}, rank 129: ")
    assert found["label"] == f"time of 130 ranks in 2 call paths; most uneven: {main}, 75.0%"
    assert found["chosen"] == "0"


def test_many_configurations_keep_those_of_most_ranks() -> None:
    points = np.array([[float(p)] for p in range(2, 64)])
    found = rank_data({(p,): np.ones((40, int(p))) for p in points[:, 0].tolist()}, points)
    assert sum(len(one["paths"]) * len(one["cells"][0]) for one in found) <= 20_000
    assert [one["configuration"] for one in found] == list(range(62 - len(found), 62))
    assert rank_data({(7.0,): np.ones((3, 1)), (9.5,): np.ones((3, 4))}, points) == []


SURFACE = """
const node = (id) => document.getElementById(id);
const press = (key) => {
  node('surface-frame').dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  return node('surface-status').textContent;
};
const count = (selector) => document.querySelectorAll('#surface ' + selector).length;
const found = { title: node('surface-title').textContent, spots: count('.spot'), cells: count('rect') };
const texts = [...document.querySelectorAll('#surface text')].map((one) => one.textContent);
found.scale = texts.filter((one) => / (m|µ|n)?s$/.test(one));
found.corner = press('ArrowDown');
found.up = press('ArrowUp');
found.measured = [press('Enter'), press('Enter')];
node('surface-extend').click();
for (let at = 0; at < 40; at++) press('ArrowRight');
found.far = press('ArrowRight');
found.within = count('.within');
give(found);
"""


def test_two_parameters_of_a_call_path(tmp_path: Path) -> None:
    found = seen(report(), SURFACE, tmp_path)
    assert found["title"] == "time over p and n"
    assert found["spots"] == 21  # and that of the legend
    assert found["cells"] > 28 * 18
    assert len(found["scale"]) == 10
    assert found["corner"].startswith("p=1, n=32: modeled 1")
    assert "; measured 1" in found["corner"]
    assert found["up"] != found["corner"]
    assert "measured" in found["measured"][0]
    assert found["measured"][0] != found["measured"][1]
    assert "p 6" in found["far"]
    assert found["far"].endswith("beyond the measurements")
    assert found["within"] == 1


def test_one_parameter_has_no_map(tmp_path: Path) -> None:
    experiment, _ = planted()
    values = {name: list_of[:, :4] for name, list_of in experiment.values.items()}
    single = replace(experiment, parameters=("n",), points=experiment.points[:4, 1:], values=values)
    script = "give(document.getElementById('surface-card').hidden)"
    assert seen(html_report(single, []), script, tmp_path) is True


ITERATIONS = """
const charts = ['overhead', 'regions', 'coverage'].map((name) => document.getElementById('refinement-' + name));
give(charts.map((svg) => [svg.getAttribute('aria-label'), svg.querySelectorAll('circle').length,
  svg.querySelectorAll('.ideal').length]));
"""


def test_the_iterations_of_a_refinement_are_drawn(tmp_path: Path) -> None:
    overhead, regions, coverage = seen(report(), ITERATIONS, tmp_path)
    assert overhead == ["Overhead per iteration: measured 31% in 1, 2% in 2; predicted 5% in 1", 5, 2]
    assert regions == ["Regions per iteration: in the filter 40 in 1, 12 in 2; that ran 31 in 1, 12 in 2", 6, 0]
    assert coverage[0] == "Coverage per iteration: of the reference run 98% in 1, 90% in 2"


LARGE = """
const plot = document.getElementById('plot');
const state = () => [plot.getAttribute('aria-busy'), plot.querySelectorAll('polygon.band').length];
const found = [state()];
document.getElementById('logx').click();
found.push(state());
window.dispatchEvent(new Event('beforeprint'));
found.push(state());
document.getElementById('logx').click();
document.querySelectorAll('#tree .row')[0].click();
found.push(state());
setTimeout(() => give([...found, state()]));
"""


def test_the_interval_of_thousands_of_call_paths_follows(tmp_path: Path) -> None:
    """It is made while the page answers, at once where it is printed, and kept."""
    experiment, models = planted(1500)
    form = next(entry.model for entry in models if entry.path == 5 and entry.metric == "time")
    assert form is not None
    more = [PlacedModel(path, "time", form, "20 configurations") for path in range(8, 1508)]
    page = html_report(experiment, [*models, *more], target=TARGET)
    assert seen(page, LARGE, tmp_path) == [["false", 1], ["true", 0], ["false", 1], ["false", 1], ["false", 1]]
