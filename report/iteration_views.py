# SPDX-License-Identifier: Apache-2.0
"""Views of the iterations of a phase (such as time steps) in the course of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from quipu.modeling.errors import UsageError
from quipu.modeling.experiment import FloatArray, IntArray

from .json_views import document_json

MOST_ROWS = 24
_QUARTERS = 4


class Iterations(Protocol):
    """Iterations of phases: one row per phase, span (consecutive iterations) and metric; see `IterationTable`."""

    @property
    def phase(self) -> list[str]: ...  # noqa: D102
    @property
    def first(self) -> IntArray: ...  # noqa: D102
    @property
    def last(self) -> IntArray: ...  # noqa: D102
    @property
    def iterations(self) -> IntArray: ...  # noqa: D102
    @property
    def ranks(self) -> IntArray: ...  # noqa: D102
    @property
    def metric(self) -> list[str]: ...  # noqa: D102
    @property
    def mean(self) -> FloatArray: ...  # noqa: D102
    @property
    def max(self) -> FloatArray: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class IterationsView:
    """One phase. A span is a number of consecutive iterations; spans are in the order of the run.

    first, last, iterations: number of the first and last iteration of each span, and number of its iterations, shape
    (spans,). mean, max: for each metric the value of one iteration, mean over the span; mean and maximum over ranks,
    shape (spans,); NaN if unknown.
    """

    phase: str
    ranks: int
    first: IntArray
    last: IntArray
    iterations: IntArray
    mean: dict[str, FloatArray]
    max: dict[str, FloatArray]

    def changes(self) -> dict[str, float]:
        """Return the ratio of the last quarter of the spans to the first quarter, by metric; mean per iteration."""
        quarter = max(1, self.iterations.size // _QUARTERS)
        found = {}
        for metric, values in self.mean.items():
            before, after = (np.average(values[part], weights=self.iterations[part]) for part in _ends(quarter))
            if before > 0 and not np.isnan(after):
                found[metric] = float(after / before)
        return found

    def grouped(self, most: int) -> IterationsView:
        """Return the phase with at most `most` spans; each span combines adjacent iterations."""
        size = -(-self.iterations.size // most)
        starts = np.arange(0, self.iterations.size, size)
        ends = np.append(starts[1:], self.iterations.size) - 1
        counts = np.add.reduceat(self.iterations, starts)
        return IterationsView(
            self.phase,
            self.ranks,
            self.first[starts],
            self.last[ends],
            counts,
            {name: np.add.reduceat(values * self.iterations, starts) / counts for name, values in self.mean.items()},
            {name: np.maximum.reduceat(values, starts) for name, values in self.max.items()},
        )


def _ends(quarter: int) -> tuple[slice, slice]:
    return slice(0, quarter), slice(-quarter, None)


def iterations_view(table: Iterations, phase: str, metrics: Sequence[str] = ()) -> IterationsView:
    """Return the view of one phase of a run. metrics: names; empty: all metrics of the phase.

    Raises UsageError for a phase or a metric that the run does not contain.
    """
    phases = list(dict.fromkeys(table.phase))
    if phase not in phases:
        raise UsageError(f"--iterations {phase!r} is not a phase of this run; its phases are {', '.join(phases[:20])}")
    of_phase = np.array([name == phase for name in table.phase])
    _, starts = np.unique(table.first[of_phase], return_index=True)
    starts.sort()  # in the order of the run
    first, last, counts = (column[of_phase][starts] for column in (table.first, table.last, table.iterations))
    place = {number: at for at, number in enumerate(first.tolist())}
    names = np.array(table.metric, dtype=object)[of_phase].tolist()
    mean: dict[str, FloatArray] = {
        name: np.full(first.size, np.nan if name == "time" else 0.0) for name in dict.fromkeys(names)
    }
    most = {name: values.copy() for name, values in mean.items()}
    rows = zip(names, table.first[of_phase].tolist(), table.mean[of_phase], table.max[of_phase], strict=True)
    for name, number, average, largest in rows:
        mean[name][place[number]], most[name][place[number]] = average, largest
    if unknown := [name for name in metrics if name not in mean]:
        raise UsageError(f"--metric {unknown[0]}: iterations of {phase} have {', '.join(mean)}")
    chosen = metrics or list(mean)
    ranks = int(table.ranks[of_phase].max())
    return IterationsView(
        phase, ranks, first, last, counts, {name: mean[name] for name in chosen}, {name: most[name] for name in chosen}
    )


def iterations_json(title: str, view: IterationsView) -> dict[str, Any]:
    """Return the spans of a phase as a JSON document. title: name of the run."""
    return document_json(
        "iterations",
        title,
        phase=view.phase,
        ranks=view.ranks,
        spans=[
            {
                "first": int(view.first[at]),
                "last": int(view.last[at]),
                "iterations": int(view.iterations[at]),
                "values": {
                    name: {"mean": _known(values[at]), "max": _known(view.max[name][at])}
                    for name, values in view.mean.items()
                },
            }
            for at in range(view.iterations.size)
        ],
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
