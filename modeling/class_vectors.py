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

    line: 0 if unknown. depth: number of enclosing loops in the function.
    """

    function: str
    file: str
    line: int
    depth: int


@dataclass(frozen=True, eq=False)
class ClassVectors:
    """Execution counts of each class on each call path.

    - callpath: shape (rows,), index into the call tree.
    - counts: shape (rows, configurations), sums over ranks and threads, means over repetitions.
    - within: shape (rows,), the row of the enclosing class on the same call path, -1: none.
    - effort: name of a metric → shape (rows,), effort of one execution.
    - places: of each row. ranks: shape (configurations,), number of ranks.
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
        """Return the classes; None if a run has no classes."""
