# SPDX-License-Identifier: Apache-2.0
"""Measure campaigns with a target of many ranks on few processors: their time, and the value of count-only runs.

    make bench-target_campaign [ARGS="--ranks 64 --budget 120"]
    python benchmarks/target_campaign.py --folder DIR      # keeps finished runs in DIR, and continues

For heat, cg and wavefront, one `quipu campaign` measures p = 1, 2, 4 with four sizes. It adds count-only runs up to the
number of ranks of the target, as processes or simulated. A simulated count-only run at the target itself, at a larger
size than all others, is the reference. The predictions of two models are compared with it: `with` the count-only runs
of the campaign, and `without` them (from the runs with times alone). The error of a metric is the sum over call paths
of |predicted - counted|, as a share of all counted. With `--example samplesort --ranks 64`, the counts depend on data,
and all ranks send to all others.

The last line is one JSON object:

- `seconds` of all campaigns, `reference_seconds` of the runs at the targets.
- by example: `seconds`, `timed` and `counted` (complete runs of each kind), `most_ranks` (of a count-only run),
  `simulated` (count-only runs in SMPI), and by metric the errors `with` and `without`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from priors_programs import ENVIRONMENT, build_example, call
from quipu.agent.merge.experiment import find_runs, load_experiment
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import Experiment

METRICS = ("blocks", "bytes_sent", "messages_sent")
CAMPAIGN = """
[experiment]
name = "{name}"
directory = "runs"
command = "mpirun -n {{p}} ./{name} {{n}} {arguments}"
[parameters]
p = [1, 2, 4]
n = {sizes}
[target]
p = {ranks}
n = {target}
[counts]
launcher = "smpi"
command = "./{name}-smpi {{n}} {arguments}"
build = "make -s program={name}-smpi MPICC=quipu-smpicc MPICXX=quipu-smpicxx"
{counts}
"""


@dataclass(frozen=True)
class Example:
    """An example and its runs. target: the size at the target."""

    name: str
    arguments: str
    sizes: tuple[int, ...]
    target: int


EXAMPLES = (
    Example("heat", "4 2", (8, 12, 16, 24), 32),
    Example("cg", "5", (8, 12, 16, 24), 32),
    Example("wavefront", "1", (4, 6, 8, 12), 16),
    Example("samplesort", "0 1", (1000, 2000, 4000, 8000), 16000),
)
USUAL = ("heat", "cg", "wavefront")


def campaign(example: Example, folder: Path, ranks: int, counts: str) -> float:
    """Run the campaign of an example in a folder; return its seconds."""
    if not (folder / example.name).exists():
        build_example(example.name, folder, "quipu-mpi")
    values = {"name": example.name, "arguments": example.arguments, "ranks": ranks, "target": example.target}
    file = folder / "target.toml"
    file.write_text(CAMPAIGN.format(**values, sizes=list(example.sizes), counts=counts), encoding="utf-8")
    began = time.monotonic()
    environment = {**os.environ, **ENVIRONMENT}
    done = subprocess.run(["quipu", "campaign", file], env=environment, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(f"quipu campaign {file} ended with exit code {done.returncode}")
    return time.monotonic() - began


def reference(example: Example, folder: Path, ranks: int) -> float:
    """Count at the target; return the seconds."""
    if (folder / "there").is_dir() and find_runs(folder / "there"):
        return 0.0
    began = time.monotonic()
    words = ("--counts", "-q", "-o", "there", "--launcher", "smpi", "-n", ranks)
    point = ("-p", f"p={ranks}", "-p", f"n={example.target}", "--")
    program = (f"./{example.name}-smpi", example.target, *example.arguments.split())
    call(("quipu", "run", *words, *point, *program), folder)
    return time.monotonic() - began


def error(analysis: Analysis, there: Experiment, metric: str) -> float:
    """Return the sum of the errors of all call paths at a measured point / the sum of the values at this point."""
    point = dict(zip(there.parameters, there.points[0].tolist(), strict=True))
    found = {
        analysis.tree.key(path): prediction.value
        for path, prediction in enumerate(evaluate(analysis, point, metric).exclusive)
    }
    counted = {there.tree.key(path): float(value) for path, value in enumerate(there.values[metric][:, 0, 0])}
    keys = found.keys() | counted.keys()
    missed = sum(abs(np.nan_to_num(found.get(key, 0.0)) - counted.get(key, 0.0)) for key in keys)
    return float(missed / max(sum(counted.values()), 1e-300))


def compared(folder: Path) -> dict[str, dict[str, float]]:
    """Return by metric the errors at the target, of models with and without count-only runs."""
    measured, there = load_experiment(folder / "runs"), load_experiment(folder / "there")
    experiments = {"with": replace(measured, timed=None), "without": measured.of_time}
    models = {name: analyze(own.only((*METRICS, "visits"))) for name, own in experiments.items()}
    return {metric: {name: error(own, there, metric) for name, own in models.items()} for metric in METRICS}


def figures(folder: Path) -> dict[str, object]:
    """Return the measurements in a folder, and the accuracy of the predictions."""
    runs = [run.metadata for run in find_runs(folder / "runs") if run.metadata.complete]
    counted = [run for run in runs if run.counts_only]
    return {
        "timed": len(runs) - len(counted),
        "counted": len(counted),
        "most_ranks": max((run.ranks for run in counted), default=0),
        "simulated": sum(run.launcher.get("family") == "smpi" for run in counted),
        **compared(folder),
    }


def main() -> None:
    """Run the campaigns; print their times and the accuracy of the predictions."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, default=512, help="of the target")
    parser.add_argument("--budget", type=float, help="seconds for the count-only runs of an example")
    parser.add_argument("--example", action="append", choices=[example.name for example in EXAMPLES])
    parser.add_argument("--folder", type=Path, help="where to work; kept")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="target-campaign-"))
    counts = f"budget = {options.budget}" if options.budget else ""
    chosen = [example for example in EXAMPLES if example.name in (options.example or USUAL)]
    try:
        took = {example.name: campaign(example, folder / example.name, options.ranks, counts) for example in chosen}
        there = {example.name: reference(example, folder / example.name, options.ranks) for example in chosen}
        found = {name: {"seconds": round(seconds, 1), **figures(folder / name)} for name, seconds in took.items()}
    finally:
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    for name, one in found.items():
        print(f"{name}: {json.dumps(one)}")
    sums = {"seconds": round(sum(took.values()), 1), "reference_seconds": round(sum(there.values()), 1)}
    print(json.dumps({"ranks": options.ranks, **sums, **found}))


if __name__ == "__main__":
    main()
