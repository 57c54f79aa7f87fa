# SPDX-License-Identifier: Apache-2.0
"""Load a folder of run archives as one experiment."""

from __future__ import annotations

import math
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError, MeasurementError, UsageError
from quipu.modeling.experiment import (
    BETWEEN,
    CRITICAL,
    HELD,
    IMBALANCE,
    Experiment,
    FloatArray,
    IntArray,
    Metric,
    TimedPart,
)
from quipu.modeling.limits import reading
from quipu.modeling.measurement_quality import quality_line
from quipu.modeling.printable import counted
from quipu.modeling.progress import steps

from ..archive.checksums import is_archive
from ..archive.communication_table import read_communication
from ..archive.fingerprint import differences, groups
from ..archive.metadata import RunMetadata
from ..archive.read import read_archive, read_metadata
from ..archive.run import CommunicationMatrix, RankStatistics, RunArchive
from ..catalogue import COSTLY_MEASURING, DEVIATING_RUN, MIXED_RUNS, NO_RUNS, NOT_ALIKE, OTHER_PARAMETERS
from ..profile.overhead import OVERHEAD
from .class_vectors import StoredClasses
from .declared import Declared, read_declared, with_declared
from .largest_rank import columns_of_one_rank, largest_inclusive
from .overhead import DOMINATED, overhead_share
from .process_grids import process_grids
from .shard import THREAD_TIME, THREADS
from .slowest_rank import rank_times
from .unify import unify_trees

OverRanks = Literal["mean", "max", "sum"]

MOST_LEFT_OUT = 12
"""Largest number of runs that a note lists after its first run. The note gives the number of the remaining runs."""
DEVIATES = 1.5
"""A note names a run whose time differs from the median of its repetitions by more than this factor.

Tested with benchmarks/quality_thresholds.py, at a scatter of the times of 3 and 10 %. A miss is a run without a note
although it is slowed down by a factor of 1.6 or more. A false alarm is any other run with a note.
1.5: 8 % misses, no false alarms. 1.25: 0.6 % misses, 1.6 % false alarms. 2: 54 % misses, no false alarms.
"""
_LEAST_OF_MEDIAN = 3
_NAMED_OF_A_GROUP = 3
_RANKS = re.compile(r"\b(ranks?|process(?:es)?) \d+(?:[-, ]+\d+)*")


@dataclass(frozen=True)
class StoredRun:
    """A run archive in an experiment folder: its path and metadata."""

    path: Path
    metadata: RunMetadata


def find_runs(folder: Path | str) -> list[StoredRun]:
    """Return the run archives in a folder (or the folder itself if it is an archive), by parameters and repetition.

    Hidden folders (raw profiles, unfinished archives) are ignored. Raises FormatError if the folder cannot be read or
    the run.json of an archive is invalid.
    """
    runs, errors = scan_runs(folder)
    if errors:
        raise errors[0]
    return runs


def scan_runs(folder: Path | str) -> tuple[list[StoredRun], list[FormatError]]:
    """Return the readable run archives in a folder like `find_runs`, and the errors of the unreadable archives.

    Raises FormatError if the folder itself cannot be read.
    """
    folder = Path(folder)
    if is_archive(folder):
        return [StoredRun(folder, read_metadata(folder))], []
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise FormatError(folder, f"is not a readable folder: {error.strerror or error}") from error
    runs, errors = [], []
    for entry in entries:
        try:
            if is_archive(entry):
                runs.append(StoredRun(entry, read_metadata(entry)))
        except FormatError as error:
            errors.append(error)
    return sorted(runs, key=_sort_key), errors


def _sort_key(run: StoredRun) -> tuple[tuple[str, ...], tuple[float, ...], int, str]:
    parameters = run.metadata.parameters
    names = tuple(sorted(parameters))
    return (names, tuple(parameters[name] for name in names), run.metadata.repetition, run.path.name)


_mixed: ContextVar[bool] = ContextVar("mixed", default=False)


@contextmanager
def mixed_runs(allowed: bool) -> Iterator[None]:
    """If `allowed`, let `load_experiment` accept runs of different programs, commands or machines in this context."""
    token = _mixed.set(allowed)
    try:
        yield
    finally:
        _mixed.reset(token)


class NoCompleteRun(MeasurementError):
    """The experiment contains no complete run. runs: the incomplete runs."""

    def __init__(self, message: str, runs: tuple[Path, ...]) -> None:
        """Create the error from a message and the folders of the runs."""
        super().__init__(message)
        self.runs = runs


def load_experiment(folder: Path | str, over_ranks: OverRanks = "mean") -> Experiment:
    """Return the runs of a folder (or a single run archive) as one experiment.

    Two call paths of different runs are the same if the linker names of their regions from the root are equal. The
    values of a rank are combined over its threads by `over_locations` of the metric ("sum" or "max"). The values of the
    ranks are then combined by `over_ranks` ("mean", "max" or "sum"), with these exceptions:

    - For metrics with over_locations "max", the result is always the maximum over the ranks.
    - For the metric heap_held, the result is the values of the rank with the largest heap.
    - With over_ranks "max", an inclusive value is the largest inclusive value of a rank.

    Failed and partial runs are left out, and `notes` names them. `notes` also names the run with the largest overhead
    if this overhead is large. The metric `overhead` is left out; it exists only in single runs. The declarations of the
    experiment (`declared.py`) apply to all runs. If only some runs are count-only, `Experiment.timed` is the experiment
    of the other runs.

    Raises FormatError for unreadable archives, NoCompleteRun if all runs failed or are partial, UsageError for another
    `over_ranks`. Raises MeasurementError if there is no run, or if the runs have different parameters, programs,
    commands or machines (see `mixed_runs`).
    """
    folder = Path(folder)
    if over_ranks not in ("mean", "max", "sum"):
        raise UsageError(f"ranks can be combined by mean, max or sum, not by {over_ranks!r}")
    stored = find_runs(folder)
    if not stored:
        raise MeasurementError(f"{folder}: {NO_RUNS(folder=shlex.quote(str(folder)))}")
    usable = [run for run in stored if run.metadata.complete]
    notes = _left_out([run for run in stored if not run.metadata.complete])
    if not usable:
        reasons = "".join(f"\n  {note}" for note in notes)
        raise NoCompleteRun(
            f"{folder}: contains no complete run{reasons}\n  to see an incomplete run: "
            f"quipu show {shlex.quote(str(stored[0].path))}",
            tuple(run.path for run in stored),
        )
    names = _parameter_names(folder, usable)
    usable.sort(key=lambda run: run.metadata.counts_only)  # runs with times come first, as `usable[:timed]` requires
    notes.extend(_expect_alike(folder, usable))
    archives = [read_archive(run.path, values=False) for run in steps("reading runs", usable)]
    whole, paths = _experiment(folder, names, usable, archives, over_ranks)
    notes_of_all = (*notes, *whole.notes)
    timed = sum(not run.metadata.counts_only for run in usable)
    if not 0 < timed < len(usable):
        return replace(whole, notes=notes_of_all)
    part, own = _experiment(folder, names, usable[:timed], archives[:timed], over_ranks)
    places = np.zeros(len(part.tree), dtype=np.int64)
    for here, there in zip(own, paths[:timed], strict=True):
        places[here] = there
    part = replace(part, notes=(*notes, *part.notes))
    return replace(whole, notes=notes_of_all, quality=part.quality, timed=TimedPart(part, places))


def _experiment(
    folder: Path,
    names: tuple[str, ...],
    usable: Sequence[StoredRun],
    archives: Sequence[RunArchive],
    over_ranks: OverRanks,
) -> tuple[Experiment, list[IntArray]]:
    """Return runs as one experiment, and for each run an array: the index of its call paths in the experiment."""
    notes = [*_problems(archives), *_slowed(archives)]
    tree, paths = unify_trees([archive.tree for archive in archives])
    points, configuration, repetition = _layout(names, usable)
    metrics = _metrics(archives)
    declared = Declared() if is_archive(folder) else read_declared(folder)
    grids, doubts = process_grids(
        names,
        points,
        with_declared([run.metadata for run in usable], declared),
        configuration,
        lambda: _matrices(usable),
    )
    notes.extend(doubts)
    shape = (len(tree), points.shape[0], int(repetition.max()) + 1)
    with reading(folder, sum(file.stat().st_size for run in usable for file in run.path.glob("*.parquet"))) as cost:
        beside = {"mean": 2 * (IMBALANCE in metrics), "max": len(metrics), "sum": 0}[over_ranks]
        cost.spend(8 * math.prod(shape) * (len(metrics) + beside))
    values = {}
    for name, metric in metrics.items():
        column = np.full(shape, np.nan)
        for archive, path, where, count in zip(archives, paths, configuration, repetition, strict=True):
            known = _statistics(archive, name)
            if known is not None:
                column[:, where, count] = 0.0
                column[path, where, count] = _combined(known, metric, over_ranks)
        values[name] = column
    if HELD in values:  # not the mean over ranks: the rank with the largest heap runs out of memory first
        with_heap = [number for number, archive in enumerate(archives) if HELD in archive.statistics]
        held = columns_of_one_rank([archives[number] for number in with_heap], HELD)
        for number, of_one in zip(with_heap, held, strict=True):
            values[HELD][paths[number], configuration[number], repetition[number]] = of_one
    excess = {}
    if over_ranks == "mean" and IMBALANCE in metrics:
        excess = {name: np.full(shape, np.nan) for name in (IMBALANCE, BETWEEN)}
        for archive, path, where, count in zip(archives, paths, configuration, repetition, strict=True):
            if IMBALANCE in archive.statistics:
                own = archive.statistics[IMBALANCE]
                most = archive.statistics[CRITICAL].max if CRITICAL in archive.statistics else own.max
                for name, largest_of in ((IMBALANCE, own.max), (BETWEEN, np.maximum(most, own.max))):
                    excess[name][:, where, count] = 0.0
                    excess[name][path, where, count] = largest_of - own.mean
    largest: dict[str, FloatArray] = {}
    if over_ranks == "max":
        places = list(zip(configuration, repetition.tolist(), strict=True))
        largest, bounded = largest_inclusive(archives, paths, places, metrics, shape)
        notes.extend(bounded)
    found = Experiment(
        name=folder.resolve().name,
        parameters=names,
        points=points,
        tree=tree,
        metrics=metrics,
        values=values,
        over_ranks=over_ranks,
        notes=tuple(notes),
        oversubscribed=np.isin(
            np.arange(points.shape[0]),
            [where for run, where in zip(usable, configuration, strict=True) if run.metadata.oversubscribed],
        ),
        grids=grids,
        excess=excess,
        largest=largest,
        rank_times=rank_times(archives, configuration, repetition.tolist()),
        exact_times=all(run.metadata.simulated_by_effort for run in usable),
        loaded=_loaded(usable, configuration, repetition, shape[1:]),
        classes=StoredClasses(archives, paths, configuration),
    )
    found = replace(found, notes=(*found.notes, *_deviating(found, usable, configuration, repetition)))
    scatter = found.scatter if repetition.any() and "time" in values else None
    kept_time = [run.metadata.quality for run in usable if not run.metadata.counts_only]
    return replace(found, quality=quality_line(kept_time, scatter) if kept_time else ""), paths


def _expect_alike(folder: Path, runs: Sequence[StoredRun]) -> list[str]:
    """Return, as a list, a note if the runs have different fingerprints.

    Raises MeasurementError in this case, unless `mixed_runs` allows different fingerprints.
    """
    found = groups(runs, [run.metadata.fingerprint for run in runs])
    if len(found) == 1:
        return []
    one, other = sorted(found, key=len, reverse=True)[:2]
    pairs = ((a.metadata.fingerprint, b.metadata.fingerprint) for a in one for b in other)
    what = "; ".join(next((texts for pair in pairs if (texts := differences(*pair))), ()))
    further = f" and {len(found) - 2} further groups" if len(found) > 2 else ""
    text = f"{_group(one)} and {_group(other)}{further}"
    if not _mixed.get():
        raise MeasurementError(MIXED_RUNS(folder=folder, groups=text, what=what))
    return [NOT_ALIKE(groups=text, what=what)]


def _group(runs: Sequence[StoredRun]) -> str:
    names = ", ".join(run.path.name for run in runs[:_NAMED_OF_A_GROUP])
    return f"{counted(len(runs), 'run', 'runs')} ({names}{' …' if len(runs) > _NAMED_OF_A_GROUP else ''})"


def _left_out(runs: Sequence[StoredRun]) -> list[str]:
    """Return notes on the runs that are left out.

    Runs share a note if their reasons differ only in the numbers of ranks or processes.
    """
    alike: dict[str, list[StoredRun]] = {}
    for run in runs:
        alike.setdefault(_RANKS.sub("ranks or processes", why_incomplete(run.metadata)), []).append(run)
    return [_left_out_together(own) for own in alike.values()]


def _left_out_together(runs: Sequence[StoredRun]) -> str:
    first, *others = runs
    text = f"{first.path.name} is left out: {why_incomplete(first.metadata)}"
    if not others:
        return text
    names = ", ".join(run.path.name for run in others[:MOST_LEFT_OUT])
    more = f" and {len(others) - MOST_LEFT_OUT} more" if len(others) > MOST_LEFT_OUT else ""
    how = "is another one" if len(others) == 1 else f"are {len(others)} others"
    return f"{text}; so {how}: {names}{more}"


def _problems(archives: Sequence[RunArchive]) -> list[str]:
    """Return the problems of runs. Each text occurs once, with the names of the runs that have this problem."""
    runs: dict[str, list[str]] = {}
    for archive in archives:
        for problem in archive.metadata.problems:
            runs.setdefault(problem, []).append(archive.path.name)
    return [f"{_named(names, len(archives))}: {problem}" for problem, names in runs.items()]


def _named(names: list[str], of: int) -> str:
    if len(names) == 1:
        return names[0]
    return f"all {of} runs" if len(names) == of else f"{len(names)} of {of} runs, as {names[0]}"


def _matrices(runs: Sequence[StoredRun]) -> dict[int, CommunicationMatrix]:
    """Return, for each number of ranks, the communication matrix of the first run with this number, if it has one."""
    found: dict[int, CommunicationMatrix] = {}
    for ranks, own in {run.metadata.ranks: run for run in reversed(runs)}.items():
        if (matrix := read_communication(own.path)) is not None:
            found[ranks] = matrix
    return found


def why_incomplete(metadata: RunMetadata) -> str:
    """Return a text that explains why a run is not complete."""
    if metadata.problems:
        return "; ".join(metadata.problems)
    if metadata.exit_code is None:
        return "the exit code of the program is unknown"
    if metadata.exit_code != 0:
        return f"the program ended with exit code {metadata.exit_code}"
    return "it is partial"


def _parameter_names(folder: Path, runs: Sequence[StoredRun]) -> tuple[str, ...]:
    """Return the names of the parameters, in the order of the first run.

    Raises MeasurementError if another run has other parameters.
    """
    first = runs[0].metadata.parameters
    for run in runs[1:]:
        if set(run.metadata.parameters) != set(first):
            raise MeasurementError(
                OTHER_PARAMETERS(
                    folder=folder,
                    first=runs[0].path.name,
                    names=_listed(first),
                    other=run.path.name,
                    others=_listed(run.metadata.parameters),
                )
            )
    return tuple(first)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _layout(names: tuple[str, ...], runs: Sequence[StoredRun]) -> tuple[FloatArray, list[int], IntArray]:
    """Return the points in sorted order, shape (configurations, parameters), and the place of each run.

    The place of a run is the index of its configuration, and the index of its repetition there, from 0.
    """
    keys = [tuple(float(run.metadata.parameters[name]) for name in names) for run in runs]
    ordered = sorted(set(keys))
    index = {key: number for number, key in enumerate(ordered)}
    taken: dict[int, int] = defaultdict(int)
    configuration = [index[key] for key in keys]
    repetition = np.zeros(len(runs), dtype=np.int64)
    for number, run_index in enumerate(configuration):
        repetition[number] = taken[run_index]
        taken[run_index] += 1
    points = np.array(ordered, dtype=np.float64).reshape(len(ordered), len(names))
    return points, configuration, repetition


def _loaded(
    runs: Sequence[StoredRun], configuration: Sequence[int], repetition: IntArray, shape: tuple[int, int]
) -> NDArray[np.bool_]:
    """Return which runs were made on a loaded machine; shape (configurations, repetitions)."""
    loaded = np.zeros(shape, dtype=bool)
    loaded[list(configuration), repetition] = [run.metadata.loaded for run in runs]
    return loaded


def _slowed(archives: Sequence[RunArchive]) -> list[str]:
    """Return, as a list, a note on the run with the largest share of overhead if this share is above `DOMINATED`."""
    share = {
        archive: 0.0 if archive.metadata.simulated_by_effort else overhead_share(archive.metadata.overhead)
        for archive in archives
    }
    worst = max(archives, key=lambda archive: share[archive])
    if share[worst] <= DOMINATED:
        return []
    return [COSTLY_MEASURING(percent=100 * share[worst], run=worst.path.name, path=shlex.quote(str(worst.path)))]


def _deviating(
    experiment: Experiment, runs: Sequence[StoredRun], configuration: Sequence[int], repetition: IntArray
) -> list[str]:
    """Return a note on each run whose time differs from the median of its repetitions by more than `DEVIATES`.

    Configurations with fewer than three repetitions get no note.
    """
    if "time" not in experiment.values or repetition.max() < _LEAST_OF_MEDIAN - 1:
        return []
    times = np.where(np.isfinite(experiment.values["time"]).any(axis=0), experiment.program("time"), np.nan)
    notes = []
    for run, where, count in zip(runs, configuration, repetition.tolist(), strict=True):
        known = times[where][np.isfinite(times[where])]
        median, own = float(np.median(known)) if known.size else 0.0, float(times[where, count])
        if run.metadata.counts_only or known.size < _LEAST_OF_MEDIAN or not median > 0:
            continue
        if not 1 / DEVIATES <= own / median <= DEVIATES:
            notes.append(
                DEVIATING_RUN(
                    run=run.path.name,
                    times=own / median,
                    repetitions=known.size,
                    own=1e3 * own,
                    median=1e3 * median,
                )
            )
    return notes


def _metrics(archives: Sequence[RunArchive]) -> dict[str, Metric]:
    """Return the metrics of all runs by name, without overhead and critical time.

    Raises FormatError if two runs define a metric differently.
    """
    metrics: dict[str, Metric] = {}
    for archive in archives:
        for metric in archive.metadata.metrics:
            if metric.name in (OVERHEAD.name, CRITICAL):
                continue
            known = metrics.setdefault(metric.name, metric)
            if replace(known, description="") != replace(metric, description=""):
                raise FormatError(
                    archive.path / "run.json", f"defines the metric {metric.name} differently than the other runs"
                )
    return metrics


def _statistics(archive: RunArchive, name: str) -> RankStatistics | None:
    """Return the statistics of a metric over the ranks of a run; None if they are unknown.

    The archive of a run with one thread per rank has no thread_time and threads; they follow from time and visits.
    """
    if name in archive.statistics or not {"time", "visits"} <= archive.statistics.keys():
        return archive.statistics.get(name)
    if name == THREAD_TIME:
        return archive.statistics["time"]
    if name == THREADS:
        visits = archive.statistics["visits"]
        parts = {part: np.minimum(getattr(visits, part), 1.0) for part in ("sum", "min", "max", "mean", "std")}
        return replace(visits, **parts)
    return None


def _combined(statistics: RankStatistics, metric: Metric, over_ranks: OverRanks) -> FloatArray:
    if metric.over_locations == "max" or over_ranks == "max":
        return statistics.max
    return statistics.mean if over_ranks == "mean" else statistics.sum
