# SPDX-License-Identifier: Apache-2.0
"""Compare models from a part of the measurements: strategies, budgets, noise, and two modelers.

    make bench-selection_study [ARGS="--quick"]
    make bench-selection_study ARGS="--cases m2_n5_b10,m3_n5_b5 --functions 1000 --seeds 3 --extrap"

Functions are drawn for each seed, or taken from a folder of the published evaluation (--data). Noise is independent for
each function, point and repetition. The cost of a run is run time × processes. A budget of 100 % is the cost of all
points with four repetitions. No strategy spends more than its budget. As in the published evaluation, the strategies
know the costs of the functions. A case has a name such as m2_n5_b10: two parameters, ±5 % of noise, 10 % of the budget.
If no model can be made, the prediction counts as wrong. `full` is the whole matrix (100 %) in every case.

Finished parts are stored in a folder (--folder) and not repeated. --figures draws figures 5, 6 and 8 of the
publication, with the published curves (--published) for comparison.

The last line is one JSON object:

- `share` {case: {strategy}}: functions whose prediction at the target, one step out in each parameter, is within ±5 %,
  with Quipu's modeler (%). `share_extrap`: the same with Extra-P.
- `interval`: half the width of the 95 % confidence interval of each share.
- `affordable`: functions whose lines of all parameters fit the budget (%).
- `behind`: strategies whose interval is above the share of the first strategy, with the difference of the shares.
- `suggest_seconds`: CPU time of a suggestion among 10,000 candidates.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from modeling_extrap import ONE_THREAD, interpreter
from quipu.modeling.design import STRATEGIES, State
from quipu.modeling.design.baseline import baseline
from quipu.modeling.pmnf.modeler import fit_models
from selection_functions import REPETITIONS, grid
from selection_relearn import case_study, read_case
from selection_runs import BUDGETS, TIME, WHOLE, Task, done, with_extrap

WITHIN = (5, 10, 15, 20)
CASE = re.compile(r"m([234])_n([\d.]+)_b([\d.]+)$")
# The cases with bounds.
CASES = ("m2_n5_b10", "m3_n5_b5", "m4_n1_b0.5", "m2_n10_b20")
NOISES = (1, 2, 5, 10)
FULL = tuple(f"m{m}_n{n}_b{b:g}" for m in (2, 3, 4) for n in NOISES for b in BUDGETS)
CHUNK = 50  # functions per task
Errors = dict[str, dict[str, list[float]]]


def parts(case: str) -> tuple[int, float, str]:
    """Return parameters, noise and budget of a case; end the program for an invalid one."""
    found = CASE.match(case)
    if found is None or float(found[3]) not in BUDGETS:
        known = ", ".join(f"b{own:g}" for own in BUDGETS)
        raise SystemExit(f"--cases {case}: write them like m2_n5_b10, with 2 to 4 parameters and one of {known}")
    return int(found[1]), float(found[2]), f"{float(found[3]):g}"


def tasks_of(options: argparse.Namespace) -> Iterator[Task]:
    """Yield the tasks, all tasks of the first seed first."""
    for seed in range(options.seed, options.seed + options.seeds):
        together: dict[tuple[int, float], set[float]] = defaultdict(set)
        for parameters, noise, budget in map(parts, options.cases):
            together[parameters, noise].add(float(budget))
        for (parameters, noise), budgets in together.items():
            count = options.functions[parameters]
            for strategy in options.strategies:
                for first in range(0, count, CHUNK):
                    size = min(CHUNK, count - first)
                    kind = "mixed" if options.mixed else "uniform"
                    yield Task(
                        parameters, noise, tuple(sorted(budgets)), strategy, seed, first, size, kind, options.data
                    )


def known_results(file: Path) -> dict[str, Any]:
    """Return the content of a file of results; a line that an interruption cut off is computed again."""
    known = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            key, result = json.loads(line)
        except json.JSONDecodeError:
            continue
        known[key] = result
    return known


def run(work: Callable[[Any], tuple[str, Any]], left: Sequence[Any], file: Path, jobs: int) -> dict[str, Any]:
    """Return the results of tasks by key, and add them to a file as they come."""
    found: dict[str, Any] = {}
    if not left:
        return found
    file.parent.mkdir(parents=True, exist_ok=True)
    os.environ.update(ONE_THREAD)  # the workers read these variables when they load their libraries
    with file.open("a") as out, ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for number, (key, result) in enumerate(pool.map(work, left), 1):
            found[key] = result
            out.write(json.dumps([key, result]) + "\n")
            out.flush()
            print(f"{number} of {len(left)} tasks: {key}", flush=True)
    return found


def of_extrap(python: Path, work: tuple[str, Task, list[str]]) -> tuple[str, list[float]]:
    """Return the errors of Extra-P for the measurements of the first functions of a task."""
    key, task, counts = work
    return key, with_extrap(task, counts, python)


@cache
def least_shares(parameters: int, seed: int, count: int, data: str) -> tuple[float, ...]:
    """Return the part of the budget, in %, that one repetition of the lines takes for each function."""
    points, _ = grid(parameters)
    costs = [own.values * points[:, 0] for own in Task(parameters, 0.0, (), "", seed, 0, count, data=data).functions]
    return tuple(float(100.0 * own[baseline(points, own)].sum() / own.sum() / REPETITIONS) for own in costs)


def suggest_seconds() -> float:
    """Return the CPU seconds of a suggestion of 4 runs: 10,000 candidates of 4 parameters, 32 call paths."""
    points = np.array(list(product(range(1, 11), range(10, 110, 10), range(1, 11), range(2, 22, 2))), dtype=float)
    random = np.random.default_rng(1)
    size = random.uniform(1, 1000, (5, 32))
    true = np.array([a + b * points[:, 0] + c * points[:, 1] ** 1.5 + d * points[:, 2] + e * np.log2(points[:, 3])
                     for a, b, c, d, e in size.T])  # fmt: skip
    low = points.min(axis=0)
    rows = np.flatnonzero(((points > low).sum(axis=1) <= 1) & (points <= 5 * np.maximum(low, 2.0)).all(axis=1))
    values = np.full((32, len(points), REPETITIONS), np.nan)
    values[:, rows, :2] = true[:, rows, None] * (1 + 0.05 * random.uniform(-1, 1, (32, len(rows), 2)))
    names = ("p", "n", "k", "r")
    models = tuple(fit_models(points[rows], values[:, rows], TIME, names))
    state = State(names, points, 2.0 * points.max(axis=0), values, models, true.sum(axis=0) * points[:, 0])
    strategy = next(iter(STRATEGIES.values()))()
    started = time.process_time()
    chosen = strategy.suggest(state, 1e15, 4)
    assert len(chosen) == 4
    return time.process_time() - started


def percent(errors: Sequence[float], within: int) -> float:
    """Return the share of errors within this percentage, in %."""
    return round(100.0 * float(np.mean(np.array(errors) <= within / 100)), 1)


def half_width(errors: Sequence[float]) -> float:
    """Return half the width of the 95 % confidence interval of the share within ±5 % (Wilson), in percentage points."""
    count, share = len(errors), float(np.mean(np.array(errors) <= 0.05))
    z = 1.96
    return round(100.0 * z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count), 1)


def collected(options: argparse.Namespace, tasks: Sequence[Task], results: dict[str, Any]) -> Errors:
    """Return the errors of each case and strategy over all seeds."""
    found: Errors = defaultdict(lambda: defaultdict(list))
    for case in options.cases:
        parameters, noise, budget = parts(case)
        for task in tasks:
            if (task.parameters, task.noise) == (parameters, noise):
                own = results[task.key]
                found[case][task.strategy] += own[at(budget, own)]["errors"]
    return found


def at(budget: str, result: dict[str, Any]) -> str:
    """Return the budget whose result is used: the full one for strategies that always spend it."""
    return budget if budget in result else f"{WHOLE:g}"


def collected_extrap(options: argparse.Namespace, tasks: Sequence[Task], results: dict[str, Any]) -> Errors:
    """Return the errors of Extra-P of each case and strategy, of the first functions of each seed."""
    work: list[tuple[str, Task, list[str]]] = []
    place: list[tuple[str, str]] = []
    for case in options.cases:
        parameters, noise, budget = parts(case)
        for task in tasks:
            if (task.parameters, task.noise) == (parameters, noise) and task.first < options.extrap:
                where = at(budget, results[task.key])
                counts = results[task.key][where]["counts"][: options.extrap - task.first]
                work.append((f"{task.key} b{where} first {len(counts)}", task, counts))
                place.append((case, task.strategy))
    file = options.folder / "extrap.jsonl"
    known = known_results(file)
    left = {key: (key, task, counts) for key, task, counts in work if key not in known}
    known |= run(partial(of_extrap, interpreter()), list(left.values()), file, options.jobs)
    found: Errors = defaultdict(lambda: defaultdict(list))
    for (key, _, _), (case, strategy) in zip(work, place, strict=True):
        found[case][strategy] += known[key]
    return found


def behind(share: dict[str, float], interval: dict[str, float], first: str) -> dict[str, float]:
    """Return by how much other strategies are better than the first, if this exceeds their interval."""
    found = {
        name: round(own - share[first], 1)
        for name, own in share.items()
        if name not in (first, "full") and own - interval[name] > share[first]
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def shown(found: Errors, label: str) -> None:
    """Print a table of the shares within each bound."""
    print(f"{label:12s} strategy   " + " ".join(f" ±{within} %".rjust(7) for within in WITHIN))
    for case, strategies in found.items():
        for strategy, errors in strategies.items():
            print(f"{case:12s} {strategy:10s}" + " ".join(f"{percent(errors, within):7.1f}" for within in WITHIN))


def shares(found: Errors, within: int = 5) -> dict[str, dict[str, float]]:
    """Return the share of results within a number of %, by case and strategy."""
    return {case: {name: percent(errors, within) for name, errors in own.items()} for case, own in found.items()}


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few functions of each case, for the test suite")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=list(CASES), help="such as m2_n5_b10")
    parser.add_argument("--all", action="store_true", help="all numbers of parameters, noise and budgets")
    parser.add_argument("--strategies", type=lambda text: text.split(","), default=list(STRATEGIES))
    parser.add_argument("--functions", default="1000,300,100", help="of each case and seed, for m = 2, 3, 4, or of all")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--mixed", action="store_true", help="noise of several distributions instead of uniform noise")
    parser.add_argument("--extrap", type=int, nargs="?", const=10**9, default=0, metavar="FUNCTIONS",
                        help="also model with Extra-P, all functions or the first of each case and seed")  # fmt: skip
    parser.add_argument("--data", default="", help="folder with gpr_functions_m2.json … instead of drawn functions")
    parser.add_argument("--relearn", type=Path, help="measurements of RELeARN, as a case study")
    parser.add_argument("--published", type=Path, help="folder with the published results, for the figures")
    parser.add_argument("--figures", type=Path, help="folder for figures as PNG (needs matplotlib)")
    parser.add_argument("--folder", type=Path, default=Path("build/selection_study"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.strategies if name not in STRATEGIES]:
        raise SystemExit(f"--strategies {','.join(unknown)}: there are {', '.join(STRATEGIES)}")
    if options.all:
        options.cases = list(FULL)
    numbers = [int(text) for text in ("4" if options.quick else options.functions).split(",")]
    options.functions = dict(zip((2, 3, 4), numbers * 3 if len(numbers) == 1 else numbers, strict=True))
    return options


def main() -> None:
    options = options_of()
    tasks = list(tasks_of(options))
    file = options.folder / "results.jsonl"
    results = known_results(file)
    results |= run(done, [task for task in tasks if task.key not in results], file, options.jobs)
    errors = collected(options, tasks, results)
    extrap = collected_extrap(options, tasks, results) if options.extrap else {}
    shown(errors, "Quipu")
    if extrap:
        shown(extrap, "Extra-P")
    share = shares(errors)
    interval = {case: {name: half_width(own) for name, own in found.items()} for case, found in errors.items()}
    first = options.strategies[0]
    result: dict[str, Any] = {
        "share": share,
        "share_extrap": shares(extrap),
        "interval": interval,
        "affordable": affordable(options),
        "behind": {case: behind(share[case], interval[case], first) for case in share},
    }
    if options.relearn:
        result["relearn"] = case_study(options.relearn, options.strategies, interpreter() if options.extrap else None)
    if options.figures:
        from selection_figures import draw, planted_noise, ranges

        noises = planted_noise(NOISES, "mixed" if options.mixed else "uniform")
        if options.relearn:
            noises["RELeARN"] = np.concatenate([ranges(own) for own in read_case(options.relearn).values])
        draw(errors, extrap, options, noises)
    result["suggest_seconds"] = round(suggest_seconds(), 3)
    print(json.dumps(result))


def affordable(options: argparse.Namespace) -> dict[str, float]:
    """Return for each case the share of functions whose lines of all parameters fit the budget, in %."""
    result = {}
    for case in options.cases:
        parameters, _, budget = parts(case)
        count = options.functions[parameters]
        seeds: Iterable[int] = range(options.seed, options.seed + options.seeds)
        costs = [cost for seed in seeds for cost in least_shares(parameters, seed, count, options.data)]
        result[case] = round(100.0 * float(np.mean(np.array(costs) <= float(budget))), 1)
    return result


if __name__ == "__main__":
    main()
