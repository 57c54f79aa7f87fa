"""Models of counts that are no sums of powers and logarithms: of steep functions, steps, and process grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from .criterion.one_process import reproduces
from .data.noise import Repetitions
from .doubt import far_off
from .grid_models import each, with_others
from .grids import Grids, by_grid
from .model import Model
from .nests import by_nests
from .steep import Fit, by_steep
from .stepped import by_steps


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

    def models(self, models: Sequence[Model | None]) -> dict[int, Model]:
        """Return the models, those of other forms where these explain more, and which miss the counts by far."""
        found = list(models)
        if self.again is not None:
            steep = by_steep(found, self.points, self.counts, self.used, self.names, self.again)
            found = [steep.get(path, model) for path, model in enumerate(found)]
            steps = by_steps(found, self.points, self.counts, self.used, self.repetitions, self.names)
            found = [steps.get(path, model) for path, model in enumerate(found)]
        if self.grids is not None:
            nested = by_nests(self.grids, self.points, self.counts, self.measured, self.names)
            grids = by_grid(found, nested.grids, self.points, self.counts, self.measured, self.names)
            nests = {path: model for path, model in nested.models.items() if not _is_constant(found[path])}
            for path in nests.keys() & grids.keys():
                if self._is_at_one(path, nested.grids.parameter):
                    nests[path] = with_others([nests[path], *each(grids[path])], nested.grids.parameter)
            found = [nests.get(path, grids.get(path, model)) for path, model in enumerate(found)]
        return {path: far_off(model) for path, model in enumerate(found) if model is not None}

    def _is_at_one(self, path: int, parameter: str) -> bool:
        """Whether a call path counts something at one number of processes only, which many functions of grids have."""
        return np.unique(self.points[self.counts[path] != 0, self.names.index(parameter)]).size == 1


def _is_constant(model: Model | None) -> bool:
    """Whether counts are the same wherever a call path is executed: neighbours in one dimension are less likely."""
    return model is not None and model.is_constant and reproduces(model)
