# SPDX-License-Identifier: Apache-2.0
"""Which part of all accesses a level of memory serves, at problem sizes that were not measured.

The accesses of a program grow as its effort does. The part of them that a level serves changes in steps, where data no
longer fit: no function of the size fits a step and goes on sensibly behind it. So the parts are interpolated over the
amount of work of a process, and beyond the measured amounts they stay as they were last.
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
    """accesses: of all levels together. amounts: D / P, ascending, all different; parts: 0 to 1, of this level
    there.
    """

    accesses: Amount
    amounts: tuple[float, ...]
    parts: tuple[float, ...]
    variables: Variables

    def at(self, point: Mapping[str, float]) -> Prediction:
        """Return how many accesses the level serves at a point, with their 90 % interval."""
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
