# SPDX-License-Identifier: Apache-2.0
"""Model waiting as a part of time, if waiting and transfer have one model: waiting is never longer than the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..experiment import Experiment, FloatArray
from ..pmnf.model import Model
from ..pmnf.options import DEFAULT, Options
from .dedicated import dedicated_times
from .measured import centred, fit_measured, one_by_one
from .path_model import PathModel, unit
from .prior import Prior

PART = "part of time"


def parts_that_wait(
    experiment: Experiment,
    models: Mapping[int, PathModel],
    choices: Sequence[Sequence[Prior]],
    options: Options = DEFAULT,
) -> dict[int, PathModel]:
    """Return the models of waiting of call paths that waited: the same part of each term of their time.

    models: of the time of call paths, which must not contain a separate model of waiting. choices: the priors of all
    call paths. Call paths without a model of time, or that never waited, are left out.
    """
    waits = waits_of(experiment, dedicated_times(experiment, "time", choices)[0])
    known = {
        path: entry.model
        for path, entry in models.items()
        if isinstance(entry.model, Model) and (np.nan_to_num(waits[path]) > 0.0).any()
    }
    repetitions = centred(waits, options)
    priors = {path: [Prior((unit(model),), PART, "c·time")] for path, model in known.items()}
    found = fit_measured(experiment, repetitions, priors, one_by_one(waits, options))
    result = {}
    for path, model in found.items():
        points = experiment.points[repetitions.centre[path] > 0]
        whole = known[path]
        total = float(whole.evaluate(points).sum())
        share = min(float(model.evaluate(points).sum()) / total, 1.0) if total > 0.0 else 1.0
        part = replace(whole.scaled(share), quality=model.quality, ranges=whole.ranges, notes=whole.notes)
        result[path] = replace(models[path], model=part, basis=PART, prior="", lower=None)
    return result


def waits_of(experiment: Experiment, times: FloatArray) -> FloatArray:
    """Return waiting (N, C, R) in the runs that models of time use; NaN in the runs where `times` is not finite."""
    return np.where(np.isfinite(times), experiment.values["wait_time"], np.nan)
