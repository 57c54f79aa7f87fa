# SPDX-License-Identifier: Apache-2.0
"""Models of counts that are no sums of powers and logarithms: of steep functions, steps, and process grids."""

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
    """What call paths count at the points (C, m).

    counts: (N, C), 0 where nothing was measured; measured, used: (N, C), where something was measured, and where a call
    path was executed as well. grids: what the process grid may be, if anything. again: fits call paths once more, None
    if only functions of grids are sought.
    """

    points: FloatArray
    counts: FloatArray
    measured: NDArray[np.bool_]
    used: NDArray[np.bool_]
    repetitions: Repetitions
    names: tuple[str, ...]
    grids: Grids | None
    again: Fit | None

    def models(self, models: Sequence[Model | None], metrics: Sequence[NDArray[np.int64]]) -> list[list[Model | None]]:
        """Return the models of the call paths of each metric, those of other forms where these explain more, and which
        miss the counts by far.

        metrics: the rows of the call paths of each; all that count the same have the same one.
        """
        found = list(models) if self.again is None else self._by_functions(models, self.again)
        result = []
        for rows in metrics:
            part, own = self._part(rows), [found[row] for row in rows.tolist()]
            if self.grids is not None and any(grid.parameter in self.names for grid in self.grids.possible):
                by_grids = part._by_grids(own, self.grids)
                own = [by_grids.get(path, model) for path, model in enumerate(own)]
            result.append([None if model is None else far_off(model) for model in own])
        return result

    def _part(self, rows: NDArray[np.int64]) -> OtherForms:
        """Return what these rows count."""
        return replace(
            self,
            counts=self.counts[rows],
            measured=self.measured[rows],
            used=self.used[rows],
            repetitions=take(self.repetitions, rows, np.ones(len(self.points), dtype=bool)),
        )

    def _by_functions(self, models: Sequence[Model | None], again: Fit) -> list[Model | None]:
        """Return the models, those of functions of the parameters where these explain more."""
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
        """Return the models by process grids, where these explain more than `models`."""
        nested = by_nests(grids, self.points, self.counts, self.measured, self.names)
        forms = by_grid(models, nested.grids, self.points, self.counts, self.measured, self.names)
        parameter = next(grid.parameter for grid in grids.possible if grid.parameter in self.names)
        processes = self.points[:, self.names.index(parameter)]
        found = forms | nested.models
        for path in forms.keys() & nested.models.keys():
            # many functions of grids have what is counted at one number of processes only
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
        """Whether call paths are for one dimension of a grid: some do nothing at one number of several processes (C,).

        Else what is the same for all of several processes is likelier than neighbours in the dimension divided first.
        """
        at = (processes[:, None] == np.unique(processes[processes > 1])).astype(np.float64)
        counted, known = (flags.astype(np.float64) @ at > 0.0 for flags in (self.counts != 0, self.measured))
        return bool((counted.any(axis=1) & (known & ~counted).any(axis=1)).any())


def _is_of_neighbours_in_one(model: Model) -> bool:
    """Whether a model says of a process grid who has neighbours in one of its dimensions, and nothing else."""
    factors = [factor for term in model.terms for factor in term.factors if factor.axis is not None]
    return len({factor.axis for factor in factors}) == 1 and not any(factor.exponent for factor in factors)
