# SPDX-License-Identifier: Apache-2.0
"""Waiting as a part of time where both have one model: no rank waits longer in a call than the call takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..experiment import Experiment, FloatArray
from ..pmnf.calibration import NOISY
from ..pmnf.model import Alternative, Model
from ..pmnf.options import DEFAULT, Options
from .dedicated import dedicated_times
from .fit import MOST_COLUMNS
from .measured import centred, fit_measured, one_by_one
from .path_model import PathModel, unit
from .prior import Prior

PART = "part of time"
# Parts that are larger than the whole by less are the whole, rounded.
_ROUNDED = 1e-9


def parts_that_wait(
    experiment: Experiment,
    models: Mapping[int, PathModel],
    choices: Sequence[Sequence[Prior]],
    options: Options = DEFAULT,
) -> dict[int, PathModel]:
    """Return the models of waiting of call paths that waited: of each term of their time a part, or of all the same.

    models: of the time of call paths that have no model of waiting of their own in it. choices: the priors of all call
    paths. Parts of each term must explain more than one coefficient beyond theirs does: growth of waiting that is not
    that of time. Where a term is negative all of them have the same part. Call paths without a model of time, or that
    never waited, are left out.
    """
    waits = waits_of(experiment, dedicated_times(experiment, "time", choices)[0])
    known = {
        path: entry.model
        for path, entry in models.items()
        if isinstance(entry.model, Model) and (np.nan_to_num(waits[path]) > 0.0).any()
    }
    repetitions, singles = centred(waits, options), one_by_one(waits, options)
    several = {path: [_same_part(model), *_by_term(model)] for path, model in known.items()}
    found = fit_measured(experiment, repetitions, several, singles)
    above = {path: [_same_part(known[path])] for path, model in found.items() if not _is_part(model, known[path])}
    found |= fit_measured(experiment, repetitions, above, singles)
    result = {}
    for path, model in found.items():
        whole = known[path]
        kept = model if _is_part(model, whole) else whole
        share = _share(kept, whole, experiment.points[repetitions.centre[path] > 0])
        kept = replace(kept, ranges=whole.ranges, alternatives=_scaled(whole, share), notes=whole.notes)
        result[path] = replace(models[path], model=kept, basis=PART, prior="", lower=None)
    return result


def waits_of(experiment: Experiment, times: FloatArray) -> FloatArray:
    """Return waiting (N, C, R) in the runs that models of time rest on, NaN in others, as `times` has them."""
    return np.where(np.isfinite(times), experiment.values["wait_time"], np.nan)


def _same_part(model: Model) -> Prior:
    return Prior((unit(model),), PART, "c·time")


def _by_term(model: Model) -> list[Prior]:
    """Return the prior with a part of each term of a model, none where a part could be larger than the whole."""
    constant = [Model(model.parameters, model.constant)] if model.constant else []
    columns = (*constant, *(Model(model.parameters, 0.0, (term,)) for term in model.terms))
    if not 1 < len(columns) <= MOST_COLUMNS or model.constant < 0 or any(term.coefficient < 0 for term in model.terms):
        return []
    return [Prior(columns, PART, "c·term of time + …", penalty=NOISY.coefficient)]


def _is_part(part: Model, whole: Model) -> bool:
    """Whether no term is larger than that of the whole."""
    most = {term.shape: abs(term.coefficient) for term in whole.terms}
    sizes = {term.shape: abs(term.coefficient) for term in part.terms}
    within = all(size <= (1.0 + _ROUNDED) * most.get(shape, 0.0) for shape, size in sizes.items())
    return within and abs(part.constant) <= (1.0 + _ROUNDED) * abs(whole.constant)


def _share(part: Model, whole: Model, points: FloatArray) -> float:
    """Return which part of a model another one is over points (C, m)."""
    total = float(whole.evaluate(points).sum())
    return min(float(part.evaluate(points).sum()) / total, 1.0) if total > 0.0 else 1.0


def _scaled(whole: Model, share: float) -> tuple[Alternative, ...]:
    """Return the alternatives of a model, that share of each."""
    return tuple(whole.scaled(share).alternatives)
