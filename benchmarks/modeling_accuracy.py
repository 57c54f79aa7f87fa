# SPDX-License-Identifier: Apache-2.0
"""Measure how often models predict within ±5 % one step out, compared with Extra-P 4.2.5 and the true form.

    make bench-modeling_accuracy [ARGS="--functions 100 --seed 7 --data FOLDER"]

Reference sets come from a folder. Other sets are planted functions: noise of 1, 2, 5 and 10 %, one to four parameters,
on dense grids and on lines only. The true form is the true function with fitted coefficients.

The last line is one JSON object:

- `accuracy` {set: {quipu, extrap, true_form}}: predictions within ±5 % of the true value (%).
- `exponents` {set: {quipu, extrap}}: models whose leading exponents are all correct (%). `within_quarter`: models whose
  leading powers are all correct up to 1/4, with any logarithms (%).
- `coverage` {set}: true values in the 90 % interval (%).
- `summary`: a summary of these figures.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import numpy as np
from modeling_extrap import Answers, interpreter, model_with_extrap
from modeling_sets import Exponents, Floats, PlantedSet, fresh_set, reference_sets
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import Model, fit_models

NOISE = (0.01, 0.02, 0.05, 0.1)
TIME = Metric("time", "s", "cost")


def share(predictions: Floats, truth: Floats) -> float:
    """Return the share of predictions within 5 % (%)."""
    return round(100 * float((np.abs(predictions / truth - 1) <= 0.05).mean()), 1)


def exponents(leads: list[list[Exponents]], truth: list[list[Exponents]], tolerance: Fraction | None) -> float:
    """Return the share of functions whose leading exponents are all correct (%).

    tolerance: largest error of a leading power, with any logarithm; None: powers and logarithms must be equal.
    """

    def good(own: list[Exponents], true: list[Exponents]) -> bool:
        pairs = zip(own, true, strict=True)
        return all(a == b if tolerance is None else abs(a[0] - b[0]) <= tolerance for a, b in pairs)

    return round(100 * float(np.mean([good(a, b) for a, b in zip(leads, truth, strict=True)])), 1)


def model_with_quipu(own: PlantedSet) -> tuple[Answers, float]:
    """Return the answers of Quipu, and the share of its 90 % intervals that contain the true value (%)."""
    models = [m for m in fit_models(own.points, own.values, TIME, own.parameters) if isinstance(m, Model)]
    predictions = [model.predict(own.target.tolist()) for model in models]
    inside = [p.lower <= true <= p.upper for p, true in zip(predictions, own.far, strict=True)]
    leads = [[model.lead(name) for name in own.parameters] for model in models]
    return Answers(np.array([[p.value] for p in predictions]), leads, 0.0), round(100 * float(np.mean(inside)), 1)


def sets_of(options: argparse.Namespace) -> Iterable[PlantedSet]:
    """Yield the sets, one at a time."""
    if options.data:
        for own in reference_sets(options.data):
            yield own
            if len(own.parameters) > 1:
                yield own.lines_only()
    for parameters in range(1, options.parameters + 1):
        for noise in NOISE:
            fresh = fresh_set(parameters, noise, options.functions, options.seed)
            yield fresh
            if parameters > 1:
                yield fresh.lines_only()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of sets to take before the fresh ones")
    parser.add_argument("--functions", type=int, default=1000, help="functions per fresh set")
    parser.add_argument("--parameters", type=int, default=4, help="fresh sets of up to so many parameters")
    parser.add_argument("--seed", type=int, default=20240817, help="seed of the fresh sets")
    parser.add_argument("--extrap-python", type=Path, help="Python of an environment with Extra-P")
    parser.add_argument("--answers", type=Path, help="keep what Extra-P answered in this folder, to go on from there")
    parser.add_argument("--no-extrap", action="store_true", help="Quipu and the bound only")
    options = parser.parse_args()
    python = None if options.no_extrap else options.extrap_python or interpreter()
    result: dict[str, dict[str, dict[str, float]]] = {"accuracy": {}, "exponents": {}, "within_quarter": {}}
    coverage: dict[str, float] = {}
    for own in sets_of(options):
        mine, coverage[own.name] = model_with_quipu(own)
        answers = {"quipu": mine}
        if python is not None:
            answers |= {"extrap": model_with_extrap([own], python, options.answers)[own.name]}
        row = {name: share(answer.predictions[:, 0], own.far) for name, answer in answers.items()}
        result["accuracy"][own.name] = row | {"true_form": share(own.true_form_predictions(), own.far)}
        for key, tolerance in (("exponents", None), ("within_quarter", Fraction(1, 4))):
            result[key][own.name] = {n: exponents(a.leads, own.leads, tolerance) for n, a in answers.items()}
        text = "  ".join(f"{key}: {result[key][own.name]}" for key in result)
        print(f"{own.name:14} {len(own.far):5}  {text}  coverage: {coverage[own.name]}", flush=True)
    print(json.dumps({**result, "coverage": coverage, "summary": summary(result["accuracy"])}))


def summary(accuracy: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the mean and the smallest lead over Extra-P in percentage points, and the closed part of the gap."""
    rows = [row for row in accuracy.values() if "extrap" in row]
    if not rows:
        return {}
    leads = [row["quipu"] - row["extrap"] for row in rows]
    closed = [
        lead / (row["true_form"] - row["extrap"])
        for lead, row in zip(leads, rows, strict=True)
        if row["true_form"] > row["extrap"]
    ]
    return {
        "mean_lead": round(float(np.mean(leads)), 2),
        "least_lead": round(min(leads), 2),
        "mean_gap_closed": round(float(np.mean(closed)), 3) if closed else 1.0,
        "least_gap_closed": round(min(closed), 3) if closed else 1.0,
    }


if __name__ == "__main__":
    main()
