# SPDX-License-Identifier: Apache-2.0
"""The metric `effort_excess`: blocks that the ranks of a run wait for in a call path, beyond the mean over ranks.

If only this call path took time, ranks would wait at each synchronization until the last one has executed its blocks.
The excess is what they all wait for, less the mean of what they execute. It is the same in every run, as effort is,
and is modeled like other counts: its model says how the imbalance grows. Where a run knows nothing of what happened
between synchronizations, they are those of its end: the excess is the maximum over ranks less the mean.
"""

from __future__ import annotations

from dataclasses import replace

from .errors import ModelingError
from .experiment import BETWEEN, Experiment, Metric

EFFORT_EXCESS = Metric(BETWEEN, "1", "effort", "sum", "basic blocks that ranks wait for, beyond the mean over ranks")


def with_effort_excess(experiment: Experiment) -> Experiment:
    """Return an experiment with the metric `effort_excess`. Raises ModelingError without blocks, or means of ranks."""
    known = experiment.excess.get(BETWEEN)
    if known is None:
        raise ModelingError(
            f"experiment {experiment.name}: {BETWEEN} needs basic blocks of each rank, and --over-ranks mean"
        )
    timed = experiment.timed
    return replace(
        experiment,
        metrics={**experiment.metrics, BETWEEN: EFFORT_EXCESS},
        values={**experiment.values, BETWEEN: known},
        timed=None if timed is None else replace(timed, experiment=with_effort_excess(timed.experiment)),
    )
