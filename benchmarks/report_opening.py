# SPDX-License-Identifier: Apache-2.0
"""Measure how long headless Chromium takes to open and to use a report of 20,000 call paths.

Each call path has a model of blocks and a model of time. The model of time has three near-best hypotheses and a
covariance, so that its prediction is a mixture of normal distributions. The last line is one JSON object:

- `opening`: seconds until the page is drawn and all controls work.
- `target`: seconds until the ranking shows another point.
- `path`: seconds until another call path of the first level is drawn.
- `megabytes`: size of the file. `call_paths`: number of call paths.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
from quipu.modeling.experiment import CallTree, Experiment, Metric, Region, RegionKind
from quipu.modeling.pmnf.model import Alternative, Factor, Model, Quality, Term
from quipu.report.html import html_report
from quipu.report.views import PlacedModel

_METRICS = {"time": Metric("time", "s"), "blocks": Metric("blocks", "1", "effort")}
_SCRIPT = """
const seen = document.documentElement.dataset;
const since = (began) => ((performance.now() - began) / 1e3).toFixed(3);
const timed = (work) => {
  const began = performance.now();
  work();
  document.body.offsetHeight;
  return since(began);
};
setTimeout(() => {
  seen.opening = since(0);
  const input = document.querySelector('#target input');
  seen.target = timed(() => {
    input.value = '4096';
    input.dispatchEvent(new Event('input'));
  });
  const row = document.querySelectorAll('#tree .row')[1];
  seen.path = timed(() => row.click());
});
"""


def planted(paths: int) -> tuple[Experiment, list[PlacedModel]]:
    """Return an experiment over p and n and a model of time and of blocks of each of its call paths."""
    random = np.random.default_rng(3)
    steps = (Region(f"solver::step{k}", f"solver::step{k}(Grid<double>&, double)") for k in range(400))
    regions = (Region("main", "main"), Region("MPI_Init", "MPI_Init", RegionKind.MPI), *steps)
    parent = np.array([-1, 0, *(int(max(0, at - 1 - random.geometric(0.02))) for at in range(2, paths))])
    parent[parent == 1] = 0
    tree = CallTree(regions, np.array([0, 1, *random.integers(2, len(regions), paths - 2)]), parent)
    points = np.array([[p, n] for p in (2, 4, 8, 16, 32) for n in (64, 128, 256, 512, 1024)], dtype=float)
    models, values = [], {name: np.zeros((paths, len(points), 3)) for name in _METRICS}
    ranges = ((2.0, 32.0), (64.0, 1024.0))
    for path in range(paths):
        size = float(random.lognormal(-12, 2))
        forms = [_terms(random, size) for _ in range(4)]
        alternatives = tuple(Alternative(0.1, 0.1 * size, terms) for terms in forms[1:])
        diagonal = [(0.05 * size) ** 2, *((0.05 * term.coefficient) ** 2 for term in forms[0])]
        covariance = tuple(map(tuple, np.diag(diagonal).tolist()))
        quality = Quality(3.0, 0.03, 0.99, 0.99, 0.03, len(points))
        time = Model(("p", "n"), size, forms[0], quality, ranges, covariance, alternatives)
        blocks = Model(("p", "n"), 3.0, (Term(2.0, (Factor("n", Fraction(2)),)),), quality, ranges)
        values["time"][path] = time.evaluate(points)[:, None] * random.normal(1, 0.03, (len(points), 3))
        values["blocks"][path] = blocks.evaluate(points)[:, None]
        models += [PlacedModel(path, "time", time, "effort"), PlacedModel(path, "blocks", blocks, "measured")]
    return Experiment("large", ("p", "n"), points, tree, _METRICS, values), models


def _terms(random: np.random.Generator, size: float) -> tuple[Term, ...]:
    first = Factor("n", Fraction(int(random.integers(1, 7)), 2), int(random.integers(0, 2)))
    second = Factor("p", Fraction(int(random.integers(1, 4)), 3), 0)
    return (Term(size * 1e-3, (first,)), Term(size * 1e-2, (second,)))


def opened(page: Path, scratch: Path, browser: str, seconds: float) -> dict[str, float]:
    """Return the measurements of the script at the end of the page."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--timeout=1000000", "--dump-dom", "--window-size=1400,900"]
    done = subprocess.run(
        [browser, *flags, f"--user-data-dir={scratch}", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=True,
    )
    seen = re.findall(r'data-(opening|target|path)="([^"]*)"', done.stdout[: done.stdout.index("<head")])
    return {name: float(value) for name, value in seen}


def main() -> None:
    """Write the page, open it, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", type=int, default=20_000)
    parser.add_argument("--browser", default="chromium")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds that the browser gets")
    chosen = parser.parse_args()
    experiment, models = planted(chosen.paths)
    text = html_report(experiment, models, target={"p": 1024})
    start = text.index("<meta http-equiv")
    text = text[:start] + text[text.index(">", start) + 1 :]
    text = text.replace("</body>", f"<script>{_SCRIPT}</script></body>")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(text, encoding="utf-8")
        found = opened(page, Path(folder) / "profile", chosen.browser, chosen.timeout)
        megabytes = page.stat().st_size / 1e6
    for name, value in found.items():
        print(f"{name:8} {value:8.2f} s", file=sys.stderr)
    print(json.dumps({**found, "megabytes": round(megabytes, 1), "call_paths": chosen.paths}))


if __name__ == "__main__":
    main()
