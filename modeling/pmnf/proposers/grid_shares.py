# SPDX-License-Identifier: Apache-2.0
"""Logarithms of the share of a process in sums of functions of the grid: c·log2(n/p) is c·log2(n) - c·log2(p).

Levels of a multigrid and steps of a sort or search depend on the share of a rank. The coefficients of log2(n) and of 1
are modeled separately, and the coefficient of log2(p) in the second follows from the first, so it has length 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...experiment import FloatArray
from ..description import length_of
from ..grids.calibration import GRID_FUNCTION
from .grid_coefficients import Functions
from .grid_forms import Form, Forms, GridForms


def with_logarithms_of_shares(forms: GridForms, functions: Functions, choices: Sequence[Forms]) -> list[Forms]:
    """Return the sums for the coefficient of each function; sums with the logarithm of a share become shorter.

    choices: sums for the coefficients of functions, the shortest first, as in the result.
    """
    powers = [tuple((0, 0) if term is None else term.exponents for term in own) for own in functions]
    result = list(choices)
    for place, own in enumerate(powers):
        for other, more in enumerate(powers):
            whole = choices[other].form(0)
            logs = [(i, j) for i, j in zip(own, more, strict=True) if i != j]
            one_more = len(logs) == 1 and logs[0][1] == (logs[0][0][0], logs[0][0][1] + 1)
            if one_more and len(whole.grid_functions) == 1:
                result[place] = _shorter(forms, result[place], whole)
    return result


def _shorter(forms: GridForms, found: Forms, whole: Form) -> Forms:
    """Return sums without the length of their logarithm of p, if `whole` has the same coefficient of the size."""
    wanted = forms.columns[whole.grid_functions[0]] * np.log2(forms.grids.prod(axis=1))
    alike = [number for number, own in enumerate(forms.columns) if wanted.any() and np.allclose(own, wanted)]
    saved: FloatArray = np.zeros(len(found.rows))
    for number in range(len(found.rows)):
        own = found.form(number)
        for function, coefficient in zip(own.grid_functions, own.coefficients, strict=True):
            if function in alike and np.isclose(coefficient, -whole.coefficients[0]):
                length = length_of(coefficient)
                saved[number] = forms.grid_functions[function].length + length - GRID_FUNCTION
    if not saved.any():
        return found
    lengths = found.lengths - np.where(np.isfinite(saved), saved, 0.0)
    order = np.argsort(lengths, kind="stable")
    return Forms(lengths[order], found.beyond[order], [found.rows[i] for i in order.tolist()])
