# SPDX-License-Identifier: Apache-2.0
"""The metric `effort_excess`: blocks of the rank that executes most of a call path, beyond the mean over ranks.

It is the same in every run, as effort is. It says how much of a call path is not balanced, and is modeled like other
counts: its model says how the imbalance grows.
"""

from __future__ import annotations

from dataclasses import replace

from .errors import ModelingError
from .experiment import IMBALANCE, Experiment, Metric

EFFORT_EXCESS = Metric(
    "effort_excess", "1", "effort", "sum", "basic blocks of the rank that executes most, beyond the mean over ranks"
)


def with_effort_excess(experiment: Experiment) -> Experiment:
    """Return an experiment with the metric `effort_excess`. Raises ModelingError without blocks, or means of ranks."""
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
