# SPDX-License-Identifier: Apache-2.0
"""Waiting in MPI: how long ranks wait for each other, as multiples of what they compute, or in seconds.

A rank that waits does so while others compute: behind a wave the wait is the work of a rank times the steps between
ranks, in a barrier it is the imbalance of their work. So the ratio of waiting to computation is a function of the
number of processes: a·g(P) + b, with g of chains of ranks (the steps from corner to corner of the process grid, or
P^(1/3), P^(1/2), P) and of trees (log2 P); or waiting itself is, where it does not depend on computation. a or b is 0
unless both together leave far less: few numbers of processes are measured, and computation that is divided between
them makes a constant look like a ratio that grows with P.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..experiment import Experiment, FloatArray
from ..pmnf.model import Prediction
from .communication import GroupModel, Kind
from .variables import Variables

_NORMAL_90 = 1.645  # half of a 90 % interval, in standard deviations


_TREE = "log2(P)"
# Relative residuals that are alike: repetitions of native runs differ by more. Which part of the residual of a simpler
# form, per degree of freedom, another one may leave to be taken. Both by benchmarks/apmt_accuracy.py --part strong.
_ALIKE, _BETTER = 0.05, 0.8
# Whether a and whether b is used, in the order in which forms are tried.
_FORMS = ((True, True), (True, False), (False, True))


@dataclass(frozen=True)
class Waiting:
    """seconds = (a·g(P) + b) · computation, or (a·g(P) + b) seconds. text: of g. uncertainty: as part of it."""

    a: float
    b: float
    text: str
    steps: Callable[[float], float]
    of_computation: bool
    uncertainty: float

    def at(self, processes: float, computation: float) -> Prediction:
        """Return the seconds that a rank waits. computation: seconds that a rank computes."""
        value = max(0.0, self.a * self.steps(processes) + self.b) * (computation if self.of_computation else 1.0)
        return Prediction(value, max(0.0, value * (1 - self.uncertainty)), value * (1 + self.uncertainty), False)

    def __str__(self) -> str:
        """Return the formula."""
        parts = [f"{self.a:.3g}·{self.text}"] * (self.a != 0) + [f"{self.b:.3g}"] * (self.b != 0 or self.a == 0)
        whole = " + ".join(parts)
        return f"({whole}) · computation" if self.of_computation else f"{whole} s"


def steps_of(experiment: Experiment) -> dict[str, Callable[[float], float]]:
    """Return g(P) by name: the steps through the process grid if one is known, powers, and the logarithm."""
    found: dict[str, Callable[[float], float]] = {}
    for grid in experiment.grids:
        found[f"steps through {grid}"] = lambda p, grid=grid: sum(grid.at(p)) - grid.dimensions  # type: ignore[misc]
    found |= {
        _TREE: lambda p: float(np.log2(p)),
        "P^(1/3)": lambda p: float(p ** (1 / 3)),
        "P^(1/2)": lambda p: float(p**0.5),
        "P": float,
    }
    return found


def fit_waiting(
    experiment: Experiment, variables: Variables, model: GroupModel, computation: FloatArray
) -> Waiting | None:
    """Return the model of the waiting of a group beside computation (C,), seconds per rank; None where nobody waits."""
    waiting = model.volume.waiting
    use = (waiting > 0) & (computation > 0)
    if not use.any():
        return None
    processes = _processes(experiment, variables)[use]
    count = processes.size
    best: tuple[float, Waiting] | None = None
    for of_computation in (True, False):
        constant = (computation if of_computation else np.ones_like(waiting))[use] / waiting[use]
        for text, steps in _ordered(steps_of(experiment), model.group.kind):
            growing = constant * np.array([steps(p) for p in processes.tolist()])
            for grows, rests in _FORMS:
                columns = [values for values, used in ((growing, grows), (constant, rests)) if used]
                if len(columns) > 1 and count <= len(columns):
                    continue
                matrix = np.stack(columns, axis=1)
                found = np.linalg.lstsq(matrix, np.ones(count), rcond=None)[0].tolist()
                if grows and found[0] < 0:
                    continue
                squares, freedom = float(np.sum((matrix @ found - 1) ** 2)), max(count - len(columns), 1)
                score = (squares + count * _ALIKE**2) / freedom
                if best is None or score < _BETTER * best[0]:
                    a, b = (found[0] if grows else 0.0), (found[-1] if rests else 0.0)
                    uncertainty = _NORMAL_90 * (squares / freedom) ** 0.5
                    best = score, Waiting(a, b, text, steps, of_computation, uncertainty)
    return best[1] if best is not None else None


def _ordered(steps: dict[str, Callable[[float], float]], kind: Kind) -> list[tuple[str, Callable[[float], float]]]:
    """Return the candidates, likelier ones first: messages go through grids, collective operations along trees."""
    return sorted(steps.items(), key=lambda entry: kind is Kind.COLLECTIVE and entry[0] != _TREE)


def _processes(experiment: Experiment, variables: Variables) -> FloatArray:
    if variables.processes is None:
        return np.ones(experiment.configurations)
    return np.asarray(experiment.points[:, experiment.parameters.index(variables.processes)])
