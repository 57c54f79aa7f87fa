# SPDX-License-Identifier: Apache-2.0
"""What the page says of a single configuration, and of efficiency where a run was disturbed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape, unescape
from pathlib import Path

from quipu.modeling.experiment import Experiment
from quipu.report.html import html_report
from quipu.report.kernel_views import KernelPanel
from quipu.report.views import PlacedModel

from .browser import document, instrumented
from .planted import planted


def said(
    experiment: Experiment,
    identifiers: tuple[str, ...],
    folder: Path,
    width: int = 1400,
    models: Sequence[PlacedModel] = (),
) -> list[str]:
    """Return the texts of elements of the page, all sections drawn. models: if they are not those planted."""
    script = f"""whenDrawn(() => {{
      window.dispatchEvent(new Event('beforeprint'));
      const textOf = (id) => document.getElementById(id).textContent.replace(/\\s+/g, ' ').trim();
      const texts = {list(identifiers)}.map(textOf);
      document.documentElement.dataset.found = JSON.stringify(texts);
    }});"""
    page = folder / "page.html"
    page.write_text(instrumented(html_report(experiment, models or planted()[1]), script), encoding="utf-8")
    dom, console = document(page, folder / "profile", width)
    assert console == ""
    found = re.search(r'data-found="([^"]*)"', dom)
    assert found is not None
    texts: list[str] = json.loads(unescape(found[1]))
    return texts


def test_a_single_configuration_has_no_target(tmp_path: Path) -> None:
    experiment, _ = planted()
    single = {name: values[:, :1] for name, values in experiment.values.items()}
    names = ("overview-title", "overview-verdict", "overview-facts", "overview-advice")
    title, verdict, facts, advice = said(
        replace(experiment, points=experiment.points[:1], values=single), names, tmp_path
    )
    assert title == "Where the time goes at p=1, n=32"
    assert " there" not in verdict + facts + advice
    assert "grow" not in advice
    assert advice.count("Measure more") == 1


def test_a_single_configuration_has_no_section_over_a_parameter(tmp_path: Path) -> None:
    experiment, _ = planted()
    single = {name: values[:, :1] for name, values in experiment.values.items()}
    script = """whenDrawn(() => {
      const texts = ['stack-card', 'scaling', 'surface-card'].map((id) => document.getElementById(id).hidden);
      texts.push([...document.querySelectorAll('#target input')].map((one) => one.value).join());
      document.documentElement.dataset.found = texts.join(' ');
    });"""
    for measured, expected in (
        (replace(experiment, points=experiment.points[:1], values=single), "true true true 1,32"),
        (experiment, "false false false"),
    ):
        page = tmp_path / "page.html"
        page.write_text(instrumented(html_report(measured, planted()[1]), script), encoding="utf-8")
        found = re.search(r'data-found="([^"]*)"', document(page, tmp_path / "profile")[0])
        assert found is not None
        assert found[1].startswith(expected)


def of_points(points: list[tuple[int, int]]) -> Experiment:
    """Return the planted experiment with nothing but these configurations."""
    experiment, _ = planted()
    places = [experiment.points.tolist().index([p, n]) for p, n in points]
    values = {name: own[:, places] for name, own in experiment.values.items()}
    return replace(experiment, points=experiment.points[places], values=values)


def test_the_plots_of_a_star_are_those_of_its_middle(tmp_path: Path) -> None:
    star = of_points([(1, 32), (2, 32), (2, 64), (2, 128), (2, 256), (4, 32), (8, 32)])
    names = ("scaling-status", "overview-facts")
    status, facts = said(star, names, tmp_path)
    assert status.startswith("strong scaling, relative to p=1: efficiency ")
    assert status.endswith("; measured at n=32")
    assert "scaling efficiency" in facts
    grid = of_points([(1, 32), (1, 64), (2, 32), (2, 64), (4, 32), (4, 64)])
    assert said(grid, names, tmp_path)[0].endswith("; measured at n=64")


def test_without_two_numbers_of_ranks_there_is_no_speed_up(tmp_path: Path) -> None:
    script = """whenDrawn(() => {
      document.documentElement.dataset.found = document.getElementById('scaling').hidden;
    });"""
    page = tmp_path / "page.html"
    diagonal = of_points([(1, 32), (2, 64), (4, 128), (8, 256)])
    page.write_text(instrumented(html_report(diagonal, planted()[1]), script), encoding="utf-8")
    assert 'data-found="true"' in document(page, tmp_path / "profile")[0]


def test_captions_are_not_wider_than_their_table_is_seen(tmp_path: Path) -> None:
    experiment, models = planted()
    measure = """whenDrawn(() => {
      document.getElementById('levels').hidden = false;
      const shown = [...document.querySelectorAll('.scroll caption')].filter((one) => one.offsetParent);
      const room = (one) => one.closest('.scroll').clientWidth + 1 - one.getBoundingClientRect().width;
      parent.document.documentElement.dataset.found = shown.length + ' ' + shown.filter((one) => room(one) < 0).length;
    });"""
    inner = escape(instrumented(html_report(experiment, models), measure))
    page = tmp_path / "page.html"
    page.write_text(f'<iframe style="width:400px;height:900px" srcdoc="{inner}"></iframe>', encoding="utf-8")
    found = re.search(r'data-found="(\d+) (\d+)"', document(page, tmp_path / "profile")[0])
    assert found is not None
    assert (int(found[1]) >= 2, found[2]) == (True, "0")


def test_modeled_efficiency_does_not_have_the_noise_of_the_first_run(tmp_path: Path) -> None:
    experiment, _ = planted()
    status = said(experiment, ("scaling-status",), tmp_path)
    time = experiment.values["time"].copy()
    time[:, experiment.points[:, 0] == 1] *= 7
    disturbed = replace(experiment, values={**experiment.values, "time": time})
    assert "(modeled)" in status[0]
    assert said(disturbed, ("scaling-status",), tmp_path) == status


def test_the_legend_of_a_narrow_map_has_one_line(tmp_path: Path) -> None:
    experiment, _ = planted()
    assert "differs from the model" in said(experiment, ("surface",), tmp_path)[0]
    assert "differs from the model" not in said(experiment, ("surface",), tmp_path, width=420)[0]


def test_all_views_have_one_target_and_one_efficiency(tmp_path: Path) -> None:
    experiment, models = planted()
    script = """whenDrawn(() => {
      const [p, n] = document.querySelectorAll('#target input');
      [p.value, n.value] = ['640', '512'];
      for (const input of [p, n]) input.dispatchEvent(new Event('input'));
      const kind = document.getElementById('scaling-kind');
      const texts = [];
      for (kind.value of ['strong', 'weak']) {
        kind.dispatchEvent(new Event('change'));
        window.dispatchEvent(new Event('beforeprint'));
        const textOf = (id) => document.getElementById(id).textContent.replace(/\\s+/g, ' ').trim();
        texts.push(['overview-title', 'ranking-title', 'stack-status', 'overview-facts', 'scaling-status'].map(textOf));
      }
      document.documentElement.dataset.found = JSON.stringify(texts);
    });"""
    page = tmp_path / "page.html"
    page.write_text(instrumented(html_report(experiment, models), script), encoding="utf-8")
    dom, console = document(page, tmp_path / "profile")
    assert console == ""
    found = re.search(r'data-found="([^"]*)"', dom)
    assert found is not None
    efficiencies = []
    for kind, texts in zip(("strong", "weak"), json.loads(unescape(found[1])), strict=True):
        title, ranking, stack, facts, scaling = texts
        assert (title, ranking) == ("The program at p=640, n=512", "Ranking at p=640, n=512")
        assert "p=640" in stack and stack.endswith("; all at n=512")
        there = re.search(r"efficiency (\d+%) at p=640, n=512 \(modeled\); measured at n=256", scaling)
        assert there is not None
        assert f"{kind} scaling efficiency{there[1]} of p=1" in facts
        efficiencies.append(there[1])
    assert len(set(efficiencies)) == 2


def test_long_names_are_short_and_complete_where_the_pointer_rests(tmp_path: Path) -> None:
    experiment, models = planted()
    long = (
        "void fe::assemble<fe::Matrix<double, std::allocator<double> > >(fe::Matrix<double, std::allocator<double> >&)"
    )
    tree = experiment.tree
    region = int(tree.region[1])
    regions = tuple(replace(one, display=long) if at == region else one for at, one in enumerate(tree.regions))
    script = """whenDrawn(() => {
      const marked = [...document.querySelectorAll('[title]')].filter((one) => one.title.startsWith('void fe::'));
      const seen = (one) => one.textContent.includes('allocator');
      document.documentElement.dataset.found = marked.length + ' ' + marked.filter(seen).length;
    });"""
    page = tmp_path / "page.html"
    text = html_report(replace(experiment, tree=replace(tree, regions=regions)), models)
    page.write_text(instrumented(text, script), encoding="utf-8")
    found = re.search(r'data-found="(\d+) (\d+)"', document(page, tmp_path / "profile")[0])
    assert found is not None
    assert (int(found[1]) >= 2, found[2]) == (True, "0")


def test_kernels_of_another_target_say_so(tmp_path: Path) -> None:
    experiment, models = planted()
    panel = KernelPanel("p=256, n=256", (), (), ())
    script = """whenDrawn(() => {
      const note = document.getElementById('kernels-status');
      const shown = [note.hidden];
      const input = document.querySelector('#target input');
      for (input.value of ['640', '256']) {
        input.dispatchEvent(new Event('input'));
        shown.push(note.hidden);
      }
      document.documentElement.dataset.found = shown.join(' ');
    });"""
    page = tmp_path / "page.html"
    page.write_text(instrumented(html_report(experiment, models, kernels=panel), script), encoding="utf-8")
    assert 'data-found="true false true"' in document(page, tmp_path / "profile")[0]
