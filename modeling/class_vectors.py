# SPDX-License-Identifier: Apache-2.0
"""The numbers of executions of classes of basic blocks at all configurations of an experiment.

A class is a set of basic blocks of a function that are always executed equally often, such as a loop body or one side
of a branch. The compiler pass counts the executions of classes; the binary contains the effort of one execution.
"""

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
    """The place of a class in the source: the line with most of its work.

    line: 0 if it is unknown. depth: number of loops around it in the function.
    """

    function: str
    file: str
    line: int
    depth: int


@dataclass(frozen=True, eq=False)
class ClassVectors:
    """The numbers of executions of classes; each row is a class on a call path.

    - callpath: number of the call path in the call tree, shape (rows,).
    - counts: executions, summed over ranks and threads, mean over repetitions, shape (rows, configurations).
    - within: the row of the class that contains this class on the same call path, shape (rows,); -1: none.
    - effort: by metric, the effort of one execution, shape (rows,).
    - places: the place of each row in the source. ranks: number of ranks, shape (configurations,).
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
