# SPDX-License-Identifier: Apache-2.0
"""Select the call paths whose visits may explain counts (carriers), so that few searches are necessary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..experiment import Experiment, FloatArray
from ..pmnf.calibration import EXACT_LEAST_WEIGHED, VISITS_AGREE, VISITS_MOST_TRIED
from ..pmnf.model import Model
from ..pmnf.options import NoModel

# The first configurations already exclude most call paths.
_FIRST = 3


@dataclass(frozen=True, eq=False)
class Carriers:
    """Facts about the visits of all call paths.

    - same: the first call path with the same visits, (paths,).
    - several: whether a parameter has several values where the call path is executed, (paths, m); None: unknown.
    - executed: whether the call path is executed in any configuration, (paths,).
    - apart: relative residuals of the visits, normalized to length 1, (paths, C·R); 0 without a model.
    """

    experiment: Experiment
    same: list[int]
    several: NDArray[np.bool_] | None
    executed: NDArray[np.bool_]
    apart: FloatArray

    @staticmethod
    def of(experiment: Experiment, models: Sequence[Model | NoModel], inexact: Sequence[bool]) -> Carriers:
        """Return the facts of an experiment. models: of visits, by call path. inexact: whether a model is inexact."""
        visits = experiment.values["visits"]
        first: dict[bytes, int] = {}
        same = [first.setdefault(np.nan_to_num(own, nan=-1.0).tobytes(), path) for path, own in enumerate(visits)]
        apart = np.zeros((len(visits), visits[0].size if len(visits) else 0))
        for path in np.flatnonzero(inexact).tolist():
            apart[path] = _apart(experiment, visits[path], models[path])
        executed, points = experiment.executed, experiment.points
        if executed is None:
            return Carriers(experiment, same, None, np.full(len(visits), True), apart)
        several = [np.ptp(points[own], axis=0) > 0 if own.any() else points[0] != points[0] for own in executed]
        anywhere = np.asarray(executed.any(axis=1), dtype=bool)
        return Carriers(experiment, same, np.array(several), anywhere, apart)

    def likely(
        self, path: int, values: FloatArray, models: Sequence[Model | NoModel], near: Sequence[int]
    ) -> list[int]:
        """Return the call paths of `near` whose visits may explain counts (N, C, R) of `path`, in the same order.

        Leaves out call paths with the visits of an earlier one, and call paths that contradict a run. Of more than
        VISITS_MOST_TRIED, it keeps the call paths whose residuals correlate most with the residuals of the counts.
        models: of the counts, (N,).
        """
        distinct = {self.same[other]: other for other in reversed(near) if self._shows_as_much(path, other)}
        kept = np.array([other for other in near if distinct.get(self.same[other]) == other], dtype=np.int64)
        visits = self.experiment.values["visits"]
        for part in (slice(0, _FIRST), slice(_FIRST, None)):
            if kept.size:
                allowed = np.array([may_follow(own, visits[kept], part) for own in values])
                kept = kept[allowed.any(axis=0)]
        if len(kept) <= VISITS_MOST_TRIED:
            return list(map(int, kept))
        own = np.array([_apart(self.experiment, *pair) for pair in zip(values, models, strict=True)])
        alike = np.abs(self.apart[kept] @ own.T).max(axis=1)
        alike[: VISITS_MOST_TRIED // 2] = np.inf
        return list(map(int, kept[np.sort(np.argsort(-alike, kind="stable")[:VISITS_MOST_TRIED])]))

    def _shows_as_much(self, path: int, carrier: int) -> bool:
        """Return whether a call path is executed at several values of each parameter that varies for its carrier.

        Otherwise the count per visit is only known at one value, even if the visits are known at more.
        """
        if self.several is None or not self.executed[path] or not self.executed[carrier]:
            return True
        return bool((self.several[path] | ~self.several[carrier]).all())


def may_follow(values: FloatArray, visits: FloatArray, part: slice = slice(None)) -> NDArray[np.bool_]:
    """Return for which visits v (N, C, R) the counts (C, R) may be f + g·v, with f and g equal in a configuration.

    The counts of the runs of one configuration must then lie on a line over v. part: configurations to check.
    """
    top = np.nanmax(np.abs(values), initial=0.0)
    counts, times = values[part], visits[:, part]
    known = ~np.isnan(counts) & ~np.isnan(times)
    low = np.where(known, times, np.inf).argmin(axis=2)[..., None]
    high = np.where(known, times, -np.inf).argmax(axis=2)[..., None]
    every = np.broadcast_to(counts, times.shape)
    with np.errstate(all="ignore"):
        least = np.take_along_axis(times, low, axis=2)
        start = np.take_along_axis(every, low, axis=2)
        wide = np.take_along_axis(times, high, axis=2) - least
        rise = np.take_along_axis(every, high, axis=2) - start
        line = start + rise * np.where(wide > 0, (times - least) / wide, 0.0)
        size = np.where(known, np.abs(counts), 0.0).max(axis=2, initial=0.0)
        allowed = 4.0 * VISITS_AGREE * np.maximum(size, EXACT_LEAST_WEIGHED * top)
        off = known & (np.abs(counts - line) > allowed[..., None])
    result: NDArray[np.bool_] = ~off.any(axis=(1, 2))
    return result


def _apart(experiment: Experiment, values: FloatArray, model: Model | NoModel) -> FloatArray:
    """Return the relative residuals of values (C, R), normalized to length 1, (C·R,); 0 without a model."""
    if not isinstance(model, Model):
        return np.zeros(values.size)
    fitted = model.evaluate(experiment.points)[:, None]
    with np.errstate(all="ignore"):
        apart = np.where(fitted > 0, values / fitted - 1.0, 0.0)
    apart = np.clip(np.nan_to_num(apart), -1.0, 1.0).ravel()
    length = float(np.sqrt(apart @ apart))
    result: FloatArray = apart / length if length > 0 else apart
    return result
