# SPDX-License-Identifier: Apache-2.0
"""What measuring costs: processor time of recorded runs against the program without instrumentation.

A recorded run takes some milliseconds for its start and end, whatever is selected: the shim, the calibration of clocks
and hooks, the profile and its sealing. That part is measured by runs in which one region has a hook, and is separated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quipu.modeling.errors import MeasurementError
from quipu.modeling.experiment import RegionKind
from quipu.modeling.refine import PathCosts

from ..archive.metadata import configuration_name
from ..merge.experiment import StoredRun
from .baseline import Baseline, Times

RECORDINGS = 3
"""Runs for the start and end of recording, at least: the shortest counts."""
MATERIAL = 0.1
"""Processor seconds of the budget per process from which on the start and end of recording do not matter. They took 3
to 12 ms (docs/design/refine.md), 30 ms when the processors had other work."""


@dataclass(frozen=True)
class Overhead:
    """Shares of the processor time without instrumentation, over all points.

    regions: what measuring took, without start_and_end, which starting and ending the recording took. noise: by how
    much the sum may be off, as repetitions differ; None with one repetition.
    """

    regions: float
    start_and_end: float
    noise: float | None


def error_of(overhead: float, noise: float | None) -> float:
    """Return by how much a measured overhead may be off: as repetitions differ, and as far as it is below 0.

    Measuring takes no time away: what makes runs with instrumentation faster is of the machine, and as likely makes
    others slower by as much.
    """
    return max(noise or 0.0, -overhead)


def within_budget(overhead: float, noise: float | None, budget: float) -> bool | None:
    """Return whether an overhead is within a budget; None if it is not determined (the error interval contains it)."""
    error, found = error_of(overhead, noise), max(overhead, 0.0)
    if found + error <= budget:
        return True
    return False if found - error > budget else None


def matters(plain: Times, ranks: int, budget: float) -> bool:
    """Return whether the start and end of recording can be a notable part of the budget of a run like `plain`."""
    return budget * plain.processor < MATERIAL * ranks


def root_of(costs: PathCosts) -> str | None:
    """Return the linker name of the function below which a program runs, None if no function has a hook."""
    tree, inclusive = costs.tree, costs.tree.inclusive(costs.time)
    roots = [path for path in range(len(tree)) if tree.parent[path] < 0]
    functions = [path for path in roots if tree.region_of(path).kind is RegionKind.FUNCTION]
    best = min(functions, key=lambda path: (costs.visits[path], -inclusive[path]), default=None)
    return None if best is None else tree.region_of(best).name


def start_and_end(runs: Sequence[StoredRun], plain: Times) -> float:
    """Return the processor seconds per process that starting and ending the recording takes.

    runs: with a hook in one region; plain: the same point without instrumentation. 0 if repetitions differ by more.
    """
    recorded = _by_point(runs)
    if not recorded:
        return 0.0
    (times,) = recorded.values()
    found = times[0] - plain.processor
    return found / _ranks(runs[0]) if found > math.hypot(_gap(times), plain.gap or 0.0) else 0.0


def overhead(
    runs: Sequence[StoredRun], baseline: Baseline, per_process: float, after: Baseline | None = None
) -> Overhead:
    """Return what runs cost, the shortest at each point, all points together.

    per_process: seconds that starting and ending the recording takes. after: the baseline measured again behind the
    runs; then they are compared with the mean of both, as machines get slower and faster within minutes, and half of
    the difference is noise. Raises MeasurementError without processor times.
    """
    recorded = {name: times for name, times in _by_point(runs).items() if name in baseline.times}
    sums = [sum(one.times[name].processor for name in recorded) for one in (baseline, after or baseline)]
    plain = sum(sums) / 2
    if not plain > 0.0:
        raise MeasurementError("no run of the iteration says how much processor time it took")
    ranks = {configuration_name(run.metadata.parameters): _ranks(run) for run in runs}
    fixed = sum(per_process * ranks[name] for name in recorded) / plain
    total = sum(times[0] for times in recorded.values()) / plain - 1.0
    return Overhead(total - fixed, fixed, _noise(recorded, baseline, plain, (sums[1] - sums[0]) / 2))


def _noise(recorded: Mapping[str, list[float]], baseline: Baseline, plain: float, drift: float) -> float | None:
    """Return how far sums of shortest runs may be off: the gaps to the second shortest, as independent errors, and
    the drift of the machine."""
    gaps = [_gap(times) for times in recorded.values() if len(times) > 1]
    gaps += [gap for name in recorded if (gap := baseline.times[name].gap) is not None]
    gaps += [drift] if drift else []
    return math.hypot(*gaps) / plain if gaps else None


def _gap(times: Sequence[float]) -> float:
    return times[1] - times[0] if len(times) > 1 else 0.0


def _by_point(runs: Sequence[StoredRun]) -> dict[str, list[float]]:
    """Return the processor seconds of runs by the name of their configuration, in ascending order."""
    found: dict[str, list[float]] = {}
    for run in runs:
        if run.metadata.processor_seconds is not None:
            found.setdefault(configuration_name(run.metadata.parameters), []).append(run.metadata.processor_seconds)
    return {name: sorted(times) for name, times in found.items()}


def _ranks(run: StoredRun) -> int:
    return max(1, run.metadata.ranks)
