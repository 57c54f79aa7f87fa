"""What the page says of a single configuration, and of efficiency where a run was disturbed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

from quipu.modeling.experiment import Experiment
from quipu.report.html import html_report

from .browser import document, instrumented
from .planted import planted


def said(experiment: Experiment, identifiers: tuple[str, ...], folder: Path, width: int = 1400) -> list[str]:
    """Return the texts of elements of the page, all sections drawn."""
    script = f"""setTimeout(() => {{
      window.dispatchEvent(new Event('beforeprint'));
      const textOf = (id) => document.getElementById(id).textContent.replace(/\\s+/g, ' ').trim();
      const texts = {list(identifiers)}.map(textOf);
      document.documentElement.dataset.found = JSON.stringify(texts);
    }}, 200);"""
    page = folder / "page.html"
    page.write_text(instrumented(html_report(experiment, planted()[1]), script), encoding="utf-8")
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
    assert "stands out" in said(experiment, ("surface",), tmp_path)[0]
    assert "stands out" not in said(experiment, ("surface",), tmp_path, width=420)[0]
