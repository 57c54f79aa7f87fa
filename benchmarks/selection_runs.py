# SPDX-License-Identifier: Apache-2.0
"""Measure planted functions by strategies within budgets, and compute the errors of the models.

The functions of a task are fitted together. Budgets rise: at each budget, a strategy continues with the measurements of
the previous budget, like a campaign with a larger budget.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from modeling_extrap import ask
from modeling_sets import Floats
from numpy.typing import NDArray
from quipu.modeling.design import STRATEGIES, State, Strategy
from quipu.modeling.design.orders import RandomRuns
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.modeler import fit_models
from quipu.modeling.pmnf.options import NoModel
from selection_functions import NAMES, REPETITIONS, Planted, drawn, grid, noisy, published

Counts = NDArray[np.int64]
TIME = Metric("time", "s", "cost")
# Budgets in % of the cost of all points with four repetitions.
BUDGETS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
WHOLE = BUDGETS[-1]
REFITS = 2  # models are fitted again when the number of measurements has grown by half
UNMODELED = NoModel("this strategy does not look at models")
LOOK_AT_MODELS = ("posterior",)
LOOK_AT_VALUES = ("gpr", "hybrid", "bayes")
NOTHING = 1e9  # the error of a function without a model


@dataclass(frozen=True)
class Task:
    """Some functions with one strategy.

    noise, budgets: in %, ascending; kind: of the noise; data: folder of functions, "" to draw them.
    """

    parameters: int
    noise: float
    budgets: tuple[float, ...]
    strategy: str
    seed: int
    first: int
    count: int
    kind: str = "uniform"
    data: str = ""

    @property
    def key(self) -> str:
        """The task as it is named in the file of results."""
        part = f"{self.seed} {self.first}+{self.count} {self.kind} {self.data}".rstrip()
        budgets = "+".join(f"{budget:g}" for budget in self.budgets)
        return f"m{self.parameters}_n{self.noise:g}_b{budgets} {self.strategy} {part}"

    @property
    def functions(self) -> list[Planted]:
        """Return the planted functions."""
        last = self.first + self.count
        if self.data:
            return published(Path(self.data) / f"gpr_functions_m{self.parameters}.json", last)[self.first :]
        return drawn(self.parameters, last, self.seed)[self.first :]

    def available(self, functions: Sequence[Planted]) -> Floats:
        """Return all repetitions of all points that could be measured, (functions, points, repetitions)."""
        return np.array(
            [
                noisy(
                    own.values,
                    self.noise / 100,
                    self.kind,
                    (self.seed, self.parameters, number, round(100 * self.noise)),
                )
                for number, own in enumerate(functions, self.first)
            ]
        )

    def strategy_of(self, number: int) -> Strategy:
        """Return the strategy for one of the functions."""
        return RandomRuns(number) if self.strategy == "random" else STRATEGIES[self.strategy]()


def measured(available: Floats, counts: Counts) -> Floats:
    """Return the repetitions that were measured (the first `counts`), NaN for the others."""
    return np.where(np.arange(available.shape[-1]) < counts[..., None], available, np.nan)


def models_of(points: Floats, values: Floats) -> list[Model | NoModel]:
    """Return the models of functions measured at some of the points each."""
    return list(fit_models(points, values, TIME, NAMES[: points.shape[1]]))


def within(
    costs: Floats,
    available: Floats,
    points: Floats,
    target: Floats,
    strategies: Sequence[Strategy],
    name: str,
    shares: Sequence[float],
) -> list[Counts]:
    """Return how often strategies measured each point, (functions, points), at the end of each share of the budget.

    costs: (functions, points) of one run; name: of the strategies; shares: in % of all points with all repetitions,
    ascending; 100 % are all points, independent of the order.
    """
    counts = np.zeros(costs.shape, dtype=np.int64)
    spent = np.zeros(len(costs))
    whole = costs.sum(axis=1) * available.shape[2]
    names = tuple(NAMES[: points.shape[1]])
    result = []
    for share in shares:
        if share >= WHOLE:
            result.append(np.full_like(counts, available.shape[2]))
            continue
        # The tolerance is only the rounding error of a sum over all points.
        budget = share / 100.0 * whole * (1.0 + 1e-12)
        going = np.arange(len(costs))
        while going.size:
            values = measured(available[going], counts[going])
            modeled = name in LOOK_AT_MODELS
            known = models_of(points, values) if modeled else [UNMODELED] * going.size
            still = []
            for function, own, model in zip(going.tolist(), values, known, strict=True):
                state = State(names, points, target, own[None], (model,), costs[function])
                looked = modeled or name in LOOK_AT_VALUES
                batch = max(int(counts[function].sum()) // REFITS, 1) if looked else available[0].size
                chosen = strategies[function].suggest(state, float(budget[function] - spent[function]), batch)
                for suggestion in chosen:
                    counts[function, suggestion.candidate] += 1
                    spent[function] += suggestion.cost
                still.append(bool(chosen))
            going = going[still]
        assert (spent <= budget).all()
        result.append(counts.copy())
    return result


def done(task: Task) -> tuple[str, dict[str, Any]]:
    """Return by budget the numbers of runs of each point, as digits, and the relative error at the target."""
    points, target = grid(task.parameters)
    functions = task.functions
    available = task.available(functions)
    if task.strategy == "full":  # the whole matrix, independent of the budget, as reference
        counts = [np.full(available.shape[:2], REPETITIONS, dtype=np.int64)]
        budgets: Sequence[float] = (WHOLE,)
    else:
        costs = np.array([own.values for own in functions]) * points[:, 0]
        strategies = [task.strategy_of(number) for number in range(task.first, task.first + task.count)]
        passed = [own for own in BUDGETS if own <= task.budgets[-1]]
        steps = within(costs, available, points, target, strategies, task.strategy, passed)
        budgets, counts = task.budgets, [steps[passed.index(own)] for own in task.budgets]
    result: dict[str, Any] = {}
    for budget, by_function in zip(budgets, counts, strict=True):
        known = models_of(points, measured(available, by_function))
        errors = [_error(model, target, function.far) for model, function in zip(known, functions, strict=True)]
        digits = ["".join(map(str, row)) for row in by_function]
        result[f"{budget:g}"] = {"errors": errors, "counts": digits}
    return task.key, result


def _error(model: Model | NoModel, target: Floats, true: float) -> float:
    if not isinstance(model, Model):
        return NOTHING
    return min(abs(model.predict(target.tolist()).value / true - 1.0), NOTHING)


def with_extrap(task: Task, counts: Sequence[str], python: Path) -> list[float]:
    """Return the relative errors of Extra-P's models of the same measurements."""
    points, target = grid(task.parameters)
    functions = task.functions
    available = task.available(functions)
    tasks = {}
    for number, digits in enumerate(counts):
        rows = [(place, int(digit)) for place, digit in enumerate(digits) if digit != "0"]
        if rows:
            tasks[str(number)] = {
                "parameters": list(NAMES[: task.parameters]),
                "points": [points[place].tolist() for place, _ in rows],
                "values": [[available[number, place, :count].tolist() for place, count in rows]],
                "targets": [target.tolist()],
            }
    answers = ask(json.dumps(tasks), python) if tasks else {}
    errors = [NOTHING] * len(counts)
    for name, answer in answers.items():
        error = abs(answer["predictions"][0][0] / functions[int(name)].far - 1.0)
        errors[int(name)] = error if math.isfinite(error) else NOTHING
    return errors
