# SPDX-License-Identifier: Apache-2.0
"""Which simulated times of MPI models rest on: those of the algorithm that the largest ranks and messages have.

Libraries change their algorithms with the number of ranks and the size of messages, and a call takes the larger of what
the processor and the network need. Then one row of Table I holds in a part of the measured range, and what goes on is
that with the largest values. Simulated times have no noise: where a row holds, it does exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..experiment import Experiment, FloatArray, RegionKind
from ..pmnf.model import Model
from ..pmnf.options import DEFAULT, Options
from .dedicated import dedicated_times
from .measured import centred, fit_measured, one_by_one
from .prior import Prior
from .times_at import TimesAt, values_left

_Flags = NDArray[np.bool_]
# Largest relative deviation of simulated times from a row that they follow: what is left of waiting, and the clock's
# nanosecond.
_EXACT = 1e-3
# Values of each parameter that must be left, and configurations beside as many as there are coefficients: of the
# subsets and rows that are tried, some fit fewer by luck.
_LEAST_VALUES, _LEAST_FREEDOM = 3, 3


def of_one_algorithm(
    experiment: Experiment, choices: Sequence[Sequence[Prior]], options: Options = DEFAULT
) -> list[TimesAt]:
    """Return the MPI operations whose simulated times follow their priors exactly from some values on, and no sooner.

    experiment: waiting taken out of its times. Of several such parts of the measured range the largest one. Nothing is
    known of times that are not exact.
    """
    if not experiment.exact_times:
        return []
    times, _ = dedicated_times(experiment, "time", choices)
    repetitions, singles = centred(times, options), one_by_one(times, options)
    known = np.asarray(repetitions.centre > 0, dtype=bool)
    rest = {
        path: priors
        for path, priors in enumerate(choices)
        if priors and known[path].any() and experiment.tree.region_of(path).kind is RegionKind.MPI
    }
    result = []
    for where in _parts(experiment.points):
        there = known & where
        tried = {path: own for path, own in rest.items() if _enough(experiment.points, known[path], there[path])}
        part = replace(repetitions, centre=np.where(there, repetitions.centre, 0.0))
        models = fit_measured(experiment, part, tried, singles)
        held = tuple(
            path
            for path, model in models.items()
            if _follows(model, experiment.points[there[path]], repetitions.centre[path, there[path]])
        )
        rest = {path: own for path, own in rest.items() if path not in held}
        if held and not where.all():
            left = values_left(experiment, where)
            result.append(TimesAt(held, where, f"without {left}, where its time follows another formula"))
    return result


def _parts(points: FloatArray) -> list[_Flags]:
    """Return sets of configurations (C,), those from some value of each parameter on, the largest first."""
    distinct = [np.unique(values) for values in points.T]
    several = [values[: max(len(values) - _LEAST_VALUES + 1, 1)].tolist() for values in distinct]
    parts = [np.asarray((points >= np.array(least)).all(axis=1), dtype=bool) for least in product(*several)]
    return sorted(parts, key=lambda where: -int(where.sum()))


def _enough(points: FloatArray, known: _Flags, there: _Flags) -> bool:
    """Whether enough values of each parameter are left at configurations (C,), all of those of which there are few."""
    return all(
        np.unique(values[there]).size >= min(_LEAST_VALUES, np.unique(values[known]).size) for values in points.T
    )


def _follows(model: Model, points: FloatArray, values: FloatArray) -> bool:
    """Whether values (C,) are those of a model, and more than go through it by luck."""
    coefficients = len(model.terms) + (model.constant != 0.0)
    deviation = np.abs(model.evaluate(points) / values - 1.0)
    return len(values) >= coefficients + _LEAST_FREEDOM and float(deviation.max()) <= _EXACT
