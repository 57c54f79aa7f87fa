"""How good models are that are made from a part of the measurements: strategies, budgets, noise, and two modelers.

    make bench-selection_study [ARGS="--quick"]
    make bench-selection_study ARGS="--cases m2_n5_b10,m3_n5_b5 --functions 1000 --seeds 3 --extrap"

Functions are drawn for each seed, or taken from a folder of the published evaluation (--data). Noise is independent
for each function, point and repetition. A run costs runtime × processes; 100 % of the budget are all points with four
repetitions; no strategy spends more than the budget, to the last digit. The functions' costs are known to the
strategies, as in the published evaluation. A case is named m2_n5_b10 for two parameters, ±5 % of noise and 10 % of
the budget.

What is done is kept in a folder (--folder) and not repeated. The last line is one JSON object: `share` {case:
{strategy: % of the functions whose prediction at the target, one step out in each parameter, is within ±5 %}} with
Quipu's modeler, `share_extrap` the same with Extra-P, `interval` half the width of the 95 % confidence interval of
each share, `suggest_seconds` for 10,000 candidates.
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
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from modeling_extrap import ONE_THREAD, ask, interpreter
from modeling_sets import Floats
from quipu.modeling.design import STRATEGIES, State
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.modeler import NoModel, fit_models
from selection_functions import NAMES, REPETITIONS, Planted, drawn, grid, noisy, published

TIME = Metric("time", "s", "cost")
WITHIN = (5, 10, 15, 20)
CASE = re.compile(r"m(\d)_n([\d.]+)_b([\d.]+)$")
# The cases that the project has bounds for.
CASES = ("m2_n5_b10", "m3_n5_b5", "m4_n1_b0.5", "m2_n10_b20")
FULL = tuple(
    f"m{m}_n{n}_b{b:g}" for m in (2, 3, 4) for n in (1, 2, 5, 10) for b in (0.1, 0.5, 1, 2, 5, 10, 20, 50, 100)
)
FUNCTIONS = {2: 1000, 3: 300, 4: 100}
CHUNK = 20  # functions a task
REFITS = 4  # the models are made anew when a quarter more was measured


@dataclass(frozen=True)
class Task:
    """Some functions of a case, with one strategy."""

    case: str
    strategy: str
    seed: int
    first: int
    count: int
    mixed: bool
    data: str

    @property
    def key(self) -> str:
        """The task as it is named in the file of results."""
        kind = "mixed" if self.mixed else "uniform"
        return f"{self.case} {self.strategy} {self.seed} {self.first}+{self.count} {kind} {self.data}".rstrip()


def functions(task: Task, parameters: int) -> list[Planted]:
    if task.data:
        file = Path(task.data) / f"gpr_functions_m{parameters}.json"
        return published(file, task.first + task.count)[task.first :]
    return drawn(parameters, task.first + task.count, task.seed)[task.first :]


def measure(function: Planted, task: Task, number: int) -> Floats:
    """Return the repetitions (N, 4) that the strategy had measured when the budget was spent; NaN: not measured."""
    found = CASE.match(task.case)
    assert found is not None
    parameters, noise, share = int(found[1]), float(found[2]) / 100, float(found[3]) / 100
    points, target = grid(parameters)
    kind = "mixed" if task.mixed else "uniform"
    available = noisy(function.values, noise, kind, (task.seed, parameters, number, round(1e4 * noise)))
    costs = function.values * points[:, 0]
    budget = share * float(costs.sum()) * REPETITIONS
    measured = np.full(available.shape, np.nan)
    strategy = STRATEGIES[task.strategy]()
    names = tuple(NAMES[:parameters])
    while True:
        rows = np.flatnonzero(~np.isnan(measured[:, 0]))
        known = fit_models(points[rows], measured[None, rows], TIME, names) if len(rows) else [NoModel("not measured")]
        state = State(names, points, target, measured[None], tuple(known), costs)
        # No more than the rounding of a sum over all points.
        batch = max(int(state.counts.sum()) // REFITS, 1)
        chosen = strategy.suggest(state, budget * (1 + 1e-12), batch)
        if not chosen:
            return measured
        for suggestion in chosen:
            measured[suggestion.candidate, suggestion.repetition - 1] = available[
                suggestion.candidate, suggestion.repetition - 1
            ]
            budget -= suggestion.cost


def done(task: Task) -> tuple[str, list[dict[str, Any]]]:
    """Return per function the relative error at the target, the runs, and the data as Extra-P takes them."""
    found = CASE.match(task.case)
    assert found is not None
    parameters = int(found[1])
    points, target = grid(parameters)
    names = tuple(NAMES[:parameters])
    result = []
    for number, function in enumerate(functions(task, parameters), task.first):
        measured = measure(function, task, number)
        rows = np.flatnonzero(~np.isnan(measured[:, 0]))
        model = fit_models(points[rows], measured[None, rows], TIME, names)[0] if len(rows) else NoModel("nothing")
        error = math.inf
        if isinstance(model, Model):
            error = abs(model.predict(target.tolist()).value / function.far - 1.0)
        runs = [[index, [v for v in measured[index].tolist() if not math.isnan(v)]] for index in rows.tolist()]
        result.append({"error": min(error, 1e9), "runs": runs, "far": function.far})
    return task.key, result


def with_extrap(case: str, found: list[dict[str, Any]], python: Path) -> list[float]:
    """Return the relative errors of Extra-P's models of the same measurements."""
    match = CASE.match(case)
    assert match is not None
    parameters = int(match[1])
    points, target = grid(parameters)
    tasks = {
        str(number): {
            "parameters": list(NAMES[:parameters]),
            "points": [points[index].tolist() for index, _ in entry["runs"]],
            "values": [[values for _, values in entry["runs"]]],
            "target": target.tolist(),
        }
        for number, entry in enumerate(found)
        if entry["runs"]
    }
    answers = ask(json.dumps(tasks), python)
    return [
        abs(answers[str(number)]["predictions"][0] / entry["far"] - 1.0) if str(number) in answers else math.inf
        for number, entry in enumerate(found)
    ]


def suggest_seconds() -> float:
    """Return how long a suggestion of the default strategy takes in a search space of 10,000 points."""
    points = np.array(list(product(range(1, 101), range(10, 1010, 10))), dtype=float)
    true = 3.0 + 0.2 * points[:, 0] + 1e-3 * points[:, 1] ** 1.5 * np.log2(1 + points[:, 0])
    rows = np.flatnonzero((points[:, 0] <= 5) & (points[:, 1] <= 50))
    random = np.random.default_rng(1)
    values = np.full((1, len(points), REPETITIONS), np.nan)
    values[0, rows, :2] = true[rows, None] * (1 + 0.05 * random.uniform(-1, 1, (len(rows), 2)))
    models = tuple(fit_models(points[rows], values[:, rows], TIME, ("p", "n")))
    state = State(("p", "n"), points, np.array([200.0, 2000.0]), values, models, true * points[:, 0])
    strategy = next(iter(STRATEGIES.values()))()
    started = time.perf_counter()
    chosen = strategy.suggest(state, 1e12, 1)
    assert chosen
    return time.perf_counter() - started


def tasks_of(options: argparse.Namespace) -> Iterator[Task]:
    for seed in range(options.seed, options.seed + options.seeds):
        for case in options.cases:
            found = CASE.match(case)
            if found is None:
                raise SystemExit(f"--cases {case}: write them like m2_n5_b10")
            count = options.functions or FUNCTIONS[int(found[1])]
            for strategy in options.strategies:
                for first in range(0, count, CHUNK):
                    yield Task(case, strategy, seed, first, min(CHUNK, count - first), options.mixed, options.data)


def known_results(file: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what is in the file of results; a line that an interruption cut off is done again."""
    known = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            key, result = json.loads(line)
        except json.JSONDecodeError:
            continue
        known[key] = result
    return known


def run(tasks: Iterable[Task], file: Path, jobs: int) -> dict[str, list[dict[str, Any]]]:
    """Return the results of all tasks by key; those that were done before are read."""
    known = known_results(file)
    left = [task for task in tasks if task.key not in known]
    file.parent.mkdir(parents=True, exist_ok=True)
    os.environ.update(ONE_THREAD)  # read when the workers load their libraries
    with file.open("a") as out, ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        for number, (key, result) in enumerate(pool.map(done, left), 1):
            known[key] = result
            out.write(json.dumps([key, result]) + "\n")
            out.flush()
            if number % 50 == 0:
                print(f"{number} of {len(left)} tasks", flush=True)
    return known


def percent(errors: list[float], within: int) -> float:
    return round(100.0 * float(np.mean(np.array(errors) <= within / 100)), 1)


def half_width(errors: list[float]) -> float:
    """Return half the width of the 95 % confidence interval of the share within ±5 % (Wilson), in percentage points."""
    count, share = len(errors), float(np.mean(np.array(errors) <= 0.05))
    z = 1.96
    return round(100.0 * z * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few functions of each case, for the test suite")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=list(CASES), help="such as m2_n5_b10")
    parser.add_argument("--all", action="store_true", help="all numbers of parameters, noise and budgets")
    parser.add_argument("--strategies", type=lambda text: text.split(","), default=list(STRATEGIES))
    parser.add_argument("--functions", type=int, help="of each case and seed (1000, 300, 100 for m = 2, 3, 4)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--mixed", action="store_true", help="noise of several distributions instead of uniform noise")
    parser.add_argument("--extrap", action="store_true", help="also model with Extra-P")
    parser.add_argument("--data", default="", help="folder with gpr_functions_m2.json … instead of drawn functions")
    parser.add_argument("--folder", type=Path, default=Path("build/selection_study"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.all:
        options.cases = list(FULL)
    if options.quick:
        options.functions = options.functions or 4
    tasks = list(tasks_of(options))
    results = run(tasks, options.folder / "results.jsonl", options.jobs)
    collected: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for task in tasks:
        collected[task.case, task.strategy] += results[task.key]
    python = interpreter() if options.extrap else None
    share: dict[str, dict[str, float]] = defaultdict(dict)
    interval: dict[str, dict[str, float]] = defaultdict(dict)
    extrap: dict[str, dict[str, float]] = defaultdict(dict)
    print("case         strategy    ±5 %   ±10 %  ±15 %  ±20 %   runs" + "   Extra-P ±5 %" * bool(python))
    for (case, strategy), found in collected.items():
        errors = [entry["error"] for entry in found]
        share[case][strategy], interval[case][strategy] = percent(errors, 5), half_width(errors)
        runs = float(np.mean([sum(len(values) for _, values in entry["runs"]) for entry in found]))
        line = f"{case:12s} {strategy:10s}" + "".join(f" {percent(errors, w):6.1f}" for w in WITHIN) + f" {runs:6.1f}"
        if python is not None:
            extrap[case][strategy] = percent(with_extrap(case, found, python), 5)
            line += f"   {extrap[case][strategy]:6.1f}"
        print(line, flush=True)
    seconds = round(suggest_seconds(), 3)
    print(json.dumps({"share": share, "share_extrap": extrap, "interval": interval, "suggest_seconds": seconds}))


if __name__ == "__main__":
    main()
