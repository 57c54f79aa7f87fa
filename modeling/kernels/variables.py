# SPDX-License-Identifier: Apache-2.0
"""Find the parameters with the number of processes and the problem size (section 3.1 of the APMT paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelingError
from ..experiment import Experiment, FloatArray
from ..parameter_names import RANK_NAMES
from ..priors.dedicated import enough_dedicated

_SIZES = ("D", "size", "problem")
_LOWEST_CLOCK = 1e6  # Hz


@dataclass(frozen=True)
class Variables:
    """Names of parameters; None if there is none.

    processes: P; size: D, the size of the whole problem; frequency: clock of the cores in Hz. others: further
    parameters, which only models in normal form contain.
    """

    processes: str | None
    size: str | None
    others: tuple[str, ...]
    frequency: str | None = None

    def amount(self, point: Mapping[str, float]) -> float:
        """Return the average amount of work of a process D / P (Fig. 3); 1 / P if the problem has one size."""
        size = point[self.size] if self.size else 1.0
        return size / (point[self.processes] if self.processes else 1.0)

    def amounts(self, names: tuple[str, ...], points: FloatArray) -> FloatArray:
        """Return `amount` of points, shape (C, m), whose columns have these names; shape (C,)."""
        return np.array([self.amount(dict(zip(names, row, strict=True))) for row in points.tolist()])

    def clocks(self, names: tuple[str, ...], points: FloatArray, clock: float) -> FloatArray:
        """Return the frequency of cycles at points in Hz, (C,). `clock` is used if no parameter gives the frequency."""
        if self.frequency is None:
            return np.full(len(points), clock)
        return np.asarray(points[:, names.index(self.frequency)], dtype=np.float64)

    @property
    def has_amount(self) -> bool:
        """Return whether the amount of work determines a configuration."""
        return not self.others


def variables_of(
    experiment: Experiment, processes: str | None = None, size: str | None = None, frequency: str | None = None
) -> Variables:
    """Return the variables of an experiment: as given, or from the names of parameters and the measured communicators.

    Raises ModelingError if the experiment has no parameter with a given name, or if the parameter is unsuitable.
    """
    names = experiment.parameters
    for wanted in (processes, size, frequency):
        if wanted is not None and wanted not in names:
            known = ", ".join(names) or "none"
            raise ModelingError(f"{experiment.name}: has no parameter {wanted}; it has: {known}")
    if processes is not None and processes == size:
        raise ModelingError(f"{experiment.name}: {size} cannot be both the number of processes and the problem size")
    if frequency is not None:
        if frequency in (processes, size):
            raise ModelingError(
                f"{experiment.name}: {frequency} cannot be both the clock frequency and another quantity"
            )
        lowest = float(experiment.points[:, names.index(frequency)].min(initial=np.inf))
        if lowest < _LOWEST_CLOCK:
            raise ModelingError(
                f"{experiment.name}: {frequency}={lowest:g} cannot be the clock of a core: give it in Hz, such as 2.4e9"
            )
    found = processes or _processes(experiment, [name for name in names if name not in (size, frequency)])
    rest = [name for name in names if name not in (found, frequency)]
    size = size or next((name for name in _SIZES if name in rest), None)
    return Variables(found, size, tuple(name for name in rest if name != size), frequency)


def _processes(experiment: Experiment, names: list[str]) -> str | None:
    """Return the parameter that equals the size of the largest communicator, or has a suitable name."""
    sizes = experiment.values.get("comm_size")
    if sizes is not None and len(experiment.tree):
        largest = np.nan_to_num(sizes).max(axis=(0, 2))
        for name in names:
            column = experiment.points[:, experiment.parameters.index(name)]
            if np.array_equal(column, np.maximum(largest, 1.0)):
                return name
    return next((name for name in RANK_NAMES if name in names), None)


def timed(experiment: Experiment) -> NDArray[np.bool_]:
    """Return the configurations whose times are used, (C,): not oversubscribed ones, if there are enough others."""
    dedicated = experiment.dedicated
    every = np.ones_like(dedicated)
    return dedicated if enough_dedicated(experiment, every) else every
