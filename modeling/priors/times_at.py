# SPDX-License-Identifier: Apache-2.0
"""Which configurations the times of call paths rest on, where others follow another formula.

At few ranks or for small messages, an operation of MPI may follow another formula than at all larger values: a single
process has nobody to exchange messages with, a process grid with an extent of 1 has no neighbours in that direction,
and libraries change their algorithms with the number of ranks and the size of messages.
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
# Values of each parameter that are left, and configurations beside as many as there are coefficients.
_LEAST_VALUES, _LEAST_FREEDOM = 3, 2
# Most combinations of smallest values. A limit of time: three parameters of six values have fewer.
_MOST_PARTS = 200
# Relative errors below these are none: what clocks scatter, and what is left of waiting in simulated times.
_SCATTER, _SIMULATED = 0.01, 1e-3
# Smaller values follow another formula if as large an error is less likely than this (Student's t distribution).
_UNLIKELY = 1e-2
# Values beyond 1 that a model of time under priors needs: its growth is that of effort.
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
    """Return the operations of MPI whose times follow their priors from some values of the parameters on only.

    Each smaller value is predicted by the fit to all larger ones. Where its median error is too large for the scatter
    of that fit, it follows another formula, and the same is done with what is left. Noise makes the scatter larger, so
    that it does not bring this about.

    experiment: waiting taken out of its times. choices: the priors of all call paths; operations without any take a
    constant time. Of oversubscribed runs all times are used: few ranks are those that waited least for a processor.
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
            if path not in scatters or (scatter.is_less(scatters[path]) and scatter.has_none_of(errors, slices)):
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
        """Return that of errors at the configurations of a fit."""
        freedom = len(errors) - coefficients
        return cls(float((errors**2).sum()) / max(freedom, 1) + least**2, freedom)

    def is_less(self, other: _Scatter) -> bool:
        """Whether chance makes it so much less than another one in few cases only (F test)."""
        if self.freedom < _LEAST_FREEDOM:
            return False
        return self.variance * float(special.fdtri(other.freedom, self.freedom, 1.0 - _UNLIKELY)) < other.variance

    def has_none_of(self, errors: FloatArray, slices: Sequence[_Flags]) -> bool:
        """Whether the median error in each slice of configurations is too large for it."""
        bound = special.stdtrit(self.freedom, 1.0 - _UNLIKELY / 2.0) * np.sqrt(self.variance)
        return all(abs(float(np.median(errors[own]))) > bound for own in slices)


def _parts(points: FloatArray) -> list[_Flags]:
    """Return sets of configurations (C,), those from some value of each parameter on, the largest first.

    With many parameters, these are the sets from some value of one parameter on.
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
    """Whether enough values of each parameter are left, all where there are few."""
    return all(
        np.unique(values[there]).size >= min(_LEAST_VALUES, np.unique(values[known]).size) for values in points.T
    )


def _slices(points: FloatArray, left_out: _Flags, there: _Flags) -> list[_Flags]:
    """Return the configurations with each value of a parameter that is nowhere else."""
    return [
        left_out & (values == value)
        for values in points.T
        for value in np.setdiff1d(values[left_out], values[there]).tolist()
    ]


def _errors(fit: PriorFit, points: FloatArray, values: FloatArray) -> FloatArray:
    """Return logarithms of values (C,) over those of a model."""
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
