# SPDX-License-Identifier: Apache-2.0
"""Compute the metric `effort_excess`: the blocks of the rank with the most, minus the mean over ranks, per call path.

Like effort, it is equal in every run. It measures the imbalance of a call path. It is modeled like other counts, and
its model predicts the imbalance.
"""

from __future__ import annotations

from dataclasses import replace

from .errors import ModelingError
from .experiment import IMBALANCE, Experiment, Metric

EFFORT_EXCESS = Metric(
    "effort_excess", "1", "effort", "sum", "basic blocks of the rank that executes most, beyond the mean over ranks"
)


def with_effort_excess(experiment: Experiment) -> Experiment:
    """Return an experiment with the metric `effort_excess`. Raises ModelingError without blocks or means."""
    known = experiment.excess.get(IMBALANCE)
    if known is None:
        raise ModelingError(
            f"experiment {experiment.name}: {EFFORT_EXCESS.name} needs basic blocks of each rank, and --over-ranks mean"
        )
    name, timed = EFFORT_EXCESS.name, experiment.timed
    return replace(
        experiment,
        metrics={**experiment.metrics, name: EFFORT_EXCESS},
        values={**experiment.values, name: known},
        timed=None if timed is None else replace(timed, experiment=with_effort_excess(timed.experiment)),
    )
