# SPDX-License-Identifier: Apache-2.0
"""Find the configurations whose times models must leave out, because these times follow another formula.

At few ranks or for small messages, an operation of MPI may follow another formula than at all larger values. A single
process exchanges no messages. A process grid with an extent of 1 has no neighbours in this direction. Libraries select
algorithms by the number of ranks and the size of messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ..experiment import Experiment, FloatArray, RegionKind
from ..pmnf.model import Model
from ..pmnf.options import DEFAULT, Options
from .dedicated import dedicated_times
from .fit import fit_where
from .measured import centred, one_by_one
from .path_model import PathModel
from .prior import Prior, PriorFit

_Flags = NDArray[np.bool_]
# After leaving out: smallest number of values of each parameter, and of configurations minus coefficients.
_LEAST_VALUES, _LEAST_FREEDOM = 3, 2
# Largest number of tried combinations of smallest values, to limit the time. (Three parameters of six values: 64.)
_MOST_PARTS = 200
# Smaller relative errors are ignored: the scatter of clocks, and for simulated times the rest of the waiting.
_SCATTER, _SIMULATED = 0.01, 1e-3
# Smaller values follow another formula if an error this large has a smaller probability (Student's t distribution).
_UNLIKELY = 1e-2
# Number of values above 1 that a model of time needs. Two suffice, because effort determines its growth.
_LEAST_BEYOND_ONE = 2


@dataclass(frozen=True, eq=False)
class TimesAt:
    """Call paths whose models of time only use some configurations (C,), and the note about this."""

    paths: tuple[int, ...]
    where: _Flags
    note: str

    def only(self, experiment: Experiment) -> Experiment:
        """Return the experiment without times of these call paths at other configurations."""
        values = dict(experiment.values)
        for name in ("time", "wait_time"):
            if name in values:
                values[name] = values[name].copy()
                values[name][np.array(self.paths)[:, None], np.flatnonzero(~self.where)] = np.nan
        return replace(experiment, values=values)

    def noted(self, models: Mapping[int, PathModel]) -> dict[int, PathModel]:
        """Return the models of call paths, with the note for these call paths."""
        return {
            path: replace(entry, model=replace(entry.model, notes=(*entry.model.notes, self.note)))
            if path in self.paths and isinstance(entry.model, Model)
            else entry
            for path, entry in models.items()
        }


def of_larger_values(
    experiment: Experiment, choices: Sequence[Sequence[Prior]], options: Options = DEFAULT
) -> list[TimesAt]:
    """Return the operations of MPI whose times follow their priors only from certain parameter values on.

    The fit to all larger values predicts each smaller value. If the median error there is too large for the scatter of
    the fit, the value follows another formula and is left out. The test is repeated with the remaining values. Noise
    increases the scatter, so it does not cause values to be left out.

    experiment: its times must not contain waiting. choices: the priors of all call paths; the prior of operations
    without one is a constant. All oversubscribed runs are used, because runs of few ranks waited least for a processor.
    """
    times, oversubscribed = dedicated_times(experiment, "time", choices)
    repetitions, singles = centred(times, options), one_by_one(times, options)
    known, points = np.asarray(repetitions.centre > 0, dtype=bool), experiment.points
    least = _SIMULATED if experiment.exact_times else _SCATTER
    constant = (Prior((Model(experiment.parameters, 1.0),), "", ""),)
    rest = {
        path: own or constant
        for path, own in enumerate(choices)
        if experiment.tree.region_of(path).kind is RegionKind.MPI and known[path].any() and not oversubscribed[path]
    }
    if not rest:
        return []
    kept = known.copy()
    scatters: dict[int, _Scatter] = {}
    for where in _parts(points):
        there = kept & where
        tried = {path: own for path, own in rest.items() if _enough(points, kept[path], there[path])}
        fits = fit_where(tried, experiment.parameters, points, repetitions, there, singles=singles)
        for path, fit in fits.items():
            errors = _errors(fit, points, repetitions.centre[path])
            scatter = _Scatter.of(errors[there[path]], fit.coefficients, least)
            slices = _slices(points, kept[path] & ~where, there[path])
            if path not in scatters or (
                scatter.is_significantly_smaller(scatters[path]) and scatter.excludes(errors, slices)
            ):
                kept[path], scatters[path] = there[path], scatter
    found: dict[bytes, list[int]] = {}
    for path in np.flatnonzero((kept != known).any(axis=1)).tolist():
        lowest = points[kept[path]].min(axis=0)
        found.setdefault((points >= lowest).all(axis=1).tobytes(), []).append(path)
    result = []
    for flags, paths in found.items():
        where = np.frombuffer(flags, dtype=bool)
        left = ", ".join(
            f"{name}={value:g}"
            for name, values in zip(experiment.parameters, points.T, strict=True)
            for value in np.setdiff1d(values, values[where]).tolist()
        )
        result.append(TimesAt(tuple(paths), where, f"without {left}, where its time follows another formula"))
    return result


@dataclass(frozen=True)
class _Scatter:
    """The relative variance around a fit, and its degrees of freedom."""

    variance: float
    freedom: int

    @classmethod
    def of(cls, errors: FloatArray, coefficients: int, least: float) -> _Scatter:
        """Return the scatter of errors at the configurations of a fit."""
        freedom = len(errors) - coefficients
        return cls(float((errors**2).sum()) / max(freedom, 1) + least**2, freedom)

    def is_significantly_smaller(self, other: _Scatter) -> bool:
        """Return whether this scatter is significantly smaller than another one (F test)."""
        if self.freedom < _LEAST_FREEDOM:
            return False
        return self.variance * float(special.fdtri(other.freedom, self.freedom, 1.0 - _UNLIKELY)) < other.variance

    def excludes(self, errors: FloatArray, slices: Sequence[_Flags]) -> bool:
        """Return whether the median error in every slice of configurations is too large for this scatter."""
        bound = special.stdtrit(self.freedom, 1.0 - _UNLIKELY / 2.0) * np.sqrt(self.variance)
        return all(abs(float(np.median(errors[own]))) > bound for own in slices)


def _parts(points: FloatArray) -> list[_Flags]:
    """Return sets of configurations (C,), the largest first: all from a certain value of each parameter on.

    With many parameters, each set is limited in one parameter only.
    """
    distinct = [np.unique(values) for values in points.T]
    several = [values[: max(len(values) - _LEAST_VALUES + 1, 1)].tolist() for values in distinct]
    lowest: Iterable[Sequence[float]] = product(*several)
    if math.prod(map(len, several)) > _MOST_PARTS:
        least = points.min(axis=0)
        lowest = (np.where(np.arange(len(least)) == k, x, least) for k, own in enumerate(several) for x in own)
    parts = [np.asarray((points >= np.array(own)).all(axis=1), dtype=bool) for own in lowest]
    return sorted(parts, key=lambda where: -int(where.sum()))


def _enough(points: FloatArray, known: _Flags, there: _Flags) -> bool:
    """Return whether enough values of each parameter remain (all, if there are few)."""
    return all(
        np.unique(values[there]).size >= min(_LEAST_VALUES, np.unique(values[known]).size) for values in points.T
    )


def _slices(points: FloatArray, left_out: _Flags, there: _Flags) -> list[_Flags]:
    """Return for each parameter value that was left out entirely, the configurations with this value."""
    return [
        left_out & (values == value)
        for values in points.T
        for value in np.setdiff1d(values[left_out], values[there]).tolist()
    ]


def _errors(fit: PriorFit, points: FloatArray, values: FloatArray) -> FloatArray:
    """Return the logarithms of values (C,) divided by the values of a model."""
    return np.asarray(np.log(np.maximum(values, 1e-300) / np.maximum(fit.model.evaluate(points), 1e-300)))


def of_effort_beyond_one(experiment: Experiment, choices: Sequence[Sequence[Prior]]) -> list[TimesAt]:
    """Return for each parameter the call paths whose effort follows another formula at value 1.

    Their time does, too, because another branch of the program runs. Two larger values must have been measured.
    """
    there = np.asarray((np.nan_to_num(experiment.values["time"]) > 0).any(axis=2), dtype=bool)
    result = []
    for name, values in zip(experiment.parameters, experiment.points.T, strict=True):
        larger = np.asarray(values > 1.0, dtype=bool)
        paths = tuple(
            path
            for path, priors in enumerate(choices)
            if any(name in prior.beyond_one for prior in priors)
            and there[path, ~larger].any()
            and np.unique(values[there[path] & larger]).size >= _LEAST_BEYOND_ONE
        )
        if paths:
            result.append(TimesAt(paths, larger, f"without {name}=1, where its effort follows another formula"))
    return result
