# SPDX-License-Identifier: Apache-2.0
"""Predict which part of all accesses a memory level serves, at problem sizes that were not measured.

Accesses grow like effort. The part that a level serves changes in steps, when data exceed a cache, and no smooth
function fits a step. The parts are therefore interpolated over the amount of work of a process. Beyond the measured
amounts they are constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..experiment import FloatArray
from ..pmnf.model import Prediction
from .amounts import Amount, product
from .variables import Variables


@dataclass(frozen=True)
class Served:
    """accesses: sum over all levels.

    amounts: D / P, ascending, all different; parts: 0 to 1, the part of this level.
    """

    accesses: Amount
    amounts: tuple[float, ...]
    parts: tuple[float, ...]
    variables: Variables

    def at(self, point: Mapping[str, float]) -> Prediction:
        """Return the number of accesses that the level serves at a point, with its 90 % interval."""
        amount = np.log(self.variables.amount(point))
        part = float(np.interp(amount, np.log(self.amounts), self.parts))
        return product(self.accesses.at(point), part)


def served(
    accesses: Amount, variables: Variables, amounts: FloatArray, total: FloatArray, of_level: FloatArray
) -> Served:
    """Return the part of a level. amounts: D / P of the configurations; total, of_level: accesses there; all (C,)."""
    distinct = np.unique(amounts)
    parts = [
        float(of_level[amounts == x].sum() / max(float(total[amounts == x].sum()), 1.0)) for x in distinct.tolist()
    ]
    return Served(accesses, tuple(distinct.tolist()), tuple(parts), variables)
