# SPDX-License-Identifier: Apache-2.0
"""Compare campaigns that choose their runs with the full matrix, for the examples as applications.

    make bench-selection_campaign [ARGS="--quick"]

The examples run in SMPI at all points of p and n, and at a larger point that is held back. The time of computation is
effort × rate, so other load on this machine has no effect. Four repetitions of each point get independent uniform noise
of ±5 % in the time of each call path. The noise is drawn several times (--seeds).

The benchmark then repeats the search of a campaign: it takes each batch of chosen runs from these runs, makes new
models, and continues until the budget is spent. A second search knows the effort at all points in advance. Finished
runs are stored (--folder) and not repeated.

The last line is one JSON object, by application: `full` (the full matrix), `b10` (10 % of the core hours of all runs)
and `effort_b2` (2 %, with known effort). Figures are means over the draws:

- `error`: error of the predicted time at the held-back point (%). `largest`: the largest of these errors.
- `kernels`: mean of the errors of the stated regions and operations.
- `hours`: spent core hours. `saved`: saved part of the core hours of the full matrix (%).
- `forms_known`: the error if only the coefficients are unknown, a limit for any choice of runs. The forms are the
  models of the full matrix without noise. They are fitted to the measurements of the campaign. A form with many terms
  or with negative terms only has one unknown factor.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from modeling_sets import Floats
from numpy.typing import NDArray
from priors_application_runs import FULL, QUICK, Application, Runs, load, measure
from priors_programs import build_example, call
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.design import STRATEGIES
from quipu.modeling.design.baseline import baseline
from quipu.modeling.design.program import Budget, expected_costs, search
from quipu.modeling.experiment import Experiment
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.options import DEFAULT
from quipu.modeling.priors.fit import MOST_COLUMNS, fit_where
from quipu.modeling.priors.measured import centred, one_by_one
from quipu.modeling.priors.prior import Prior

Counts = NDArray[np.int64]
BATCH = 4
TIMES = ("time", "wait_time")
NOISE, REPETITIONS = 0.05, 4
RATES = "computation.rates"
COMPUTE = ("--compute", "effort", "--rates", RATES)


def fit_rates(application: Application, folder: Path) -> None:
    """Fit the rates (time per effort) to runs of one rank on this machine, if they are not fitted yet."""
    place = folder / application.name
    if (place / RATES).exists():
        return
    native = place / "native"
    build_example(application.name, native, "quipu-mpi")
    for n in application.n[1::2]:
        launch = ("mpirun", "-n", 1, f"./{application.name}", n, *application.arguments)
        call(("quipu", "run", "--rep", 5, "--param", f"n={n}", "-o", "one", "--", *launch), native)
    call(("quipu", "rates", native / "one", "-o", place / RATES), native)


def with_noise(runs: Runs, seed: int) -> Runs:
    """Return the runs with repetitions that have noise; times and waiting of a run have the same."""
    experiment = runs.experiment
    shape = (*experiment.values["time"].shape[:2], REPETITIONS)
    factors = 1.0 + NOISE * np.random.default_rng(seed).uniform(-1.0, 1.0, shape)
    values = {
        name: experiment.values[name][:, :, :1] * (factors if name in TIMES else 1.0) for name in experiment.values
    }
    return replace(runs, experiment=replace(experiment, values=values))


def part_of(experiment: Experiment, counts: Counts, effort_known: bool) -> Experiment:
    """Return the measurements with this number of runs at each point (C,); effort of all points if it is known."""
    values = {}
    for name, own in experiment.values.items():
        limit = counts if name in TIMES or not effort_known else np.full_like(counts, own.shape[2])
        values[name] = np.where(np.arange(own.shape[2]) < limit[:, None], own, np.nan)
    rows = np.ones(len(counts), dtype=bool) if effort_known else counts > 0
    return replace(
        experiment,
        points=experiment.points[rows],
        values={k: v[:, rows] for k, v in values.items()},
        excess={k: v[:, rows] for k, v in experiment.excess.items()},
    )


def campaign(runs: Runs, share: float, effort_known: bool) -> tuple[Experiment, Counts]:
    """Return the measurements of a campaign with a share of the budget in %, and the number of runs at each point."""
    experiment = runs.experiment
    points = experiment.points
    repetitions = experiment.values["time"].shape[2]
    target = dict(zip(experiment.parameters, map(float, runs.application.tests[0]), strict=True))
    strategy = next(iter(STRATEGIES.values()))()
    counts = np.zeros(len(points), dtype=np.int64)
    counts[baseline(points, expected_costs(points))[: 1 if effort_known else BATCH]] = 1
    while True:
        measured = part_of(experiment, counts, effort_known)
        found = search(
            measured, analyze(measured), points, target, strategy, Budget(share, True), BATCH, "p", repetitions
        )
        if not found.suggestions:
            return measured, counts
        for suggestion in found.suggestions:
            counts[suggestion.candidate] += 1


def outcome(runs: Runs, forms: Analysis, measured: Experiment, counts: Counts) -> dict[str, float]:
    """Return errors at the held-back point in %, core hours, and the savings in % of the full matrix.

    forms: the models of the full matrix without noise.
    """
    analysis = analyze(measured)
    place = [float(x) for x in runs.application.tests[0]]
    predicted = np.array([sum(_predicted(analysis, path, place) for path in own.paths) for own in runs.kernels])
    known = _coefficients(measured, forms, place)
    known_total = sum(known.get(path, 0.0) for own in runs.kernels for path in own.paths)
    there = np.nanmean(runs.tests[:, 0], axis=1)
    hours = np.nansum(runs.experiment.values["time"], axis=0) * runs.experiment.points[:, :1] / 3600.0
    spent = float(hours[np.arange(hours.shape[1]) < counts[:, None]].sum())
    return {
        "error": 100.0 * abs(float(predicted.sum() / there.sum()) - 1.0),
        "forms_known": 100.0 * abs(float(known_total / there.sum()) - 1.0),
        "kernels": 100.0 * float(np.mean(np.abs(predicted / there - 1.0))),
        "hours": spent,
        "saved": 100.0 * (1.0 - spent / float(hours.sum())),
    }


def _predicted(analysis: Analysis, path: int, place: list[float]) -> float:
    model = analysis.models("time")[path].model
    return model.predict(place).value if isinstance(model, Model) else 0.0


def _coefficients(measured: Experiment, forms: Analysis, place: list[float]) -> dict[int, float]:
    """Return the predictions of models of these forms, fitted to the measurements, by call path.

    A form with more columns than can be fitted, or with a negative coefficient, only has a scale factor.
    """
    choices = {}
    for path, entry in enumerate(forms.models("time")):
        if isinstance(model := entry.model, Model) and (model.terms or model.constant):
            parts = [Model(model.parameters, 0.0, (term,)) for term in model.terms]
            parts += [Model(model.parameters, model.constant)] if model.constant else []
            negative = model.constant < 0 or any(term.coefficient < 0 for term in model.terms)
            columns = tuple(parts) if len(parts) <= MOST_COLUMNS and not negative else (replace(model, quality=None),)
            choices[path] = [Prior(columns, "", "", least=(0.0,) * len(columns))]
    repetitions = centred(measured.values["time"], DEFAULT)
    where = repetitions.centre > 0
    singles = one_by_one(measured.values["time"], DEFAULT)
    fits = fit_where(choices, measured.parameters, measured.points, repetitions, where, singles=singles)
    return {path: float(found.model.evaluate(np.array([place]))[0]) for path, found in fits.items()}


def results(runs: Runs, forms: Analysis) -> dict[str, dict[str, float]]:
    """Return the outcomes of the full matrix and of both campaigns."""
    times: Floats = runs.experiment.values["time"]
    everything = np.full(len(runs.experiment.points), times.shape[2], dtype=np.int64)
    return {
        "full": outcome(runs, forms, runs.experiment, everything),
        "b10": outcome(runs, forms, *campaign(runs, 10.0, False)),
        "effort_b2": outcome(runs, forms, *campaign(runs, 2.0, True)),
    }


def summary(outcomes: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the means of outcomes, and the largest error."""
    means = {name: float(np.mean([own[name] for own in outcomes])) for name in outcomes[0]}
    found = {"error": means["error"], "largest": max(own["error"] for own in outcomes), **means}
    return {name: float(f"{value:.3g}") for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two examples, fewer ranks")
    parser.add_argument("--applications", type=lambda text: text.split(","), help="some of the examples")
    parser.add_argument("--seeds", type=int, default=6, help="draws of the noise (6)")
    parser.add_argument("--folder", type=Path, default=Path("build/selection_campaign"))
    options = parser.parse_args()
    chosen = [own for own in (QUICK if options.quick else FULL) if own.name in (options.applications or [own.name])]
    applications = tuple(replace(own, repetitions=1) for own in chosen)
    for application in applications:
        fit_rates(application, options.folder)
    measure(applications, options.folder, COMPUTE)
    result = {}
    for application in applications:
        runs = load(application, options.folder)
        forms = analyze(runs.experiment)
        draws = [results(with_noise(runs, seed), forms) for seed in range(1, 1 + options.seeds)]
        found = {name: summary([draw[name] for draw in draws]) for name in draws[0]}
        result[application.name] = found
        for name, own in found.items():
            print(f"{application.name:12s} {name:10s} " + "  ".join(f"{key} {value:g}" for key, value in own.items()))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
