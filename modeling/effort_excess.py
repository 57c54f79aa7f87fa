# SPDX-License-Identifier: Apache-2.0
"""The metric `effort_excess`: the imbalance of a call path over the ranks, in basic blocks.

An interval is the part of a run between two synchronizations of all ranks. The excess of an interval is the maximum of
the blocks over the ranks minus their mean. The metric is the sum of the excesses of all intervals. A run without
records of its synchronizations counts as one interval. The metric is the same in every run, so it is modeled like other
counts. The model shows how the imbalance grows.
"""

from __future__ import annotations

from dataclasses import replace

from .errors import ModelingError
from .experiment import BETWEEN, Experiment, Metric

EFFORT_EXCESS = Metric(BETWEEN, "1", "effort", "sum", "basic blocks that ranks wait for, beyond the mean over ranks")


def with_effort_excess(experiment: Experiment) -> Experiment:
    """Return the experiment with the additional metric `effort_excess`.

    Raises ModelingError if the blocks of each rank are not known, or values are not means over the ranks.
    """
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
