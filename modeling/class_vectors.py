# SPDX-License-Identifier: Apache-2.0
"""Collect the executions of count classes at all configurations of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Place:
    """The line of a function with the most work of a class.

    line: 0 if unknown; depth: loops of the function around it.
    """

    function: str
    file: str
    line: int
    depth: int


@dataclass(frozen=True, eq=False)
class ClassVectors:
    """How often each class was executed on each call path.

    callpath: (rows,), index into the call tree; counts: (rows, configurations), summed over ranks and threads, the mean
    of repetitions; within: (rows,), the row of the class around it on the same call path, -1: none; effort: name of a
    metric → (rows,), of one execution; places: of each row; ranks: (configurations,), how many a run had.
    """

    callpath: Integers
    counts: Floats
    within: Integers
    effort: Mapping[str, Floats]
    places: tuple[Place, ...]
    ranks: Floats


class ClassSource(Protocol):
    """Reads the classes of an experiment on demand."""

    @property
    def vectors(self) -> ClassVectors | None:
        """Return the classes; None if one of the runs has none."""
