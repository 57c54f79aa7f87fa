# SPDX-License-Identifier: Apache-2.0
"""What a strategy sees when it chooses what to measure next, and what it answers."""

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
"""Most repetitions of a point: the fifth "provided only marginal benefits" (Ritter et al., section II)."""


@dataclass(frozen=True, eq=False)
class State:
    """The search space, what was measured of it, and the models made from that.

    parameters: names, m of them. candidates: (N, m) the points that can be measured, each once.
    target: (m,) the point that is to be predicted. values: (K, N, R) the measured values of K call paths, NaN where
    not measured; repetitions of a point stand in the first columns. models: of the K call paths.
    costs: (N,) core hours of one run at each candidate. repetitions: most runs of one point. oversubscribed: (N,) where
    ranks will share processors, so that times contain waiting for one; None if nowhere. known_forms: (K,) whether the
    form of a call path's model is known by more than its times, as from effort; None if of none. with_effort: numbers
    of the candidates whose effort is known, measured in time or not; None if of none. ranks: column of the parameter
    that is the number of ranks; None if there is none.
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
        """How often each candidate was measured, (N,)."""
        measured = (~np.isnan(self.values)).any(axis=0)
        return np.asarray(measured.sum(axis=1), dtype=np.int64)

    @cached_property
    def measured(self) -> IntArray:
        """The numbers of the candidates that were measured."""
        return np.flatnonzero(self.counts)

    @cached_property
    def shared(self) -> NDArray[np.bool_]:
        """Where times say nothing, as ranks share processors, (N,)."""
        return np.zeros(len(self.costs), dtype=bool) if self.oversubscribed is None else self.oversubscribed

    @property
    def follows_effort(self) -> bool:
        """Whether effort gives the form of all call paths, and was measured on a line of each parameter."""
        known = self.known_forms is not None and len(self.known_forms) > 0 and all(self.known_forms)
        return known and self.with_effort is not None and has_lines(self.candidates, self.with_effort)

    def affordable(self, budget: float) -> NDArray[np.bool_]:
        """Return the candidates that one more run of fits the budget and the limit of repetitions, (N,)."""
        return np.asarray((self.counts < self.repetitions) & (self.costs <= budget), dtype=bool)


@dataclass(frozen=True)
class Suggestion:
    """One run to do.

    candidate: number of the point. repetition: which of this point it is, from 1. cost: core hours.
    gain: by which share it is expected to reduce the variance of the prediction at the target, after the suggestions
    before it; NaN if the strategy does not know.
    """

    candidate: int
    repetition: int
    cost: float
    reason: str
    gain: float = float("nan")


class Strategy(Protocol):
    """Chooses what to measure next."""

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return up to `batch` runs, in order, that together cost at most `budget` core hours; none if none is left."""


def in_order(
    state: State,
    order: Sequence[int] | IntArray,
    reason: str,
    budget: float,
    batch: int,
    gain: float = float("nan"),
) -> list[Suggestion]:
    """Return the first runs of an order of candidates that may repeat a point; the first that does not fit ends it."""
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
    """Return the next runs of the lines of all parameters; None when those have so many repetitions."""
    repetitions = min(repetitions, state.repetitions)
    missing = missing_of(baseline(state.candidates, state.costs), state.counts, repetitions)
    return in_order(state, missing, "of the line of a parameter", budget, batch) if missing else None


def of_ranks(state: State, budget: float, batch: int) -> list[Suggestion] | None:
    """Return the next runs of the cheapest line of numbers of ranks, as far as it is affordable; None when it is done.

    Where effort gives all forms, time still may grow faster than effort as ranks share a network.
    """
    if state.ranks is None:
        return None
    line = [point for point in line_of(state.candidates, state.costs, state.ranks) if not state.shared[point]]
    missing = missing_of(line, state.counts, 1)
    return in_order(state, missing, "of the line of ranks: does time follow effort?", budget, batch) or None
