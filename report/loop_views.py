# SPDX-License-Identifier: Apache-2.0
"""View of the loops of call paths and their numbers of executions, for `quipu model --loops`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from quipu.modeling.analysis import Analysis
from quipu.modeling.counts.predictions import CountModels

from .views import steps


@dataclass(frozen=True)
class LoopRow:
    """A loop, or the blocks of a function outside of all loops.

    - path: regions of the call path from the root. place: file and line with most of the effort of the loop. depth:
      number of enclosing loops.
    - share: share of the loop in the metric of all loops at a point.
    - executions: formula of the number of executions of its body, all ranks together. exact: whether the formula
      reproduces all runs.
    - value, low, high: predicted number of executions at the point, and its 90 % interval.
    """

    path: tuple[str, ...]
    place: str
    depth: int
    share: float
    executions: str
    exact: bool
    value: float
    low: float
    high: float


def loop_rows(
    analysis: Analysis, metric: str, paths: Collection[int] | None, at: Mapping[str, float] | None = None
) -> list[LoopRow]:
    """Return the loops that contribute to a metric, the largest first.

    paths: call paths to show; None: all. at: the point of shares and predictions; None: the largest measured values.
    The result is empty if the measurements contain no loops, or the metric is 0 in all loops.
    """
    counts = analysis.counts
    if not isinstance(counts, CountModels) or not counts.loops(metric):
        return []
    largest = counts.experiment.points.max(axis=0).tolist()
    point = largest if at is None else [at[name] for name in counts.experiment.parameters]
    known = [(loop, loop.model.at(point)) for loop in counts.loops(metric)]
    amounts = [(loop, executions, loop.each * executions.quantile(0.5)) for loop, executions in known]
    total = sum(amount for _, _, amount in amounts)
    ordered = sorted((entry for entry in amounts if entry[2] > 0), key=lambda entry: -entry[2])
    return [
        LoopRow(
            steps(analysis.tree, loop.path),
            f"{PurePath(loop.place.file).name}:{loop.place.line}" if loop.place.file else loop.place.function,
            loop.place.depth,
            amount / total,
            loop.model.text,
            loop.model.exact,
            executions.quantile(0.5),
            max(executions.quantile(0.05), 0.0),
            executions.quantile(0.95),
        )
        for loop, executions, amount in ordered
        if paths is None or loop.path in paths
    ]
