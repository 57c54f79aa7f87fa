# SPDX-License-Identifier: Apache-2.0
"""How far single runs of a program are from what they take on average."""

from __future__ import annotations

import numpy as np

from .experiment import Experiment, with_all_repetitions

# So many runs of configurations with others like them tell what nine of ten are within.
_LEAST_RUNS = 10
# The share of runs that are within.
_WITHIN = 0.9


def run_scatter(experiment: Experiment) -> float | None:
    """Return what nine of ten runs are within: the difference of ln(time of the program) from the mean of repetitions.

    Of configurations with a processor for each rank, unless only others were repeated. None: too few runs were
    repeated to tell, or there is no time; 0 where repetitions are the same, as in simulations by effort.
    """
    if "time" not in experiment.values:
        return None
    times = np.where(experiment.tree.start_and_end[:, None, None], np.nan, experiment.values["time"])
    known = np.isfinite(times).any(axis=0)
    totals = np.nansum(with_all_repetitions(times), axis=0)
    known &= (totals > 0) & np.isfinite(totals)
    logs = np.where(known, np.log(np.where(known, totals, 1.0)), 0.0)
    runs = known.sum(axis=1)
    mean = logs.sum(axis=1) / np.maximum(runs, 1)
    unbiased = np.sqrt(runs / np.maximum(runs - 1, 1))
    apart = np.abs(logs - mean[:, None]) * unbiased[:, None]
    repeated = known & (runs > 1)[:, None]
    for usable in (repeated & experiment.dedicated[:, None], repeated):
        if usable.sum() >= _LEAST_RUNS:
            return float(np.quantile(apart[usable], _WITHIN))
    return None
