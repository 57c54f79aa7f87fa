# SPDX-License-Identifier: Apache-2.0
"""Compute the metric `delay_caused`: the time that other ranks waited because of a call path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from quipu.modeling.errors import MeasurementError
from quipu.modeling.experiment import Experiment
from quipu.modeling.root_causes import DELAY_CAUSED, root_causes

from ..merge.efficiency_times import efficiency_times, places_of
from ..merge.experiment import StoredRun


def with_delay_caused(experiment: Experiment, runs: Sequence[StoredRun]) -> Experiment:
    """Return an experiment with the additional metric `delay_caused` (seconds).

    runs: the runs of the experiment. Values are NaN for runs without the values of each rank. Raises MeasurementError
    if no run contains the values of each rank.
    """
    shape = next(iter(experiment.values.values())).shape
    caused = np.full(shape, np.nan)
    times = efficiency_times(runs, experiment.tree)
    for run, (where, count) in zip(times, places_of(times, experiment), strict=True):
        if (found := root_causes(run)) is not None:
            caused[:, where, count] = found.delay_caused
    if np.isnan(caused).all():
        raise MeasurementError(
            f"{experiment.name}: {DELAY_CAUSED.name} needs the times of single ranks, which no run has; "
            "measure with quipu run --rank-columns N, for N ranks or more"
        )
    name, timed = DELAY_CAUSED.name, experiment.timed
    return replace(
        experiment,
        metrics={**experiment.metrics, name: DELAY_CAUSED},
        values={**experiment.values, name: caused},
        timed=None if timed is None else replace(timed, experiment=with_delay_caused(timed.experiment, runs)),
    )
