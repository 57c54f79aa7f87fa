# SPDX-License-Identifier: Apache-2.0
"""Parallel programs with stated complexity: C++ and MPI code whose work and messages grow as asked for.

growth: sizes of loops and messages; functions: what a function computes and communicates; choose: random ones;
specification: those that a user names; emit: the code; statement: the truth about it, for machines.
"""

from __future__ import annotations

from .choose import Choices, choose_functions, too_steep
from .emit import program
from .functions import Arrangement, Communication, Computation, Function, Operation, Step
from .growth import parse_growth
from .specification import functions_of
from .statement import statement

__all__ = [
    "Arrangement",
    "Choices",
    "Communication",
    "Computation",
    "Function",
    "Operation",
    "Step",
    "choose_functions",
    "functions_of",
    "parse_growth",
    "program",
    "statement",
    "too_steep",
]
