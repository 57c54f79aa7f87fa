# SPDX-License-Identifier: Apache-2.0
"""Measure how well counts that depend on data are predicted: sorts, searches, refinement, iterations to a tolerance.

    make bench-effort_sums [ARGS="--seed 1000"]

The programs of benchmarks/programs/effort_sums are built with Quipu. They run in one process at six sizes, five times
each with different random numbers. Each effort metric of each call path is modeled, predicted at eight times the
largest size, and compared with the mean of five runs there. The programs named others were written after the modelers,
with two exceptions: one of them led to sums of simple terms, and passes was written together with sums that grow in
steps.

The last line is one JSON object. Shares of all call paths of all programs:

- `within`: all counts of the call path are predicted within 1 % of the mean, or within two standard errors of the mean
  if these are more. `within_1_percent`: the same without standard errors.
- `random`: the call path has a random count, whose runs at the target have a standard deviation of more than 1 %.

Shares of single counts (call path and effort metric):

- `counts`: the count is predicted as in `within`.
- `covered`: the mean of the runs at the target is in the 90 % interval.
- `random_covered`: as `covered`, for counts of call paths with a random count.

Shares of call paths without a random count:

- `within_others`: as `within_1_percent`.
- `decided`: share of the call paths whose counts are all decided by the runs, independent of the prediction.
  `decided_within`: share of these with an error of at most 1 %.
- `undecided`: share of the call paths that have a count outside of 1 % and a count that is not decided.

`literal` contains the same figures for sorts, searches and conjugate gradients together.

A count is not decided if two simple functions agree with all runs, but differ so much at the target that no prediction
is within 1 % of both. The functions may also be functions of a number that determines the count exactly
(undecided_paths.py). `--verbose` prints these functions.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from quipu.agent.installation import native_file
from quipu.agent.profile.reader import read_profile
from quipu.modeling.analysis import analyze
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.metrics import METRICS
from undecided_paths import undecided_of

SOURCES = Path(__file__).resolve().parent / "programs/effort_sums"
TOLERANCE, TIMES_FURTHER = 0.01, 8
CallPath = tuple[str, ...]
Counts = dict[tuple[CallPath, str], int]


@dataclass(frozen=True)
class Program:
    """A program with the sizes at which it is measured."""

    name: str
    source: str
    sizes: tuple[int, ...]
    options: tuple[str, ...] = ()


PROGRAMS = (
    Program("sorts", "sorts", (250, 500, 1000, 2000, 4000, 8000)),
    Program("searches", "searches", (1000, 2000, 4000, 8000, 16000, 32000)),
    Program("conjugate gradients", "solvers", (16, 24, 32, 40, 48, 64), ("0.01",)),
    Program("random source", "solvers", (16, 24, 32, 40, 48, 64), ("1",)),
    Program("stationary iterations", "solvers", (8, 11, 14, 17, 20, 24), ("0.01", "stationary")),
    Program("refinement", "refinement", (1000, 2000, 4000, 8000, 16000, 32000)),
    Program("mixed", "mixed", (125, 250, 500, 1000, 2000, 4000)),
    Program("other sorts", "others", (125, 250, 500, 1000, 2000, 4000), ("sorts",)),
    Program("other searches", "others", (1000, 2000, 4000, 8000, 16000, 32000), ("searches",)),
    Program("other trees", "others", (1000, 2000, 4000, 8000, 16000, 32000), ("trees",)),
    Program("other tables", "others", (1000, 2000, 4000, 8000, 16000, 32000), ("tables",)),
    Program("other iterations", "others", (32, 48, 64, 96, 128, 192), ("iterations",)),
    Program("passes", "passes", (300, 500, 900, 1500, 2600, 4500)),
)
# The kinds of programs in the figure `literal`.
LITERAL = ("sorts", "searches", "conjugate gradients")


@dataclass(frozen=True, eq=False)
class Layout:
    """The measured points (C, m), the predicted point, and the sizes of the program's runs for it."""

    parameters: tuple[str, ...]
    points: FloatArray
    sizes: tuple[int, ...]
    target: tuple[float, ...]
    target_size: int


def one_process(own: Program) -> Layout:
    """Return the layout of a program with all n items, predicted at TIMES_FURTHER times the largest size."""
    target = TIMES_FURTHER * own.sizes[-1]
    points = np.array(own.sizes, dtype=np.float64)[:, None]
    return Layout(("n",), points, own.sizes, (float(target),), target)


def counts_of(program: Path, arguments: Sequence[str]) -> Counts:
    """Run once; return the effort of each call path."""
    found: Counter[tuple[CallPath, str]] = Counter()
    with tempfile.TemporaryDirectory() as raw:
        environment = {**os.environ, "QUIPU_DIR": raw}
        subprocess.run([program, *arguments], env=environment, cwd=raw, check=True, capture_output=True)
        (file,) = Path(raw).glob("profile-*.quipu")
        profile = read_profile(file)
    paths: list[CallPath] = []
    for parent, region in zip(profile.parent.tolist(), profile.region.tolist(), strict=True):
        paths.append((*paths[parent], profile.regions[region].name) if region else ())
    for metric, values in profile.values.items():
        if metric in METRICS and METRICS[metric].is_effort:
            for path, value in zip(paths, values.tolist(), strict=True):
                if path:
                    found[path, metric] += int(value)
    return dict(found)


@dataclass(frozen=True, eq=False)
class Measured:
    """A program's experiment at its sizes, and the runs at the target: far, by metric (call paths, repetitions)."""

    experiment: Experiment
    layout: Layout
    far: dict[str, FloatArray]


def measure(own: Program, layout: Layout, program: Path, repetitions: int, first: int = 0) -> Measured:
    """Run at all sizes and at the target, with random numbers of the seeds from `first` on."""

    def runs(size: int, seeds: range) -> list[Counts]:
        return [counts_of(program, (str(size), str(seed), *own.options)) for seed in seeds]

    near = [runs(size, range(first, first + repetitions)) for size in layout.sizes]
    beyond = runs(layout.target_size, range(first + repetitions, first + 2 * repetitions))
    paths = sorted({path for some in (*near, beyond) for run in some for path, _ in run})
    names = sorted({path[-1] for path in paths})
    tree = CallTree(
        tuple(Region(name, name) for name in names),
        np.array([names.index(path[-1]) for path in paths]),
        np.array([paths.index(path[:-1]) if len(path) > 1 else -1 for path in paths]),
    )

    def values(some: list[Counts], metric: str) -> FloatArray:
        return np.array([[run.get((path, metric), 0) for run in some] for path in paths], dtype=np.float64)

    metrics = {metric: METRICS[metric] for metric in METRICS if any(key[1] == metric for key in beyond[0])}
    experiment = Experiment(
        own.name,
        layout.parameters,
        layout.points,
        tree,
        metrics,
        {metric: np.stack([values(some, metric) for some in near], axis=1) for metric in metrics},
    )
    return Measured(experiment, layout, {metric: values(beyond, metric) for metric in metrics})


@dataclass(frozen=True)
class Judged:
    """Whether a count is predicted within 1 %, within this or its random part, and whether its mean is in the interval.

    random: whether its standard deviation at the target is more than 1 %. undecided: whether the runs do not determine
    its value.
    """

    program: str
    path: int
    near: bool
    possible: bool
    covered: bool
    random: bool
    undecided: bool = False


def judge(found: Measured, verbose: bool) -> list[Judged]:
    """Model all counts that exist at the largest size, and compare the predictions with the target."""
    experiment, result = found.experiment, []
    layout = found.layout
    openly = undecided_of(experiment, layout.target_size, found.far) if len(layout.parameters) == 1 else {}
    analysis = analyze(experiment)
    point = dict(zip(layout.parameters, layout.target, strict=True))
    for metric in experiment.metrics:
        found_there = evaluate(analysis, point, metric)
        for path, prediction in enumerate(found_there.exclusive):
            truth = found.far[metric][path]
            if not experiment.values[metric][path, int(np.argmax(layout.sizes))].any():
                continue
            mean, random = float(truth.mean()), 2.0 * float(truth.std(ddof=1)) / np.sqrt(truth.size)
            off = abs(prediction.value - mean)
            near, possible = bool(off <= TOLERANCE * mean), bool(off <= max(TOLERANCE * mean, random))
            covered = prediction.lower <= mean + random and mean - random <= prediction.upper
            if verbose and not possible:
                where = experiment.tree.label(path)[-70:]
                print(f"{off / max(mean, 1):8.2%} (±{random / max(mean, 1):.2%}) {where} {metric}")
            spread = bool(truth.std(ddof=1) > TOLERANCE * mean)
            judged = Judged(experiment.name, path, near, possible, bool(covered), spread, (path, metric) in openly)
            result.append(judged)
    for (path, metric), own in openly.items() if verbose else ():
        print(f"undecided {experiment.tree.label(path)[-70:]} {metric}: {own.text}")
    return result


def summary(found: Sequence[Judged]) -> dict[str, float]:
    """Return the shares that the module docstring names, except shares of nothing."""
    paths: dict[tuple[str, int], list[Judged]] = {}
    for own in found:
        paths.setdefault((own.program, own.path), []).append(own)
    random = [any(own.random for own in counts) for counts in paths.values()]

    def share(flags: Iterable[bool]) -> float:
        known = list(flags)
        return round(sum(known) / len(known), 4)

    result = {
        "within": share(all(own.possible for own in counts) for counts in paths.values()),
        "within_1_percent": share(all(own.near for own in counts) for counts in paths.values()),
        "counts": share(own.possible for own in found),
        "covered": share(own.covered for own in found),
        "random": share(random),
    }
    apart = list(zip(paths.values(), random, strict=True))
    if not all(random):
        others = [counts for counts, other in apart if not other]
        result["within_others"] = share(all(own.near for own in counts) for counts in others)
        decided = [counts for counts in others if not any(own.undecided for own in counts)]
        result["decided"] = round(len(decided) / len(others), 4)
        if decided:
            result["decided_within"] = share(all(own.near for own in counts) for counts in decided)
        result["undecided"] = share(
            any(own.undecided for own in counts) and not all(own.near for own in counts) for counts in others
        )
    if any(random):
        result["random_covered"] = share(own.covered for counts, other in apart if other for own in counts)
    return result


def built(own: Program, folder: Path) -> Path:
    """Return the program, and build it in a folder if necessary."""
    program = folder / own.source
    if not program.exists():
        command: list[str | Path] = [native_file("quipu-c++"), "-O2", "-std=c++17"]
        command += [SOURCES / f"{own.source}.cpp", "-o", program]
        subprocess.run(command, check=True)
    return program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5, help="runs at each size (default 5)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed of the random numbers (default 0)")
    parser.add_argument("--verbose", action="store_true", help="print the models that miss")
    options = parser.parse_args()
    everything: list[Judged] = []
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for own in PROGRAMS:
            program = built(own, Path(folder))
            found = judge(measure(own, one_process(own), program, options.repetitions, options.seed), options.verbose)
            everything += found
            rows[own.name] = summary(found)
            print(f"{own.name:22} {rows[own.name]}", flush=True)
    literal = summary([own for own in everything if own.program in LITERAL])
    print(json.dumps({**summary(everything), "literal": literal, "programs": rows}))


if __name__ == "__main__":
    main()
