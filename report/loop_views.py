# SPDX-License-Identifier: Apache-2.0
"""Loops of call paths and how often they are executed: what `quipu model --loops` shows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePath

from quipu.modeling.analysis import Analysis
from quipu.modeling.counts.predictions import CountModels

from .views import steps


@dataclass(frozen=True)
class LoopRow:
    """A loop, or the blocks of a function that none is around.

    path: call path; place: file and line where it does most; depth: loops around it; share: of the metric of the
    program at the largest values measured; executions: all ranks together, as a formula; exact: it reproduces all runs.
    """

    path: tuple[str, ...]
    place: str
    depth: int
    share: float
    executions: str
    exact: bool


def loop_rows(analysis: Analysis, metric: str, paths: Collection[int] | None) -> list[LoopRow]:
    """Return the loops with most of a metric first; paths: of which call paths, None: of all.

    Empty if the measurements say nothing of loops, or the loops have none of the metric.
    """
    counts = analysis.counts
    if not isinstance(counts, CountModels) or not counts.loops(metric):
        return []
    point = [max(column) for column in zip(*counts.experiment.points.tolist(), strict=True)]
    amounts = [(loop, loop.each * loop.model.at(point).quantile(0.5)) for loop in counts.loops(metric)]
    total = sum(amount for _, amount in amounts)
    ordered = sorted((entry for entry in amounts if entry[1] > 0), key=lambda entry: -entry[1])
    return [
        LoopRow(
            steps(analysis.tree, loop.path),
            f"{PurePath(loop.place.file).name}:{loop.place.line}" if loop.place.file else loop.place.function,
            loop.place.depth,
            amount / total,
            loop.model.text,
            loop.model.exact,
        )
        for loop, amount in ordered
        if paths is None or loop.path in paths
    ]
