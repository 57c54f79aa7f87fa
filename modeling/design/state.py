# SPDX-License-Identifier: Apache-2.0
"""The input and output of strategies that choose the next measurements, and the first runs of most strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelingError
from ..experiment import FloatArray, IntArray
from ..pmnf.model import Model
from ..pmnf.options import NoModel
from .baseline import baseline, has_lines, line_of, missing_of

REPETITIONS = 4
"""Default of the largest number of repetitions of a point. A fifth "provided only marginal benefits" (Ritter et al.,
section II)."""


@dataclass(frozen=True, eq=False)
class State:
    """The search space, its measurements, and their models. Raises ModelingError if shapes do not match.

    - parameters: m names. candidates: (N, m), the possible points, each once.
    - target: (m,), the point to predict.
    - values: (K, N, R), measured values of K call paths in up to R runs of a point; NaN: not measured.
    - models: of the K call paths.
    - costs: (N,), core hours of one run at each candidate. repetitions: largest number of runs of one point.
    - oversubscribed: (N,), whether ranks will share processors, so that times contain waiting for a processor; None:
      no candidate.
    - known_forms: (K,), whether the form of the model is known from other data than times, such as effort; None: for no
      call path.
    - with_effort: indices of the candidates with known effort, with or without times; None: no candidate.
    - ranks: column of the parameter that is the number of ranks; None if there is none.
    """

    parameters: tuple[str, ...]
    candidates: FloatArray
    target: FloatArray
    values: FloatArray
    models: tuple[Model | NoModel, ...]
    costs: FloatArray
    repetitions: int = REPETITIONS
    oversubscribed: NDArray[np.bool_] | None = None
    known_forms: Sequence[bool] | None = None
    with_effort: IntArray | None = None
    ranks: int | None = None

    def __post_init__(self) -> None:
        points, parameters = self.candidates.shape
        if parameters != len(self.parameters) or self.target.shape != (parameters,):
            raise ModelingError("the candidates and the target need one value for each parameter")
        if self.values.shape[:2] != (len(self.models), points) or self.costs.shape != (points,):
            raise ModelingError("values, models and costs do not fit the candidates")
        if not (np.isfinite(self.costs).all() and (self.costs > 0.0).all()):
            raise ModelingError("every candidate needs a cost above 0")

    @cached_property
    def counts(self) -> IntArray:
        """Return the number of previous runs (N,) of each candidate."""
        measured = (~np.isnan(self.values)).any(axis=0)
        return np.asarray(measured.sum(axis=1), dtype=np.int64)

    @cached_property
    def measured(self) -> IntArray:
        """Return the indices of the measured candidates."""
        return np.flatnonzero(self.counts)

    @cached_property
    def shared(self) -> NDArray[np.bool_]:
        """Return at which candidates (N,) times cannot be used, because ranks share processors."""
        return np.zeros(len(self.costs), dtype=bool) if self.oversubscribed is None else self.oversubscribed

    @property
    def follows_effort(self) -> bool:
        """Return whether the forms of all call paths follow from effort, measured on a line of each parameter."""
        known = self.known_forms is not None and len(self.known_forms) > 0 and all(self.known_forms)
        return known and self.with_effort is not None and has_lines(self.candidates, self.with_effort)

    def affordable(self, budget: float) -> NDArray[np.bool_]:
        """Return which candidates (N,) allow one more run within the budget (core hours) and `repetitions`."""
        return np.asarray((self.counts < self.repetitions) & (self.costs <= budget), dtype=bool)


@dataclass(frozen=True)
class Suggestion:
    """One suggested run.

    candidate: index of the point. repetition: number of the run of this point, from 1. cost: core hours. reason: a text
    for the user. gain: expected reduction of the variance of the prediction at the target by this run, after the
    previous suggestions, relative to the variance before them; NaN if the strategy does not compute it.
    """

    candidate: int
    repetition: int
    cost: float
    reason: str
    gain: float = float("nan")


class Strategy(Protocol):
    """Chooses the next measurements."""

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return up to `batch` runs in order, with at most `budget` core hours in total; [] if none is possible."""


def in_order(
    state: State,
    order: Sequence[int] | IntArray,
    reason: str,
    budget: float,
    batch: int,
    gain: float = float("nan"),
) -> list[Suggestion]:
    """Return the first `batch` runs of an order of candidates, up to the first run that exceeds the budget.

    order: indices of points, several times for several runs. Points that already have all repetitions are left out.
    """
    counts = state.counts.copy()
    chosen: list[Suggestion] = []
    for candidate in map(int, order):
        cost = float(state.costs[candidate])
        if len(chosen) == batch or cost > budget:
            break
        if counts[candidate] < state.repetitions:
            counts[candidate] += 1
            budget -= cost
            chosen.append(Suggestion(candidate, int(counts[candidate]), cost, reason, gain))
    return chosen


def of_lines(state: State, repetitions: int, budget: float, batch: int) -> list[Suggestion] | None:
    """Return the next runs of the lines of all parameters; None if all their points have this number of runs."""
    repetitions = min(repetitions, state.repetitions)
    missing = missing_of(baseline(state.candidates, state.costs), state.counts, repetitions)
    return in_order(state, missing, "of the line of a parameter", budget, batch) if missing else None


def of_ranks(state: State, budget: float, batch: int) -> list[Suggestion] | None:
    """Return the next runs of the line of the number of ranks; None if it is complete, or no run fits the budget.

    This line is necessary even if effort determines all forms: time may grow faster than effort if ranks share a
    network.
    """
    if state.ranks is None:
        return None
    line = [point for point in line_of(state.candidates, state.costs, state.ranks) if not state.shared[point]]
    missing = missing_of(line, state.counts, 1)
    return (
        in_order(
            state,
            missing,
            "differs only in the number of ranks: shows whether time is proportional to effort",
            budget,
            batch,
        )
        or None
    )
