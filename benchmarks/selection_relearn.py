# SPDX-License-Identifier: Apache-2.0
"""Run the case study of the selection strategies: measurements of an application, with the largest point held back.

All regions are measured together. A strategy sees all regions, as `quipu suggest` does. The cost of a run is the time
of the first region (the whole program) × processes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from modeling_extrap import ask
from modeling_sets import Floats
from quipu.modeling.design import STRATEGIES, State
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.modeler import fit_models
from quipu.report.formats.detect import read_experiment
from selection_runs import NOTHING, TIME

BUDGETS = (10, 20, 30, 50, 100)


@dataclass(frozen=True, eq=False)
class Case:
    """Names of parameters, points (C, m), the held-back one (m,), times of regions (K, C, R) and there (K,)."""

    names: tuple[str, ...]
    points: Floats
    target: Floats
    values: Floats
    there: Floats


def read_case(file: Path) -> Case:
    """Return the times of all regions; the largest point is held back."""
    experiment = read_experiment(file)
    times = experiment.values["time"]
    largest = int(experiment.points.prod(axis=1).argmax())
    others = np.arange(len(experiment.points)) != largest
    return Case(
        tuple(experiment.parameters),
        experiment.points[others],
        experiment.points[largest],
        times[:, others],
        np.nanmean(times[:, largest], axis=1),
    )


def measured_by(case: Case, strategy: str, share: float) -> Floats:
    """Return the measurements of a strategy for a share of the budget, (K, C, R), NaN for the rest."""
    chooser = STRATEGIES[strategy]()
    # The first region is the whole program.
    costs = case.values.mean(axis=2)[0] * case.points[:, case.names.index("p")]
    budget = share / 100.0 * float(costs.sum()) * case.values.shape[2] * (1.0 + 1e-12)
    values = np.full(case.values.shape, np.nan)
    while True:
        models = tuple(fit_models(case.points, values, TIME, case.names))
        repetitions = case.values.shape[2]
        state = State(case.names, case.points, case.target, values, models, costs, repetitions)
        chosen = chooser.suggest(state, budget, max(int(state.counts.sum()) // 2, 1))
        if not chosen:
            return values
        for suggestion in chosen:
            place = suggestion.candidate, suggestion.repetition - 1
            values[:, place[0], place[1]] = case.values[:, place[0], place[1]]
            budget -= suggestion.cost


def case_study(file: Path, strategies: Sequence[str], python: Path | None = None) -> dict[str, dict[str, float]]:
    """Return by budget and strategy the % of regions predicted within ±10 % at the held-back point.

    python: of an environment with Extra-P, whose shares are added as `NAME extrap`.
    """
    case = read_case(file)
    found: dict[str, dict[str, float]] = {}
    for budget in BUDGETS:
        found[f"b{budget}"] = {}
        for strategy in strategies:
            values = measured_by(case, strategy, 100.0 if strategy == "full" else budget)
            models = fit_models(case.points, values, TIME, case.names)
            predicted = [
                model.predict(case.target.tolist()).value if isinstance(model, Model) else NOTHING for model in models
            ]
            found[f"b{budget}"][strategy] = _share(np.array(predicted), case)
            if python is not None:
                found[f"b{budget}"][f"{strategy} extrap"] = _share(_of_extrap(case, values, python), case)
    return found


def _share(predicted: Floats, case: Case) -> float:
    return round(100.0 * float(np.mean(np.abs(predicted - case.there) <= 0.1 * case.there)), 1)


def _of_extrap(case: Case, values: Floats, python: Path) -> Floats:
    rows = np.flatnonzero(~np.isnan(values[0, :, 0]))
    task = {
        "parameters": list(case.names),
        "points": case.points[rows].tolist(),
        "values": [[point[~np.isnan(point)].tolist() for point in region] for region in values[:, rows]],
        "targets": [case.target.tolist()],
    }
    return np.array([answer[0] for answer in ask(json.dumps({"relearn": task}), python)["relearn"]["predictions"]])
