# SPDX-License-Identifier: Apache-2.0
"""Suggest measurements of a program: convert an experiment and its models to the input of strategies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..analysis import Analysis
from ..documents import number_of
from ..errors import ArgumentError, ModelingError
from ..experiment import Experiment, FloatArray, IntArray, with_all_repetitions
from ..models import of_time
from ..pmnf.model import Model
from ..pmnf.options import NoModel
from ..priors.rank_parameters import rank_parameters
from .posterior import MOST_PATHS
from .state import REPETITIONS, State, Strategy, Suggestion

SECONDS = 3600.0
LEAST_TIME = 1e-6
"""Lower limit of the predicted duration of a run (seconds)."""


@dataclass(frozen=True, eq=False)
class Search:
    """Suggestions for one experiment.

    - state: the input of the strategy.
    - spent: core hours of the previous runs at points of the search space.
    - whole: core hours of all points of the search space with all repetitions, by measured or predicted times.
    - suggestions: the next runs in order.
    - needed: if no run fits the budget, the smallest budget (core hours, including `spent`) that permits one; NaN if
      there are suggestions, or no possible runs.
    """

    state: State
    spent: float
    whole: float
    suggestions: tuple[Suggestion, ...]
    needed: float = math.nan

    def point(self, suggestion: Suggestion) -> dict[str, float]:
        """Return the values of the parameters at a suggested point, by name."""
        values = self.state.candidates[suggestion.candidate].tolist()
        return dict(zip(self.state.parameters, values, strict=True))


@dataclass(frozen=True)
class Budget:
    """A budget, to which previous runs count, too.

    amount: core hours; if `relative`, percent of the core hours of all points with all repetitions.
    """

    amount: float
    relative: bool

    @classmethod
    def parse(cls, text: str) -> Budget:
        """Return the budget of a text such as `10%` or `2.5` (core hours). Raises ArgumentError for other texts."""
        amount = number_of(text.strip().removesuffix("%").strip())
        if amount is None or amount <= 0:
            raise ArgumentError(f"budget {text!r}: write core hours such as 2.5, or a share of all points such as 10%")
        return cls(float(amount), text.strip().endswith("%"))

    def hours(self, whole: float) -> float:
        """Return the budget in core hours. whole: core hours of all points with all repetitions."""
        return self.amount / 100.0 * whole if self.relative else self.amount

    def text_of(self, hours: float, whole: float) -> str:
        """Return a number of core hours as the text of a budget of the same kind, rounded up to three digits."""
        amount = 100.0 * hours / whole if self.relative else hours
        place = 10.0 ** (math.floor(math.log10(amount)) - 2)
        return f"{math.ceil(amount / place) * place:.3g}" + ("%" if self.relative else "")


def search(
    experiment: Experiment,
    analysis: Analysis,
    candidates: FloatArray,
    target: Mapping[str, float],
    strategy: Strategy,
    budget: Budget,
    batch: int,
    ranks: str | None = None,
    repetitions: int | None = None,
    oversubscribed: NDArray[np.bool_] | None = None,
) -> Search:
    """Return the runs that a strategy suggests for the prediction of the time at a target.

    - analysis: the models of the experiment.
    - candidates: (N, m), the points of the search space, with the parameters of the experiment as columns. Runs at
      other points are only used for the models.
    - target: the values of all parameters at the target.
    - batch: largest number of suggestions.
    - ranks: the parameter that is the number of ranks; "1" if all runs have one rank or the same number; default: found
      by its name or by the size of communicators.
    - repetitions: largest number of runs of one point; default: one for times simulated by effort (all runs are equal),
      otherwise REPETITIONS.
    - oversubscribed: (N,), whether ranks will share processors. In addition, candidates count as oversubscribed if a
      run with as many ranks, or fewer, was.

    Raises ModelingError if there are no times, the target does not fit, the parameter that is the number of ranks is
    unknown, or a number of ranks is not a whole number.
    """
    experiment, analysis = of_time(experiment, analysis)
    repetitions, place = _most_runs(experiment, repetitions), _place(experiment, target)
    column = _ranks_column(experiment, ranks)
    processes = _processes(experiment, candidates, column)
    measured = _at_candidates(experiment, candidates)  # exclusive times
    modeled = analysis.models("time")
    entries = [entry.model for entry in modeled]
    predicted = np.zeros(len(candidates))
    at_target = np.zeros(len(entries))
    for path, model in enumerate(entries):
        if isinstance(model, Model):
            predicted += np.maximum(_evaluated(model, candidates), 0.0)
            at_target[path] = max(float(_evaluated(model, place[None])[0]), 0.0)
    totals = _totals(measured)
    known = (~np.isnan(totals)).any(axis=1)
    predicted[known] = np.nanmean(totals[known], axis=1)
    costs = np.maximum(predicted, LEAST_TIME) * processes / SECONDS
    of_program = np.flatnonzero(~experiment.tree.start_and_end)
    paths = of_program[np.argsort(-at_target[of_program], kind="stable")[:MOST_PATHS]]
    models = tuple(entries[path] for path in paths.tolist())
    known_forms = [not modeled[path].is_from_time_alone for path in paths.tolist()]
    shared = _shared(experiment, candidates, column)
    if oversubscribed is not None:
        shared = shared | oversubscribed
    if shared.all():  # all points are oversubscribed, so their times must be used; notes of the models report this
        shared = np.zeros(len(candidates), dtype=bool)
    state = State(
        experiment.parameters,
        candidates,
        place,
        measured[paths],
        models,
        costs,
        repetitions,
        shared,
        known_forms,
        _with_effort(experiment, candidates),
        column,
    )
    spent = float((np.nansum(totals, axis=1) * processes).sum()) / SECONDS
    whole = float(costs.sum()) * repetitions
    left = budget.hours(whole) - spent
    found = tuple(strategy.suggest(state, left, batch))
    further = () if found else strategy.suggest(state, whole, 1)
    return Search(state, spent, whole, found, spent + further[0].cost if further else math.nan)


def all_measured(
    experiment: Experiment,
    candidates: FloatArray,
    target: Mapping[str, float],
    ranks: str | None = None,
    repetitions: int | None = None,
) -> Search | None:
    """Return a search without suggestions if all candidates have all repetitions, otherwise None.

    Fits no models. Arguments and errors as in `search`.
    """
    experiment = experiment.of_time
    repetitions, place = _most_runs(experiment, repetitions), _place(experiment, target)
    column = _ranks_column(experiment, ranks)
    processes = _processes(experiment, candidates, column)
    measured = _at_candidates(experiment, candidates)
    totals = _totals(measured)
    if ((~np.isnan(totals)).sum(axis=1) < repetitions).any():
        return None
    costs = np.maximum(np.nanmean(totals, axis=1), LEAST_TIME) * processes / SECONDS
    models = (NoModel("all points are measured"),) * len(measured)
    state = State(experiment.parameters, candidates, place, measured, models, costs, repetitions, ranks=column)
    spent = float((np.nansum(totals, axis=1) * processes).sum()) / SECONDS
    return Search(state, spent, float(costs.sum()) * repetitions, ())


def expected_costs(candidates: FloatArray) -> FloatArray:
    """Return assumed relative costs (N,) of candidates (N, m), for the first runs, when nothing has been measured.

    The time is assumed to be proportional to each parameter, so points with small values come first.
    """
    low = np.maximum(candidates.min(axis=0), 1e-300)
    result: FloatArray = np.prod(candidates / low, axis=1)
    return result


def _most_runs(experiment: Experiment, repetitions: int | None) -> int:
    """Return the largest number of runs of one point; 1 for times simulated by effort, because all runs are equal."""
    if repetitions is not None:
        return repetitions
    return 1 if experiment.exact_times else REPETITIONS


def _place(experiment: Experiment, target: Mapping[str, float]) -> FloatArray:
    """Return the target as a point (m,). Raises ModelingError if parameters do not match, or there are no times."""
    if "time" not in experiment.values:
        raise ModelingError(f"{experiment.name}: contains no times to predict; measure without --counts")
    if set(target) != set(experiment.parameters):
        raise ModelingError(
            f"the target needs a value for each of: {', '.join(experiment.parameters) or 'no parameter'}"
        )
    return np.array([float(target[name]) for name in experiment.parameters])


def _totals(measured: FloatArray) -> FloatArray:
    """Return the times (N, R) of whole runs at the candidates in seconds; NaN for runs that do not exist.

    measured: (paths, N, R), exclusive times of the call paths.
    """
    return np.where(np.isnan(measured).all(axis=0), np.nan, np.nansum(with_all_repetitions(measured), axis=0))


def _processes(experiment: Experiment, candidates: FloatArray, column: int | None) -> FloatArray:
    """Return the number of ranks (N,) at each candidate; 1 without a parameter for it.

    column: index of the parameter that is the number of ranks, None if there is none. Raises ModelingError for a number
    that is not whole or below 1.
    """
    if column is None:
        return np.ones(len(candidates))
    found: FloatArray = candidates[:, column]
    if len(wrong := found[(found != np.round(found)) | (found < 1.0)]):
        name = experiment.parameters[column]
        raise ModelingError(f"{name} is the number of ranks and must be a whole number, not {wrong[0]:g}")
    return found


def _ranks_column(experiment: Experiment, ranks: str | None) -> int | None:
    if ranks == "1":
        return None
    known = [ranks] if ranks else [name for name in experiment.parameters if name in rank_parameters(experiment)]
    if len(known) != 1 or known[0] not in experiment.parameters:
        raise ModelingError(
            f"{experiment.name}: which parameter is the number of ranks is not known: give --ranks NAME "
            f"({', '.join(experiment.parameters)}), or --ranks 1 if all runs have the same number"
        )
    return experiment.parameters.index(known[0])


def _shared(experiment: Experiment, candidates: FloatArray, column: int | None) -> NDArray[np.bool_]:
    """Return which candidates (N,) have at least as many ranks as a measured run whose ranks shared processors.

    column: index of the parameter that is the number of ranks; None if there is none. Then only the measured
    configurations themselves count.
    """
    points = experiment.points[~experiment.dedicated]
    if column is None or not len(points):
        return np.asarray((candidates[:, None] == points).all(axis=2).any(axis=1), dtype=bool)
    return np.asarray(candidates[:, column] >= points[:, column].min(), dtype=bool)


def _with_effort(experiment: Experiment, candidates: FloatArray) -> IntArray:
    """Return the indices of the candidates at which effort was counted (visits)."""
    if "visits" not in experiment.values:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(~np.isnan(_at_candidates(experiment, candidates, "visits")).all(axis=(0, 2)))


def _at_candidates(experiment: Experiment, candidates: FloatArray, metric: str = "time") -> FloatArray:
    """Return the values of a metric at the candidates, shape (paths, N, R); NaN where nothing was measured."""
    values = experiment.values[metric]
    result = np.full((values.shape[0], len(candidates), values.shape[2]), np.nan)
    rows = {tuple(point): number for number, point in enumerate(candidates.tolist())}
    for column, point in enumerate(experiment.points.tolist()):
        if (row := rows.get(tuple(point))) is not None:
            result[:, row] = values[:, column]
    return result


def _evaluated(model: Model, points: FloatArray) -> FloatArray:
    """Return the values of a model at points (N, m); 0 at points at which it is not defined."""
    try:
        return model.evaluate(points)
    except ModelingError:
        if len(points) == 1:
            return np.zeros(1)
        return np.concatenate([_evaluated(model, point[None]) for point in points])
