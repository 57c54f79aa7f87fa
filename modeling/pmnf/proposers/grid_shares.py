# SPDX-License-Identifier: Apache-2.0
"""Logarithms of the share of a process in sums of functions of the grid: c·log2(n/p) is c·log2(n) - c·log2(p).

Levels of a multigrid, steps of a sort or of a search depend on what a rank has. The coefficients of log2(n) and of 1
are modeled one by one, and what the second has of log2(p) follows from the first: it describes nothing of its own.
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
    """Return the sums for the coefficient of each of the functions, shorter where they have the logarithm of a share.

    choices: of the coefficients of functions, the shortest sum of each first, and so it is then.
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
    """Return sums without the length of what they have of the logarithm of p, as `whole` has of that of the size."""
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
