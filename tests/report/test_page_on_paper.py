# SPDX-License-Identifier: Apache-2.0
"""A report on paper, and names that tell call paths of the same function apart."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import CallTree, Experiment, Region
from quipu.report.html import html_report, placed_models

from .browser import document, instrumented
from .planted import planted

PHASES = 60


def shaped(steps: list[tuple[int, str]], heavy: Sequence[float]) -> Experiment:
    """Return an experiment of one parameter whose call paths are these: the place of the caller and a name each."""
    experiment, _ = planted()
    names = list(dict.fromkeys(name for _, name in steps))
    region = np.array([names.index(name) for _, name in steps])
    parent = np.array([caller for caller, _ in steps])
    points = np.array([[2.0], [4.0], [8.0], [16.0], [32.0]])
    values = {"time": (np.array(heavy)[:, None] * points[:, 0])[:, :, None]}
    tree = CallTree(tuple(Region(name, name) for name in names), region, parent)
    return Experiment("shaped", ("p",), points, tree, {"time": experiment.metrics["time"]}, values)


def wide() -> Experiment:
    """Return an experiment whose main calls many phases, each of which calls one step."""
    phases = [(0, f"phase_{one}") for one in range(PHASES)]
    heavy = [0.1, *[0.01] * PHASES, *np.linspace(9.0, 1.0, PHASES)]
    return shaped([(-1, "main"), *phases, *((1 + one, "step") for one in range(PHASES))], heavy)


def seen(experiment: Experiment, script: str, folder: Path) -> Any:
    """Return what a script at the end of the report of an experiment calls `give` with; nothing may be said."""
    page = html_report(experiment, placed_models(analyze(experiment)), target={"p": 64})
    give = "const give = (found) => { document.documentElement.dataset.found = JSON.stringify(found); };"
    file = folder / "page.html"
    file.write_text(instrumented(page, f"{give} whenDrawn(() => {{ {script} }});"), encoding="utf-8")
    dom, console = document(file, folder / "profile")
    assert console == ""
    found = re.search(r'data-found="([^"]*)"', dom)
    assert found is not None
    return json.loads(html.unescape(found[1]))


def test_dark_colours_are_for_screens_only(tmp_path: Path) -> None:
    script = """
    const inside = (rules, media) => [...rules].flatMap((rule) =>
      rule.media ? inside(rule.cssRules, rule.media.mediaText)
      : rule.style && rule.style.getPropertyValue('--ground') ? [[rule.selectorText, media]] : []);
    give([...document.styleSheets].flatMap((sheet) => inside(sheet.cssRules, '')));"""
    (plain, without), *dark = seen(wide(), script, tmp_path)
    assert (plain, without) == (":root", "")
    assert len(dark) == 2
    assert all(media.startswith("screen") for _, media in dark)


def test_a_printed_tree_has_its_first_rows_and_says_how_many(tmp_path: Path) -> None:
    script = """
    document.getElementById('expand').click();
    const state = () => [document.querySelectorAll('#rows .row').length, document.getElementById('rows').style.height,
      document.getElementById('tree-status').textContent];
    const screen = state();
    window.dispatchEvent(new Event('beforeprint'));
    const paper = state();
    window.dispatchEvent(new Event('afterprint'));
    give([screen, paper, state()]);"""
    screen, paper, again = seen(wide(), script, tmp_path)
    rows = 2 * PHASES + 1
    assert screen == again
    assert screen[0] < 100
    assert screen[1] == f"{28 * rows}px"
    assert paper == [100, "2800px", f"the first 100 of {rows} rows; fold or search to print others"]


def test_legends_and_the_overview_tell_call_paths_of_one_function_apart(tmp_path: Path) -> None:
    script = """
    window.dispatchEvent(new Event('beforeprint'));
    const texts = (selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent);
    give([texts('#stack-legend button'), texts('#overview-verdict button'), texts('#stack-legend li').at(-1),
      document.getElementById('stack-status').textContent]);"""
    legend, verdict, rest, status = seen(wide(), script, tmp_path)
    assert legend == [f"phase_{one} → step" for one in range(8)]
    assert verdict[0] == "phase_0 → step"
    assert rest.startswith("all others")
    assert status.startswith("phase_0 → step leads at p=2")


def test_all_steps_that_are_needed_stand_in_front(tmp_path: Path) -> None:
    a, b = 1, 2
    below = [(a, "x"), (a, "y"), (b, "x"), (3, "s"), (4, "s"), (5, "s"), (3, "t"), (5, "t"), (5, "u")]
    overloaded = [f"solve({'row' * 20})", f"solve({'column' * 20})"]
    short = ["solve(rowrowrowro…rowrowrowrowrow)", "solve(columncolum…umncolumncolumn)"]
    steps = [(-1, "main"), (0, "a"), (0, "b"), *below, *((0, name) for name in overloaded)]
    script = """
    window.dispatchEvent(new Event('beforeprint'));
    give([...document.querySelectorAll('#stack-legend button')].map((one) => one.textContent));"""
    legend = seen(shaped(steps, [0, 0, 0, 0, 0, 0, 9, 8, 7, 6, 5, 4, 3, 2]), script, tmp_path)
    assert legend == ["a → x → s", "y → s", "b → x → s", "a → … → t", "b → … → t", "u", *short]
