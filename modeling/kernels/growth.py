# SPDX-License-Identifier: Apache-2.0
"""Growth of counters by the fitting functions of the APMT paper, for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ..errors import ModelingError
from ..experiment import Experiment, FloatArray
from ..pmnf.model import Prediction
from .functions import Fitted, best_fit
from .variables import Variables

Method = Literal["quipu", "paper"]
METHODS: tuple[Method, ...] = ("quipu", "paper")


@dataclass(frozen=True)
class Growth:
    """A counter as a function of the amount of work of a process."""

    model: Fitted
    variables: Variables

    def at(self, point: Mapping[str, float]) -> Prediction:
        """Return the value at a point, not below 0, with its 90 % interval."""
        return self.model.at(self.variables.amount(point))

    def __str__(self) -> str:
        """Return the function as text; x is D / P, or 1 / P."""
        return str(self.model)


def growths(experiment: Experiment, variables: Variables, values: FloatArray) -> list[Growth]:
    """Return the fitting function with the highest R² (section 3.3) for each of N counters, values (N, C).

    Raises ModelingError if there are parameters other than the number of processes and the problem size.
    """
    if not variables.has_amount:
        unknown = ", ".join(variables.others)
        raise ModelingError(
            f"{experiment.name}: fitting functions only depend on the number of processes and the problem size, not on "
            f"{unknown}: name these two parameters with --processes and --size"
        )
    amounts = variables.amounts(experiment.parameters, experiment.points)
    return [Growth(best_fit(amounts, row), variables) for row in values]
