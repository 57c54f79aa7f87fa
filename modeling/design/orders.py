# SPDX-License-Identifier: Apache-2.0
"""Strategies without a model: fixed or random orders of points.

"Lines" are the points of baseline.py: for each parameter, points that differ only in this parameter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..experiment import IntArray
from .baseline import missing_of
from .state import REPETITIONS, State, Suggestion, in_order, of_lines


@dataclass(frozen=True)
class FullMatrix:
    """All points with all repetitions, the cheapest first."""

    repetitions: int = REPETITIONS

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return the next runs (`Strategy.suggest`)."""
        order = np.argsort(state.costs, kind="stable").tolist()
        return in_order(state, _repeated(state, order, self.repetitions), "part of the full matrix", budget, batch)


@dataclass(frozen=True)
class CheapestFirst:
    """CPF (Ritter et al., section II): lines of all parameters, then the cheapest points, each with all repetitions."""

    repetitions: int = REPETITIONS

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return the next runs (`Strategy.suggest`)."""
        if (begun := of_lines(state, self.repetitions, budget, batch)) is not None:
            return begun
        order = np.argsort(state.costs, kind="stable").tolist()
        return in_order(state, _repeated(state, order, self.repetitions), "the cheapest point", budget, batch)


@dataclass(frozen=True)
class SingleRuns:
    """Lines of all parameters, then the cheapest points first; no second repetition before all points have one."""

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return the next runs (`Strategy.suggest`)."""
        if (begun := of_lines(state, 1, budget, batch)) is not None:
            return begun
        order = np.argsort(state.costs, kind="stable").tolist()
        rest = missing_of(order, state.counts, state.repetitions)
        return in_order(state, rest, "the cheapest point with the fewest repetitions", budget, batch)


@dataclass(frozen=True)
class RandomRuns:
    """Lines of all parameters, then points drawn at random; the same seed draws the same points."""

    seed: int = 0

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return the next runs (`Strategy.suggest`)."""
        if (begun := of_lines(state, 1, budget, batch)) is not None:
            return begun
        draws = np.random.default_rng((self.seed, int(state.counts.sum())))
        left = np.repeat(np.arange(len(state.costs)), np.maximum(state.repetitions - state.counts, 0))
        return in_order(state, draws.permutation(left), "drawn at random", budget, batch)


@dataclass(frozen=True)
class GridRuns:
    """Lines of all parameters, then all points in lexicographic order, each with all repetitions."""

    def suggest(self, state: State, budget: float, batch: int) -> list[Suggestion]:
        """Return the next runs (`Strategy.suggest`)."""
        if (begun := of_lines(state, 1, budget, batch)) is not None:
            return begun
        order: IntArray = np.lexsort(state.candidates.T[::-1])
        rest = _repeated(state, order.tolist(), state.repetitions)
        return in_order(state, rest, "the next point of the grid", budget, batch)


def _repeated(state: State, order: list[int], repetitions: int) -> list[int]:
    """Return the points of an order, each as often as it lacks repetitions."""
    return [point for point in order for _ in range(repetitions - int(state.counts[point]))]
