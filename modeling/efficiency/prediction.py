# SPDX-License-Identifier: Apache-2.0
"""Predict efficiencies at a point from models of time and effort.

The models of the mean over ranks give the mean useful time. The models of the slowest rank (in each run, the rank with
the most time outside of MPI) give the largest useful time, and the elapsed time as its time outside of and in MPI.
Intervals have the shape (3, scopes), as in bounds.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..evaluation import Evaluation
from ..experiment import CallTree, FloatArray
from ..run_times import RunTimes
from .bounds import at_most_one, exact, product, ratio, total
from .factors import NOT_SEPARATED, Factors, openmp_factors
from .scaling import Work


def predicted_factors(
    like: RunTimes, mean: Mapping[str, Evaluation], slowest: Mapping[str, Evaluation], threads: int
) -> Factors:
    """Return the parallel efficiency of each scope at a point, and its factors.

    like: any run of the experiment, for its call tree and the kinds of its call paths. mean, slowest: by metric, the
    models of the mean over ranks and of the slowest rank, evaluated at the point. threads: per rank. Serialization and
    transfer are missing without models of waiting. Without models of `thread_time`, ranks count as having one thread.
    """
    most = _scopes(like.tree, slowest["time"], ~like.mpi)
    transfers = _scopes(like.tree, slowest["time"], like.mpi)
    elapsed = total(most, transfers)
    balance = at_most_one(ratio(_scopes(like.tree, mean["time"], ~like.mpi), most))
    communication = at_most_one(_share(most, transfers))
    of_ranks = {
        "load_balance": balance,
        "communication": communication,
        "parallel": at_most_one(product(balance, communication)),
    }
    values = dict(of_ranks)
    if "thread_time" in mean and threads > 1:
        useful = _scopes(like.tree, mean["thread_time"], like.useful_paths) / threads
        values = {"parallel": ratio(useful, elapsed)}
        values["parallel"] = _with_value(values["parallel"], np.minimum(values["parallel"][0], of_ranks["parallel"][0]))
        if like.mpi.any():
            values |= {f"mpi_{name}": factor for name, factor in of_ranks.items()}
            values |= openmp_factors(values)
    missing = {}
    if like.mpi.any():
        if like.waits_separated and "wait_time" in slowest:
            waiting = np.minimum(_scopes(like.tree, slowest["wait_time"], like.mpi), transfers)
            ideal = total(most, waiting)
            values["serialization"] = at_most_one(_share(most, waiting))
            values["transfer"] = at_most_one(ratio(exact(ideal[0]), exact(elapsed[0])))
        else:
            missing = dict.fromkeys(("serialization", "transfer"), NOT_SEPARATED)
    return Factors(values, missing)


def predicted_work(like: RunTimes, mean: Mapping[str, Evaluation], ranks: int, threads: int) -> Work:
    """Return the work of all processors at a point, from models of the mean over ranks by metric."""
    times = mean["thread_time"] if "thread_time" in mean and threads > 1 else mean["time"]
    counts = {
        name: ranks * _scopes(like.tree, evaluation, like.useful_paths)
        for name, evaluation in mean.items()
        if evaluation.metric.unit != "s"
    }
    return Work(ranks * threads, ranks * _scopes(like.tree, times, like.useful_paths), counts)


def _share(part: FloatArray, rest: FloatArray) -> FloatArray:
    """Return part / (part + rest). The interval is computed from that of rest / part."""
    other = ratio(rest, part)
    return 1.0 / (1.0 + other[[0, 2, 1]])


def _with_value(factor: FloatArray, value: FloatArray) -> FloatArray:
    """Return a factor with another value (at most 1), and with ends that contain it and are at most 1."""
    return np.stack([value, np.minimum(factor[1], value), np.maximum(np.minimum(factor[2], 1.0), value)])


def _scopes(tree: CallTree, evaluation: Evaluation, paths: NDArray[np.bool_]) -> FloatArray:
    """Return the sums (3, scopes) of the exclusive predictions of the call paths in a mask, over each scope.

    The start and the end of MPI, and predictions that are not finite, are left out. Errors are independent.
    """
    parts = np.array([(one.value, one.lower, one.upper) for one in evaluation.exclusive]).reshape(-1, 3).T
    chosen = paths & ~tree.start_and_end & np.isfinite(parts[0])
    value, low, high = np.where(chosen, parts, 0.0)
    sums = [np.append(tree.inclusive(one), one.sum()) for one in (value, (value - low) ** 2, (high - value) ** 2)]
    return np.stack([sums[0], np.maximum(sums[0] - np.sqrt(sums[1]), 0.0), sums[0] + np.sqrt(sums[2])])
