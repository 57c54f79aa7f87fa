# SPDX-License-Identifier: Apache-2.0
"""Add the counts of a counter source to a run, as metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import CallTree, FloatArray

from ..archive.metadata import RunMetadata
from ..archive.run import RunArchive, RunValues
from ..counters.effort import Effort
from ..counters.source import Counted, CounterSource, Wanted
from ..profile.reader import Clock, ProcessProfile
from .functions import flat_profile
from .statistics import cells_of, statistics_of

# Largest relative difference between the clock frequencies that runs on the same processor measure. Short runs measure
# them less exactly.
_ONE_CLOCK = 0.01


def counted_by(metadata: RunMetadata, raw: Path, tree: CallTree, profiles: Sequence[ProcessProfile]) -> Counted:
    """Return the counts of the counter source of the launch, and the frequency of the clock of the profiles.

    raw: the raw folder, tree: the call paths of the run. If the additional run for the source failed, the result has no
    counts, because they would be incomplete. Raises FormatError if this version has no source of this name.
    """
    name = str(metadata.counters.get("source", Effort.name))
    source = _source(name)
    if source is None:
        raise FormatError(raw, f"was counted by {name!r}, a source that this version does not have")
    if failed := metadata.counters.get("failed"):
        counted = Counted((), (), {}, {}, (f"the run that {name} counted in {failed}",))
    else:
        wanted = metadata.counters.get("wanted", ())
        counted = source.collect(raw, tree, Wanted(tuple(map(str, wanted))), [p.attributes for p in profiles])
    simulated = metadata.launcher.get("family") == "smpi"
    ticks = [p.seconds_per_tick for p in profiles if p.clock is Clock.TSC and p.seconds_per_tick > 0]
    if ticks and not simulated:
        return replace(counted, facts={**counted.facts, "clock_hz": 1 / ticks[0]})
    return counted


def clock_of(runs: Iterable[RunMetadata]) -> float | None:
    """Return the frequency of the time stamp counter that measured the runs (Hz).

    Returns None if the frequencies of the runs differ, or if one is unknown.
    """
    found = [run.counters.get("clock_hz") for run in runs]
    clocks = [float(clock) for clock in found if isinstance(clock, int | float) and 0 < clock < 1e12]
    if not clocks or len(clocks) < len(found) or max(clocks) > (1 + _ONE_CLOCK) * min(clocks):
        return None
    return median(clocks)


def _source(name: str) -> CounterSource | None:
    """Return the counter source of this name, or None. Sources other than effort are imported only if named."""
    if name == Effort.name:
        return Effort()
    from ..counters.choose import SOURCES

    return next((entry for entry in SOURCES if entry.name == name), None)


def with_counters(archive: RunArchive, counted: Counted) -> RunArchive:
    """Return the run with the counts of a source as additional metrics.

    The counts become statistics, and, if the run has them, values of each rank. A counter belongs to a whole
    rank; its value is in the row of the first thread. The statistics contain only ranks with counts. Metrics that the
    run already has are not replaced.
    """
    metrics = tuple(metric for metric in counted.metrics if metric.name not in archive.metrics)
    facts: Mapping[str, Any] = {**archive.metadata.counters, **counted.facts}
    problems = (*archive.metadata.problems, *counted.problems)
    metadata = replace(archive.metadata, counters=facts, problems=tuple(dict.fromkeys(problems)))
    if not metrics or not counted.ranks:
        return replace(archive, metadata=metadata)
    numbers = np.array(counted.ranks, dtype=np.int64)
    paths = len(archive.tree)
    rows = RunValues(
        np.repeat(np.arange(paths), numbers.size),
        np.tile(numbers, paths),
        np.zeros(paths * numbers.size, dtype=np.int64),
        {metric.name: counted.values[metric.name].T.reshape(-1) for metric in metrics},
    )
    statistics = statistics_of(cells_of(rows, metrics, numbers, paths).cells, metrics)
    if archive.values is not None:
        statistics = {name: replace(entry, sketches=None) for name, entry in statistics.items()}
    return replace(
        archive,
        metadata=replace(metadata, metrics=(*metadata.metrics, *metrics)),
        values=None if archive.values is None else _joined(archive.values, rows),
        statistics={**archive.statistics, **statistics},
    )


def with_flat_profile(archive: RunArchive, profiles: Iterable[ProcessProfile]) -> RunArchive:
    """Return the run with a flat profile by function in its metadata, counters["functions"].

    Returns the run unchanged if no addresses were sampled.
    """
    functions = flat_profile(profiles)
    if not functions:
        return archive
    counters = {**archive.metadata.counters, "functions": functions}
    return replace(archive, metadata=replace(archive.metadata, counters=counters))


def _joined(values: RunValues, counted: RunValues) -> RunValues:
    """Return the rows of a run with additional columns for the counters.

    The first row of each call path and rank gets the value of the counter, all other rows get 0.
    """
    place: dict[tuple[int, int], int] = {}
    keys = zip(values.callpath.tolist(), values.rank.tolist(), strict=True)
    for row, key in enumerate(keys):
        place.setdefault(key, row)
    metrics = dict(values.metrics)
    for name, column in counted.metrics.items():
        full: FloatArray | np.ndarray[Any, np.dtype[np.int64]] = np.zeros(values.callpath.size, dtype=np.int64)
        for path, rank, value in zip(counted.callpath.tolist(), counted.rank.tolist(), column.tolist(), strict=True):
            if value and (path, rank) in place:
                full[place[path, rank]] = value
        metrics[name] = full
    return replace(values, metrics=metrics)
