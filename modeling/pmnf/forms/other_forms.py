# SPDX-License-Identifier: Apache-2.0
"""Model counts that are no sums of powers and logarithms, by steep functions, steps, and process grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..criterion.one_process import reproduces
from ..crossing.exact import by_crossing
from ..data.noise import Repetitions
from ..data.preparation import take
from ..grids.exact import Grids, by_grid
from ..grids.models import each, with_others
from ..grids.nests import by_nests
from ..model import Model
from ..uncertainty.doubt import far_off
from .blocks import by_blocks
from .polynomials import by_polynomials
from .shares import by_shares
from .steep import by_steep
from .stepped import by_steps
from .unexplained import Fit


@dataclass(frozen=True, eq=False)
class OtherForms:
    """Counts of call paths at the points (C, m).

    counts: (N, C), 0 if not measured; measured, used: (N, C), where a call path was measured, and also executed. grids:
    possible process grids, if any. again: fits call paths once more.
    """

    points: FloatArray
    counts: FloatArray
    measured: NDArray[np.bool_]
    used: NDArray[np.bool_]
    repetitions: Repetitions
    names: tuple[str, ...]
    grids: Grids | None
    again: Fit

    def models(self, models: Sequence[Model | None], metrics: Sequence[NDArray[np.int64]]) -> list[list[Model | None]]:
        """Return the models of the call paths of each metric, with other forms where these explain more.

        Models that miss the counts get a note. metrics: the rows of the call paths of each metric; equal counts share a
        row.
        """
        found = self._by_functions(models, self.again)
        result = []
        for rows in metrics:
            part, own = self._part(rows), [found[row] for row in rows.tolist()]
            if self.grids is not None and any(grid.parameter in self.names for grid in self.grids.possible):
                by_grids = part._by_grids(own, self.grids)
                own = [by_grids.get(path, model) for path, model in enumerate(own)]
            result.append([None if model is None else far_off(model) for model in own])
        return result

    def _part(self, rows: NDArray[np.int64]) -> OtherForms:
        """Return the counts of these rows."""
        return replace(
            self,
            counts=self.counts[rows],
            measured=self.measured[rows],
            used=self.used[rows],
            repetitions=take(self.repetitions, rows, np.ones(len(self.points), dtype=bool)),
        )

    def _by_functions(self, models: Sequence[Model | None], again: Fit) -> list[Model | None]:
        """Return the models, by functions of the parameters if these explain more."""
        found = list(models)
        nested = by_polynomials(found, self.points, self.counts, self.used, self.repetitions, self.names)
        found = [nested.get(path, model) for path, model in enumerate(found)]
        steep = by_steep(found, self.points, self.counts, self.used, self.names, again)
        found = [steep.get(path, model) for path, model in enumerate(found)]
        shares = by_shares(found, self.points, self.counts, self.used, self.names, again)
        found = [shares.get(path, model) for path, model in enumerate(found)]
        crossing = by_crossing(found, self.points, self.used, self.names)
        found = [crossing.get(path, model) for path, model in enumerate(found)]
        steps = by_steps(found, self.points, self.counts, self.used, self.repetitions, self.names)
        found = [steps.get(path, model) for path, model in enumerate(found)]
        blocks = by_blocks(found, self.points, self.counts, self.used, self.repetitions, self.names)
        return [blocks.get(path, model) for path, model in enumerate(found)]

    def _by_grids(self, models: Sequence[Model | None], grids: Grids) -> dict[int, Model]:
        """Return the models by process grids, if these explain more than `models`."""
        nested = by_nests(grids, self.points, self.counts, self.measured, self.names)
        forms = by_grid(models, nested.grids, self.points, self.counts, self.measured, self.names)
        parameter = next(grid.parameter for grid in grids.possible if grid.parameter in self.names)
        processes = self.points[:, self.names.index(parameter)]
        found = forms | nested.models
        for path in forms.keys() & nested.models.keys():
            # many functions of grids reproduce counts at a single number of processes
            if np.unique(processes[self.counts[path] != 0]).size == 1:
                found[path] = with_others([nested.models[path], *each(forms[path])], parameter)
        if not self._by_dimension(processes):
            for path, model in found.items():
                former = models[path]
                same = former is not None and not former.depends_on(parameter) and reproduces(former)
                if former is not None and same and (former.is_constant or _is_of_neighbours_in_one(model)):
                    found[path] = with_others([former, *each(model)], parameter)
        return found

    def _by_dimension(self, processes: FloatArray) -> bool:
        """Return whether call paths depend on a single dimension of a grid, as exchanges in one dimension do.

        This is so if some are not executed at some p > 1 (C,). Otherwise, counts that are equal for all p > 1 more
        likely do not depend on neighbours in the dimension that is divided first.
        """
        at = (processes[:, None] == np.unique(processes[processes > 1])).astype(np.float64)
        counted, known = (flags.astype(np.float64) @ at > 0.0 for flags in (self.counts != 0, self.measured))
        return bool((counted.any(axis=1) & (known & ~counted).any(axis=1)).any())


def _is_of_neighbours_in_one(model: Model) -> bool:
    """Return whether a model only describes which ranks have neighbours in one dimension of a process grid."""
    factors = [factor for term in model.terms for factor in term.factors if factor.axis is not None]
    return len({factor.axis for factor in factors}) == 1 and not any(factor.exponent for factor in factors)
