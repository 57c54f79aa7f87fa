# SPDX-License-Identifier: Apache-2.0
"""Score predictions against a measured target: one row per call path, and a summary.

A row is a call path with at least 1 % of a metric at the target, measured or predicted. `score` is the interval score
of the 90 % interval, relative to the measured value: width + 20 × distance of the value from the interval, at most 20.
An exact prediction with an interval of width 0 has the score 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from programs_corpus import Target
from quipu.modeling.experiment import Experiment, FloatArray

LEAST_SHARE = 0.01
MOST_SCORE = 20.0
EXACT = 1e-9
# The score of an interval of 90 % is its width plus 2 / (1 - 90 %) times the distance outside.
OUTSIDE = 20.0
# The expected score of the true 90 % interval of a normal distribution, in standard deviations:
# 2 · 1.6449 + 20 · 2 · E[max(0, z - 1.6449)].
NORMAL = 4.126


@dataclass(frozen=True)
class Row:
    """One call path of one metric: relative error, whether the interval contains the value, and scores.

    share: of the metric; exact: whether the prediction equals the value; unseen: whether no run that the modeler got
    executed the call path. It is predicted as 0 then.
    """

    metric: str
    error: float
    inside: bool
    score: float
    scatter: float
    share: float
    exact: bool
    unseen: bool = False


def rows_of(experiment: Experiment, target: Target, metric: str, predicted: FloatArray) -> list[Row]:
    """Return the rows of a metric; predicted: value, lower and upper of each call path, shape (call paths, 3)."""
    tree = experiment.tree
    known = {tree.key(path): path for path in range(len(tree)) if not tree.start_and_end[path]}
    measured = {key: own for key, own in target.values[metric].items() if key not in target.start_and_end}
    total = float(sum(own.mean() for own in measured.values()))
    rows: list[Row] = []
    if not total:
        return rows
    for key in {**measured, **known}:
        runs = measured.get(key, np.zeros(1))
        truth = float(runs.mean())
        value, lower, upper = _finite(predicted[known[key]]) if key in known else (0.0, 0.0, 0.0)
        if max(truth, value) < LEAST_SHARE * total:
            continue
        size = max(truth, EXACT * total)
        slack = EXACT * size
        outside = max(lower - truth - slack, 0.0) + max(truth - upper - slack, 0.0)
        rows.append(
            Row(
                metric,
                abs(value - truth) / size,
                outside == 0.0,
                min((upper - lower + OUTSIDE * outside) / size, MOST_SCORE),
                NORMAL * float(runs.std(ddof=1)) / size if len(runs) > 1 else 0.0,
                truth / total,
                abs(value - truth) <= slack,
                key not in known,
            )
        )
    return rows


def _finite(values: FloatArray) -> tuple[float, float, float]:
    value, lower, upper = (0.0 if not np.isfinite(own) and own != np.inf else max(float(own), 0.0) for own in values)
    return value, lower, upper


def summary(programs: Sequence[Iterable[Row]]) -> dict[str, float]:
    """Return the figures of the rows of programs: percentages, mean scores; `exact` is the mean over programs.

    `unseen` is the share of rows (%) that no modeler can predict (`Row.unseen`); they count as outside of all bounds.

    Of call paths that vary between repetitions of the target: `scatter` is the mean score of the normal distribution
    with the standard deviation of the repetitions, `score_of_varying` the mean score of the predictions.
    """
    lists = [list(own) for own in programs]
    rows = [row for own in lists for row in own]
    if not rows:
        return {}
    result = {
        "paths": float(len(rows)),
        "within1": _percent([row.error <= 0.01 for row in rows]),
        "within5": _percent([row.error <= 0.05 for row in rows]),
        "inside": _percent([row.inside for row in rows]),
        "score": round(float(np.mean([row.score for row in rows])), 3),
        "exact": _percent([share for own in lists for share in exact_shares(own)]),
        "unseen": _percent([row.unseen for row in rows]),
    }
    varying = [row for row in rows if row.scatter > EXACT]
    if varying:
        result["scatter"] = round(float(np.mean([row.scatter for row in varying])), 3)
        result["score_of_varying"] = round(float(np.mean([row.score for row in varying])), 3)
    return result


def exact_shares(rows: Sequence[Row]) -> list[float]:
    """Return for each metric of a program the share of its rows with exact prediction."""
    shares = []
    for metric in sorted({row.metric for row in rows}):
        own = [row for row in rows if row.metric == metric]
        shares.append(sum(row.share for row in own if row.exact) / max(sum(row.share for row in own), EXACT))
    return shares


def _percent(values: Sequence[float]) -> float:
    return round(100.0 * float(np.mean(values)), 1)
