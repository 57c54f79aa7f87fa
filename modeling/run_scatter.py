# SPDX-License-Identifier: Apache-2.0
"""Compute the scatter of single runs of a program around the mean of their configuration."""

from __future__ import annotations

import numpy as np

from .experiment import Experiment, with_all_repetitions

# Smallest number of repeated runs that determines the range of nine of ten runs.
_LEAST_RUNS = 10
# The share of runs inside of this range.
_WITHIN = 0.9


def run_scatter(experiment: Experiment) -> float | None:
    """Return the limit of |ln(time of the program) - mean over repetitions| for nine of ten runs.

    Only configurations with a processor for each rank are used, unless these have too few repeated runs. Returns None
    with too few repeated runs or without time, and 0 if repetitions are equal, as in simulations by effort.
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
