# SPDX-License-Identifier: Apache-2.0
"""The models of one experiment: for each metric, exclusive and inclusive models of all call paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .catalogue import UNKNOWN_METRIC
from .counts.predictions import CountModels
from .errors import ModelingError
from .experiment import CallTree, Experiment, Metric
from .notebook import MOST_ROWS, data_frame, short_paths, table_html
from .pmnf.model import Model, add, present
from .pmnf.options import NoModel
from .priors.path_model import PathModel
from .slowest_rank import SlowestRank
from .table_columns import CALLPATH
from .times.predictions import TimeModels

if TYPE_CHECKING:
    import pandas

MEASURED, SUM = "measured", "sum"
_SHOWN = ("time", "blocks", "bytes_sent")  # metrics shown in a notebook


def of_time(experiment: Experiment, analysis: Analysis) -> tuple[Experiment, Analysis]:
    """Return the experiment of the runs with times, and the models of its call paths.

    Both are returned unchanged if the experiment has no count-only runs, or no runs with times.
    """
    if experiment.timed is None:
        return experiment, analysis
    found = analysis.at_paths(experiment.of_time.tree, experiment.timed.paths.tolist())
    return experiment.of_time, replace(found, ranges=found.timed_ranges or found.ranges, timed_ranges=())


@dataclass(frozen=True, eq=False)
class Analysis:
    """The models of an experiment.

    - exclusive: by metric, one model per call path of `tree`. ranges: (lowest, highest) measured value per parameter.
    - over_ranks: how values of ranks are combined, "mean", "max" or "sum". notes: texts for the user.
    - oversubscribed: measured points with more ranks than processors.
    - slowest_rank: the slowest rank at the point where its time exceeds the mean over ranks most; None if it is
      unknown, or if it dominates at no point (`slowest_rank.py`).
    - run_scatter: nine of ten runs differ from the mean of their configuration by at most this number in ln(time of the
      program); None if unknown.
    - quality: one line about the quality of the measurement.
    - counts: laws of effort and communication, from which counts are predicted; None for models from a file.
    - timed_ranges: ranges of the runs with times, if other runs are count-only; () if equal to `ranges`.
    - times: rates of computation, from which times are predicted; None if executions of loops were not counted, and for
      models from a file.
    - heap_moments: models of the largest heap minus the heap at call paths; () for models from a file.
    """

    name: str
    parameters: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...]
    tree: CallTree
    metrics: dict[str, Metric]
    exclusive: dict[str, tuple[PathModel, ...]]
    over_ranks: str = "mean"
    notes: tuple[str, ...] = ()
    oversubscribed: tuple[tuple[float, ...], ...] = ()
    slowest_rank: SlowestRank | None = None
    run_scatter: float | None = None
    quality: str = ""
    counts: CountModels | None = None
    timed_ranges: tuple[tuple[float, float], ...] = ()
    times: TimeModels | None = None
    heap_moments: tuple[Model, ...] = ()

    def ranges_of(self, metric: str) -> tuple[tuple[float, float], ...]:
        """Return for each parameter the range (lowest, highest) in which a metric was measured."""
        known = self.metrics.get(metric)
        return self.ranges if known is None or known.is_effort else self.timed_ranges or self.ranges

    def models(self, metric: str, inclusive: bool = False) -> tuple[PathModel, ...]:
        """Return the models of a metric for all call paths. Raises ModelingError for an unknown metric."""
        if metric not in self.exclusive:
            known = ", ".join(sorted(self.exclusive)) or "none"
            raise ModelingError(UNKNOWN_METRIC(name=self.name, metric=metric, known=known))
        return self._inclusive[metric] if inclusive else self.exclusive[metric]

    def frame(self, metric: str, inclusive: bool = False) -> pandas.DataFrame:
        """Return the models of a metric as a data frame, indexed by call path (`tree.unique_labels`).

        Columns: `model`, a formula, "" without a model; `error`, in percent (SMAPE), NaN if unknown; `basis`, the
        measurements and priors of the model; `note`. Raises ModelingError for an unknown metric, EnvironmentProblem
        without pandas.
        """
        rows = self._rows(metric, inclusive)
        names = ("model", "error", "basis", "note")
        columns = {name: np.array([row[number] for row in rows], dtype=object) for number, name in enumerate(names)}
        columns["error"] = columns["error"].astype(np.float64)
        return data_frame([(CALLPATH, np.array(self.tree.unique_labels, dtype=object))], columns)

    def _rows(self, metric: str, inclusive: bool = False) -> list[tuple[str, float, str, str]]:
        rows = []
        for entry in self.models(metric, inclusive):
            if isinstance(entry.model, Model):
                error = entry.model.quality.smape if entry.model.quality is not None else np.nan
                rows.append((str(entry.model), error, entry.basis, "; ".join(entry.model.notes)))
            else:
                rows.append(("", np.nan, entry.basis, entry.model.reason))
        return rows

    def __repr__(self) -> str:
        return f"<Models of {self.name}: {len(self.tree)} call paths; metrics {', '.join(self.metrics)}>"

    def _repr_html_(self) -> str:
        facts = [(name, f"{low:g} to {high:g}") for name, (low, high) in zip(self.parameters, self.ranges, strict=True)]
        facts += [("quality", self.quality)] if self.quality else []
        facts += [("note", note) for note in self.notes]
        facts.append(("metrics", f"{', '.join(self.metrics)}; all models of one: frame(metric)"))
        shown = [name for name in _SHOWN if name in self.metrics] or list(self.metrics)
        paths = self._largest_first(shown[0])
        if len(paths) > MOST_ROWS:
            facts.append(("shown", f"the {MOST_ROWS} of {len(paths)} call paths with most {shown[0]}"))
            paths = paths[:MOST_ROWS]
        names = short_paths([self.tree.unique_labels[path] for path in paths])
        rows = []
        for metric in shown:
            of_metric = self._rows(metric)
            for name, (model, error, _, note) in zip(names, (of_metric[path] for path in paths), strict=True):
                if model not in ("", "0"):
                    rows.append((name, metric, model, "" if np.isnan(error) else f"{error:.2g} %", note))
        return table_html(f"Models of {self.name}", facts, ("call path", "metric", "model", "error", "note"), rows)

    def _largest_first(self, metric: str) -> list[int]:
        """Return the numbers of all call paths in descending order of a metric at the largest parameter values."""
        largest = np.array([[high for _, high in self.ranges]])

        def value(model: Model | NoModel) -> float:
            try:
                return float(model.evaluate(largest)[0]) if isinstance(model, Model) else 0.0
            except ModelingError:  # not defined there
                return 0.0

        values = np.array([value(entry.model) for entry in self.models(metric)])
        order: list[int] = np.argsort(-values, kind="stable").tolist()
        return order

    def lacks_model(self, metric: str, path: int) -> bool:
        """Return whether a call path lacks an exclusive model. A caller without measurements needs no model."""
        model = self.exclusive[metric][path].model
        return isinstance(model, NoModel) and not (model == NoModel() and self.tree.children[path])

    def at_paths(self, tree: CallTree, paths: Sequence[int]) -> Analysis:
        """Return the models of the call paths with these numbers, for `tree`, which contains them in this order.

        Laws of counts are left out.
        """
        times = None if self.times is None else self.times.at_paths(paths)
        exclusive = {name: tuple(entries[path] for path in paths) for name, entries in self.exclusive.items()}
        return replace(self, tree=tree, exclusive=exclusive, counts=None, times=times)

    @cached_property
    def from_effort(self) -> Analysis:
        """Return the models in which time has no growth beyond effort: without waiting and slowdowns."""
        time = tuple(replace(entry, model=entry.from_effort, lower=None) for entry in self.exclusive.get("time", ()))
        return replace(self, exclusive={**self.exclusive, "time": time}, times=None)

    @cached_property
    def _inclusive(self) -> dict[str, tuple[PathModel, ...]]:
        return {name: self._sum_up(name) for name in self.exclusive}

    def _sum_up(self, metric: str) -> tuple[PathModel, ...]:
        exclusive = self.exclusive[metric]
        if self.metrics[metric].over_locations == "max":
            return exclusive
        ranges = self.ranges_of(metric)
        least = [name for name, (low, _) in zip(self.parameters, ranges, strict=True) if low == 1.0]
        result = []
        for path in range(len(self.tree)):
            below = self.subtree(path)
            parts = [model for number in below if isinstance(model := exclusive[number].model, Model)]
            if len(below) == 1:
                result.append(exclusive[path])
            elif not parts:
                result.append(PathModel(NoModel("no call path below has a model"), SUM))
            else:
                total = add([present(part, least) for part in parts])
                absent, notes = self._absence(parts, least)
                missing = sum(self.lacks_model(metric, number) for number in below)
                has = "has" if missing == 1 else "have"
                notes += (f"{missing} of {len(below)} call paths {has} no model",) if missing else ()
                model = Model(
                    self.parameters, total.constant, total.terms, None, ranges, total.covariance, (), notes, absent
                )
                shared = any(exclusive[number].oversubscribed for number in below)
                result.append(PathModel(model, SUM, oversubscribed=shared))
        return tuple(result)

    @staticmethod
    def _absence(parts: Sequence[Model], least: Sequence[str]) -> tuple[tuple[tuple[str, float], ...], tuple[str, ...]]:
        """Return the pairs (parameter, value) at which all parts of a sum are absent, and notes on partial absence.

        A note names the pairs at which only some parts are absent. least: parameters that are never below 1. The value
        1 of these parameters causes no note, because the sum is correct at this value.
        """
        some = [set(part.absent) for part in parts if part.constant or part.terms]
        everywhere = set.intersection(*some) if some else set()
        partly = set().union(*some) - everywhere - {(name, 1.0) for name in least}
        where = ", ".join(f"{name}={value:g}" for name, value in sorted(partly))
        notes = (f"the formula is not that of {where}, where parts are not executed",) if where else ()
        return tuple(sorted(everywhere)), notes

    def subtree(self, path: int) -> tuple[int, ...]:
        """Return the numbers of a call path and of all call paths below it, ascending.

        The start and the end of MPI are left out, unless the call path is part of them.
        """
        found, stack, outside = [], [path], self.tree.start_and_end
        while stack:
            node = stack.pop()
            found.append(node)
            stack.extend(child for child in self.tree.children[node] if outside[child] == outside[path])
        return tuple(sorted(found))
