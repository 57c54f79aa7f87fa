# SPDX-License-Identifier: Apache-2.0
"""The data model of measuring and modeling: metrics, regions, call paths, configurations, values.

Values are exclusive: the value of a call path does not contain the call paths below it. Inclusive values are computed
from the tree. The number of a call path is its index in the tree, and a configuration is a row of `Experiment.points`.
All objects are immutable; no code changes their arrays after construction.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from .callpath_text import in_path
from .catalogue import NOT_MEASURED
from .class_vectors import ClassSource
from .errors import ModelingError
from .mpi_operations import operation_of
from .notebook import data_frame, summary_html
from .process_grid import ProcessGrid
from .slowest_rank import RankTimes
from .table_columns import CALLPATH, REPETITION, table_columns

if TYPE_CHECKING:
    import pandas

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PEAK, HELD = "heap_peak", "heap_held"
"""Metrics of the heap (bytes). `heap_peak`: the largest heap of the rank during an allocation of the call path.
`heap_held`: the bytes that the call path held when the heap of the rank was largest."""

# The metric of effort whose imbalance over the ranks is recorded, because this imbalance makes ranks wait.
IMBALANCE = "blocks"
CRITICAL, BETWEEN = "critical_blocks", "effort_excess"
"""Metrics of a call path in basic blocks, as sums over the intervals between synchronizations of all ranks: the maximum
over the ranks (`critical_blocks`), and the maximum minus the mean (`effort_excess`)."""


class RegionKind(Enum):
    """The kind of a region; the values equal `enum quipu_kind` in profile.def."""

    FUNCTION = 0
    MPI = 1
    OPENMP = 2
    USER = 3
    PYTHON = 4
    FILE = 5


@dataclass(frozen=True)
class Metric:
    """A quantity that is recorded for each call path.

    unit: "1" for counts. kind: "effort" (equal in all runs of a configuration) or "cost" (varies between runs, such as
    time).

    over_locations: "sum" if the values of threads are added, or "max" if their maximum is used. The same holds for the
    values of call paths in an inclusive value.
    """

    name: str
    unit: str = "1"
    kind: Literal["effort", "cost"] = "cost"
    over_locations: Literal["sum", "max"] = "sum"
    description: str = ""

    @property
    def is_effort(self) -> bool:
        """Return whether the metric does not change between runs of the same configuration."""
        return self.kind == "effort"


@dataclass(frozen=True)
class Region:
    """A part of a program with a name: a function, an MPI operation, an OpenMP construct, a user region.

    name: the linker name (MANGLED in Score-P filters). display: the name in views. file, line: of the source; "" and 0
    if unknown.
    """

    name: str
    display: str
    kind: RegionKind = RegionKind.FUNCTION
    file: str = ""
    line: int = 0

    @property
    def is_made_up(self) -> bool:
        """Return whether the region is not in the source but was added by a tool: its name is in <>."""
        return self.name.startswith("<") and self.name.endswith(">")


@dataclass(frozen=True, eq=False)
class CallTree:
    """The call paths of a program as a forest.

    Call path i ends in the region number `region[i]`, and its caller is call path `parent[i]` (-1 for a root). Callers
    come before their callees. region, parent: shape (paths,). Raises ModelingError for arrays that break these rules.
    """

    regions: tuple[Region, ...]
    region: IntArray
    parent: IntArray

    def __post_init__(self) -> None:
        if self.region.shape != self.parent.shape or self.region.ndim != 1:
            raise ModelingError("call tree: region and parent must be one-dimensional and of equal length")
        if self.parent.size and bool(np.any(self.parent >= np.arange(self.parent.size))):
            raise ModelingError("call tree: a call path comes before its parent")
        if self.parent.size and bool(np.any(self.parent < -1)):
            raise ModelingError("call tree: a parent index is below -1")
        if self.region.size and (self.region.min() < 0 or self.region.max() >= len(self.regions)):
            raise ModelingError("call tree: a call path names a region that is not in the table")

    def __len__(self) -> int:
        return int(self.parent.size)

    def __repr__(self) -> str:
        return f"<CallTree: {len(self)} call paths, {len(self.regions)} regions>"

    def region_of(self, path: int) -> Region:
        """Return the region at the end of call path `path`."""
        return self.regions[int(self.region[path])]

    def name(self, path: int) -> str:
        """Return the displayed name of the last region of call path `path`."""
        return self.region_of(path).display

    def ancestry(self, path: int) -> tuple[int, ...]:
        """Return the numbers of the call paths from the root to `path`, both included."""
        chain = []
        node = int(path)
        while node >= 0:
            chain.append(node)
            node = int(self.parent[node])
        return tuple(reversed(chain))

    def below(self, path: int) -> tuple[int, ...]:
        """Return the numbers of `path` and of all call paths below it, in ascending order."""
        found = [int(path)]
        for node in found:  # the list grows in the loop
            found.extend(self.children[node])
        return tuple(sorted(found))

    def label(self, path: int) -> str:
        """Return the call path as text, regions joined by '->' (the form that Extra-P uses)."""
        return "->".join(self.name(node) for node in self.ancestry(path))

    @cached_property
    def unique_steps(self) -> tuple[str, ...]:
        """Return the display name of the last region of every call path, made unique among siblings.

        For regions with equal display names, the linker names are added in brackets. If these are equal, too, numbers
        are added.
        """
        displays = Counter((int(parent), self.name(node)) for node, parent in enumerate(self.parent))
        taken: Counter[tuple[int, str]] = Counter()
        steps = []
        for node, parent in enumerate(self.parent.tolist()):
            region = self.region_of(node)
            alone = displays[parent, region.display] == 1
            text = region.display if alone else f"{region.display} [{region.name}]"
            taken[parent, text] += 1
            count = taken[parent, text]
            steps.append(text if count == 1 else f"{text} #{count}")
        return tuple(steps)

    @cached_property
    def unique_labels(self) -> tuple[str, ...]:
        """Return every call path as text; `callpath_text.steps_of` splits it into its unique steps."""
        labels: list[str] = []
        for step, parent in zip(map(in_path, self.unique_steps), self.parent.tolist(), strict=True):
            labels.append(f"{labels[parent]}->{step}" if parent >= 0 else step)
        return tuple(labels)

    def key(self, path: int) -> tuple[str, ...]:
        """Return the identity of a call path over all runs: the linker names from the root."""
        return tuple(self.region_of(node).name for node in self.ancestry(path))

    @cached_property
    def depth(self) -> IntArray:
        """Return the depth of every call path, 0 for roots; shape (paths,)."""
        depth = np.zeros(len(self), dtype=np.int64)
        for node, parent in enumerate(self.parent):
            if parent >= 0:
                depth[node] = depth[parent] + 1
        return depth

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Return for every call path the numbers of its callees, ascending."""
        lists: list[list[int]] = [[] for _ in range(len(self))]
        for node, parent in enumerate(self.parent):
            if parent >= 0:
                lists[int(parent)].append(node)
        return tuple(tuple(entry) for entry in lists)

    @cached_property
    def start_and_end(self) -> NDArray[np.bool_]:
        """Return whether a call path is the start or the end of MPI or below it, shape (paths,).

        These call paths are not part of the program: they run once, independent of the problem size, and grow with the
        number of ranks.
        """
        operations = [operation_of(region.name) for region in self.regions]
        flags = np.array([found is not None and found.begins_or_ends for found in operations], dtype=bool)
        result = flags[self.region] if self.region.size else np.zeros(0, dtype=bool)
        for node, parent in enumerate(self.parent):
            result[node] |= parent >= 0 and result[parent]
        return result

    @property
    def roots(self) -> tuple[int, ...]:
        """Return the numbers of the call paths without a caller."""
        return tuple(int(node) for node in np.flatnonzero(self.parent < 0))

    def inclusive(self, exclusive: FloatArray, over: Literal["sum", "max"] = "sum") -> FloatArray:
        """Return the inclusive values of an array whose first axis is the call paths; same shape.

        over: "sum", or "max" for the maximum over the call path and those below it. NaN (not measured) is ignored,
        unless the call path and all call paths below it are NaN. Values of the start and the end of MPI are not part of
        the values of their callers.
        """
        result = np.array(exclusive, dtype=np.float64, copy=True)
        measured = ~np.isnan(result)
        add, nothing = (np.maximum, -np.inf) if over == "max" else (np.add, 0.0)
        result[~measured] = nothing
        for callees, callers in self._steps:
            result[callers] = add(result[callers], result[callees])
            measured[callers] |= measured[callees]
        result[~measured] = np.nan
        return result

    @cached_property
    def _steps(self) -> tuple[tuple[IntArray, IntArray], ...]:
        """Return the steps of the summation, deepest call paths first: pairs (call paths, their callers).

        A step contains each caller at most once, so that NumPy can add whole arrays.
        """
        taken = np.zeros(len(self), dtype=np.int64)
        steps: dict[tuple[int, int], list[int]] = defaultdict(list)
        for node in range(len(self) - 1, -1, -1):
            parent = int(self.parent[node])
            if parent >= 0 and self.start_and_end[node] == self.start_and_end[parent]:
                steps[-int(self.depth[node]), int(taken[parent])].append(node)
                taken[parent] += 1
        return tuple((np.array(steps[at]), self.parent[steps[at]]) for at in sorted(steps))

    def program_total(self, exclusive: FloatArray) -> FloatArray:
        """Return the sum over all call paths except the start and the end of MPI; NaN counts as 0."""
        return np.asarray(np.nansum(exclusive[~self.start_and_end], axis=0))


def mean_over_repetitions(values: FloatArray) -> FloatArray:
    """Return the mean over the last axis of the values that are not NaN; NaN if there are none."""
    counts = np.count_nonzero(~np.isnan(values), axis=-1)
    return np.asarray(np.where(counts, np.nansum(values, axis=-1) / np.maximum(counts, 1), np.nan), dtype=np.float64)


def with_all_repetitions(values: FloatArray) -> FloatArray:
    """Return values with missing repetitions filled in, for a sum over call paths.

    values: shape (call paths, ..., repetitions). If a call path lacks a repetition that other call paths have, the
    missing value becomes the mean of its other repetitions; the sum would count it as 0 otherwise.
    """
    missing = np.isnan(values)
    gaps = missing & ~missing.all(axis=0) & ~missing.all(axis=-1, keepdims=True)
    return np.where(gaps, mean_over_repetitions(values)[..., None], values) if gaps.any() else values


def median_over_repetitions(values: FloatArray) -> FloatArray:
    """Return the median over the last axis of the values that are not NaN; NaN if there are none.

    A single slow repetition has little effect on a median.
    """
    result = np.full(values.shape[:-1], np.nan)
    some = np.asarray((~np.isnan(values)).any(axis=-1))
    if some.any():
        result[some] = np.nanmedian(values[some], axis=-1)
    return result


@dataclass(frozen=True, eq=False)
class Experiment:
    """Measurements of one program at several configurations.

    parameters: names x1 … xm.
    points:     configurations, values of the parameters, shape (configurations, m).
    tree:       the call paths of all runs together.
    metrics:    by name.
    values:     by metric, exclusive values, shape (call paths, configurations, repetitions). NaN: not measured (fewer
                repetitions, or no such metric). 0: measured, for example a call path that this configuration does not
                reach.
    over_ranks: how the values of ranks are combined ("mean", "max", "sum").
    oversubscribed: configurations with more ranks than processors, whose times contain waiting for a processor; shape
                (configurations,), None if unknown.
    loaded:     runs during which other programs used processors that the ranks needed; shape (configurations,
                repetitions), None if unknown.
    quality:    one line about the quality of the measurement, "" if unknown.
    grids:      possible process grids, the most probable first; one if the grid is known, empty if there is none.
    excess:     the maximum over ranks minus the mean, in the shape of `values`: for the metric `IMBALANCE`, over the
                whole run, and as `BETWEEN`, summed over the intervals between synchronizations if these are known.
    rank_times: time of the program in the slowest rank, and the mean over ranks, independent of `over_ranks`; None if
                unknown.
    largest:    by additive metric, the largest inclusive value of a rank, in the shape of `values`; only if `values`
                are maxima over ranks, because a sum of maxima would combine different ranks.
    exact_times: whether all times are simulated by effort, so that repetitions are equal.
    timed:      the runs with times, if other runs are count-only; None if all or no runs have times.
    classes:    reads the execution counts of loops; None if they were not measured.
    """

    name: str
    parameters: tuple[str, ...]
    points: FloatArray
    tree: CallTree
    metrics: dict[str, Metric]
    values: dict[str, FloatArray]
    over_ranks: Literal["mean", "max", "sum"] = "mean"
    notes: tuple[str, ...] = field(default=())
    oversubscribed: NDArray[np.bool_] | None = None
    grids: tuple[ProcessGrid, ...] = ()
    excess: dict[str, FloatArray] = field(default_factory=dict)
    exact_times: bool = False
    rank_times: RankTimes | None = None
    largest: dict[str, FloatArray] = field(default_factory=dict)
    loaded: NDArray[np.bool_] | None = None
    quality: str = ""
    timed: TimedPart | None = None
    classes: ClassSource | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.points.ndim != 2 or self.points.shape[1] != len(self.parameters):
            raise ModelingError(f"experiment {self.name}: points have another number of columns than parameters")
        for metric, values in [*self.values.items(), *self.excess.items(), *self.largest.items()]:
            if metric not in self.metrics and metric != BETWEEN:
                raise ModelingError(f"experiment {self.name}: values of metric {metric} that is not declared")
            if values.ndim != 3 or values.shape[:2] != (len(self.tree), self.points.shape[0]):
                raise ModelingError(f"experiment {self.name}: values of {metric} have the wrong shape {values.shape}")

        if self.rank_times is not None and self.rank_times.mean.shape[0] != self.points.shape[0]:
            raise ModelingError(f"experiment {self.name}: times of ranks have another number of configurations")

    def only(self, metrics: Collection[str]) -> Experiment:
        """Return the experiment with the metrics of these names only."""
        return replace(
            self,
            metrics={name: metric for name, metric in self.metrics.items() if name in metrics},
            values={name: values for name, values in self.values.items() if name in metrics},
            excess={
                name: values
                for name, values in self.excess.items()
                if (IMBALANCE if name == BETWEEN else name) in metrics
            },
            largest={name: values for name, values in self.largest.items() if name in metrics},
            timed=None if self.timed is None else replace(self.timed, experiment=self.timed.experiment.only(metrics)),
        )

    @property
    def of_time(self) -> Experiment:
        """Return the experiment of the runs with times; only these are used for models of time and other costs."""
        return self if self.timed is None else self.timed.experiment

    @property
    def configurations(self) -> int:
        """Return the number of configurations."""
        return int(self.points.shape[0])

    @cached_property
    def executed(self) -> NDArray[np.bool_] | None:
        """Return where call paths were executed, shape (call paths, configurations); None if visits were not measured.

        A call path was executed if its visits or its other effort are above 0. (The compiler may remove the entry of an
        inlined function and keep the rest, so visits alone are not sufficient.) Where its visits are NaN, it counts as
        executed.
        """
        visits = self.values.get("visits")
        if visits is None:
            return None
        result = np.isnan(visits).all(axis=2)
        for name, values in self.values.items():
            if self.metrics[name].is_effort:
                result |= (np.nan_to_num(values) > 0).any(axis=2)
        return np.asarray(result, dtype=bool)

    @cached_property
    def dedicated(self) -> NDArray[np.bool_]:
        """Return a mask (configurations,) of the configurations whose ranks had a processor each.

        Other programs left at least one run of these configurations undisturbed. Configurations of which the load or
        the number of processors is unknown count as undisturbed.
        """
        return np.asarray(~(self.shares_processors | self.disturbed), dtype=bool)

    @cached_property
    def shares_processors(self) -> NDArray[np.bool_]:
        """Return a mask (configurations,) of the configurations with more ranks than processors; False if unknown."""
        return np.zeros(self.configurations, dtype=bool) if self.oversubscribed is None else self.oversubscribed

    @cached_property
    def disturbed(self) -> NDArray[np.bool_]:
        """Return a mask (configurations,) of the configurations in which other programs disturbed all runs."""
        if self.loaded is None:
            return np.zeros(self.configurations, dtype=bool)
        known = self.measured_runs
        return np.asarray((self.loaded | ~known).all(axis=1) & known.any(axis=1), dtype=bool)

    @cached_property
    def measured_runs(self) -> NDArray[np.bool_]:
        """Return a mask (configurations, repetitions) of the runs for which some metric has a value.

        Metrics of imported files may have different numbers of repetitions; the largest one is used.
        """
        repetitions = max((values.shape[2] for values in self.values.values()), default=0)
        known = np.zeros((self.configurations, repetitions), dtype=bool)
        for values in self.values.values():
            known[:, : values.shape[2]] |= np.isfinite(values).any(axis=0)
        return known

    @cached_property
    def scatter(self) -> float:
        """Return the scatter of repetitions: the median over all times of (upper quartile/lower quartile - 1).

        The lower quartile is the typical time (`rate_fit.typical`). The result is 0 without repetitions or times.
        """
        times = self.values.get("time")
        if times is None or times.shape[2] < 2:
            return 0.0
        known = times[(np.isfinite(times).sum(axis=2) > 1) & (np.nan_to_num(times).min(axis=2) > 0)]
        if not len(known):
            return 0.0
        low, high = np.nanquantile(known, (0.25, 0.75), axis=1)
        return float(np.median(high / low - 1.0))

    def metric(self, name: str) -> Metric:
        """Return the metric with this name. Raises ModelingError, which lists the metrics, if there is none."""
        try:
            return self.metrics[name]
        except KeyError:
            known = ", ".join(sorted(self.metrics)) or "none"
            raise ModelingError(NOT_MEASURED(subject=f"experiment {self.name}", metric=name, known=known)) from None

    def inclusive(self, metric: str) -> FloatArray:
        """Return the inclusive values of a metric, shape (call paths, configurations, repetitions).

        Raises ModelingError for an unknown metric.
        """
        if metric in self.largest:
            return self.largest[metric]
        return self.tree.inclusive(with_all_repetitions(self.values[metric]), self.metric(metric).over_locations)

    def program(self, metric: str) -> FloatArray:
        """Return a metric of the whole program, shape (configurations, repetitions).

        If values are maxima over the ranks, the time is the time of the slowest rank, if this time is known. Other
        metrics are then sums of maxima, which are upper bounds.
        """
        if self.over_ranks == "max" and metric == "time" and self.rank_times is not None:
            return self.rank_times.high
        return self.tree.program_total(with_all_repetitions(self.values[metric]))

    def frame(self, metric: str, inclusive: bool = False) -> pandas.DataFrame:
        """Return the values of a metric as a data frame with one column, and one row per measured value.

        The index consists of the call path (`tree.unique_labels`), the parameters, and the repetition (from 1). Columns
        with equal names are renamed (`table_columns`). Raises ModelingError for an unknown metric, EnvironmentProblem
        without pandas.
        """
        self.metric(metric)
        names = table_columns(self.parameters, [metric])
        values = self.inclusive(metric) if inclusive else self.values[metric]
        path, point, repetition = np.nonzero(~np.isnan(values))
        index = {CALLPATH: np.array(self.tree.unique_labels, dtype=object)[path]}
        index |= {names.parameters[name]: self.points[point, column] for column, name in enumerate(self.parameters)}
        columns = {names.metrics[metric]: values[path, point, repetition]}
        return data_frame([*index.items(), (REPETITION, repetition + 1)], columns)

    def __repr__(self) -> str:
        points = f"{self.configurations} configurations of {', '.join(self.parameters) or 'no parameter'}"
        return f"<Experiment {self.name}: {points}; {len(self.tree)} call paths; metrics {', '.join(self.metrics)}>"

    def _repr_html_(self) -> str:
        shared, loaded = self.shares_processors, self.disturbed & ~self.shares_processors
        waiting = {"oversubscribed": np.count_nonzero(shared), "on a loaded machine": np.count_nonzero(loaded)}
        facts = [
            ("call paths", str(len(self.tree))),
            ("configurations", str(self.configurations)),
            *((reason, f"{count} of these") for reason, count in waiting.items() if count),
            *(
                (name, ", ".join(f"{x:g}" for x in np.unique(x)))
                for name, x in zip(self.parameters, self.points.T, strict=True)
            ),
            ("values", f"{self.over_ranks} over ranks"),
            *(("note", note) for note in self.notes),
        ]
        return summary_html(f"Experiment {self.name}", facts, self.metrics.values())


@dataclass(frozen=True, eq=False)
class TimedPart:
    """The runs with times of an experiment that also has count-only runs.

    experiment: the experiment of these runs alone. paths: the number of each of its call paths in the whole experiment.
    """

    experiment: Experiment
    paths: IntArray
