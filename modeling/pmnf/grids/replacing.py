# SPDX-License-Identifier: Apache-2.0
"""Replace models of counts by sums of loops over a process grid, where these explain more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..criterion.one_process import reproduces
from ..model import Model
from .exact import Grids, by_grid
from .models import each, with_others
from .nests import by_nests

_Flags = NDArray[np.bool_]


def with_grids(
    models: Sequence[Model | None],
    grids: Grids | None,
    points: FloatArray,
    counts: FloatArray,
    measured: _Flags,
    names: tuple[str, ...],
) -> list[Model | None]:
    """Return the models of N counts, or exact sums over one of the process grids, where these explain more.

    points: (C, m). counts: (N, C), 0 if not measured. measured: (N, C). grids: possible process grids, if any.
    """
    result = list(models)
    parameter = next((grid.parameter for grid in grids.possible if grid.parameter in names), None) if grids else None
    if grids is None or parameter is None:
        return result
    processes = points[:, names.index(parameter)]
    nested = by_nests(grids, points, counts, measured, names)
    sums = by_grid(models, nested.grids, points, counts, measured, names)
    found = sums | nested.models
    for path in sums.keys() & nested.models.keys():
        # many functions of grids reproduce counts at a single number of processes
        if np.unique(processes[counts[path] != 0]).size == 1:
            found[path] = with_others([nested.models[path], *each(sums[path])], parameter)
    alone = not _by_dimension(processes, counts, measured)
    for path, model in found.items():
        former = models[path]
        same = former is not None and not former.depends_on(parameter) and reproduces(former)
        if former is not None and alone and same and (former.is_constant or _is_of_neighbours_in_one(model)):
            result[path] = with_others([former, *each(model)], parameter)
        else:
            result[path] = model
    return result


def _by_dimension(processes: FloatArray, counts: FloatArray, measured: _Flags) -> bool:
    """Return whether counts (N, C) depend on a single dimension of a grid, as exchanges in one dimension do.

    This is so if some are 0 at some p > 1 (C,). Otherwise, counts that are equal for all p > 1 more likely do not
    depend on neighbours in the dimension that is divided first.
    """
    at = (processes[:, None] == np.unique(processes[processes > 1])).astype(np.float64)
    counted, known = (flags.astype(np.float64) @ at > 0.0 for flags in (counts != 0, measured))
    return bool((counted.any(axis=1) & (known & ~counted).any(axis=1)).any())


def _is_of_neighbours_in_one(model: Model) -> bool:
    """Return whether a model only describes which ranks have neighbours in one dimension of a process grid."""
    factors = [factor for term in model.terms for factor in term.factors if factor.axis is not None]
    return len({factor.axis for factor in factors}) == 1 and not any(factor.exponent for factor in factors)
