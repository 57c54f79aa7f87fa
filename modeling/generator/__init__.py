# SPDX-License-Identifier: Apache-2.0
"""Generate parallel programs of known complexity: C++ and MPI code whose work and messages grow as specified.

A size is a product of powers and logarithms of p (number of ranks) and n (size of the problem). docs/generate.md
describes the programs.

growth         sizes of loops and messages
functions      computation and communication of a function
choose         random functions
specification  functions specified by a user
emit           the code
statement      machine-readable complexity of the functions
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
