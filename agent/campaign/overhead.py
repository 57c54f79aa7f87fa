# SPDX-License-Identifier: Apache-2.0
"""Compute the overhead: the processor time of recorded runs compared with the program without instrumentation.

A recorded run is a run with instrumentation. The start and the end of the recording take some milliseconds, independent
of the selected regions. They consist of the shim (quipu-exec), the calibration of clocks and hooks, and the writing of
the profile. Runs in which only one region has a hook measure this part separately.
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
"""Smallest number of runs to measure the start and end of recording; the shortest of them is used."""
MATERIAL = 0.1
"""Processor seconds per process. If the budget allows more than this, the start and end of recording are ignored. They
took 3 to 12 ms (docs/design/refine.md), and 30 ms on a loaded machine."""


@dataclass(frozen=True)
class Overhead:
    """Overhead over all points, as shares of the processor time without instrumentation.

    regions: overhead of the instrumented regions. start_and_end: overhead to start and to end the recording. noise:
    error of the sum of both, from the differences between repetitions; None with one repetition.
    """

    regions: float
    start_and_end: float
    noise: float | None


def error_of(overhead: float, noise: float | None) -> float:
    """Return the error of a measured overhead: `noise`, or the magnitude of a negative overhead if this is larger.

    The true overhead is never negative. A negative measured value is therefore an error of the measurement, and the
    error can be equally large in the other direction. All values are shares.
    """
    return max(noise or 0.0, -overhead)


def within_budget(overhead: float, noise: float | None, budget: float) -> bool | None:
    """Return whether an overhead is within a budget; None if the error interval of the overhead contains the budget.

    All values are shares of the processor time without instrumentation.
    """
    error, found = error_of(overhead, noise), max(overhead, 0.0)
    if found + error <= budget:
        return True
    return False if found - error > budget else None


def matters(plain: Times, ranks: int, budget: float) -> bool:
    """Return whether the start and end of recording can be a notable part of the budget.

    plain: times without instrumentation. budget: allowed overhead, as a share of the processor time.
    """
    return budget * plain.processor < MATERIAL * ranks


def root_of(costs: PathCosts) -> str | None:
    """Return the linker name of the root function of the program, such as main; None if no root is a function.

    If several functions are roots, the result is the function with the fewest visits, then the longest time.
    """
    tree, inclusive = costs.tree, costs.tree.inclusive(costs.time)
    roots = [path for path in range(len(tree)) if tree.parent[path] < 0]
    functions = [path for path in roots if tree.region_of(path).kind is RegionKind.FUNCTION]
    best = min(functions, key=lambda path: (costs.visits[path], -inclusive[path]), default=None)
    return None if best is None else tree.region_of(best).name


def start_and_end(runs: Sequence[StoredRun], plain: Times) -> float:
    """Return the processor seconds per process to start and to end the recording.

    runs: runs of one point with a hook in one region only. plain: times of the same point without instrumentation. The
    result is 0 if it is not larger than the difference between the two shortest repetitions, or without runs.
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
    """Return the overhead of runs: the sum of the shortest run of each point, relative to the same sum of the baseline.

    per_process: processor seconds per process to start and to end the recording. after: a second baseline, measured
    after the runs, because the speed of machines changes within minutes. The runs are then compared with the mean of
    both baselines, and half of the difference of the baselines counts as noise. Raises MeasurementError if no run has
    a processor time.
    """
    recorded = {name: times for name, times in _by_point(runs).items() if name in baseline.times}
    sums = [sum(one.times[name].processor for name in recorded) for one in (baseline, after or baseline)]
    plain = sum(sums) / 2
    if not plain > 0.0:
        raise MeasurementError("no run of the iteration contains its processor time")
    ranks = {configuration_name(run.metadata.parameters): _ranks(run) for run in runs}
    fixed = sum(per_process * ranks[name] for name in recorded) / plain
    total = sum(times[0] for times in recorded.values()) / plain - 1.0
    return Overhead(total - fixed, fixed, _noise(recorded, baseline, plain, (sums[1] - sums[0]) / 2))


def _noise(recorded: Mapping[str, list[float]], baseline: Baseline, plain: float, drift: float) -> float | None:
    """Return the error of the overhead as a share of `plain`; None if nothing was repeated.

    The error is the root of the sum of the squares of the gaps between the shortest and the second shortest runs, and
    of `drift`. recorded: ascending processor seconds by configuration. plain: processor seconds without
    instrumentation, over all points. drift: half of the difference of two baselines in seconds.
    """
    gaps = [_gap(times) for times in recorded.values() if len(times) > 1]
    gaps += [gap for name in recorded if (gap := baseline.times[name].gap) is not None]
    gaps += [drift] if drift else []
    return math.hypot(*gaps) / plain if gaps else None


def _gap(times: Sequence[float]) -> float:
    return times[1] - times[0] if len(times) > 1 else 0.0


def _by_point(runs: Sequence[StoredRun]) -> dict[str, list[float]]:
    """Return, for each name of a configuration, the processor seconds of its runs in ascending order."""
    found: dict[str, list[float]] = {}
    for run in runs:
        if run.metadata.processor_seconds is not None:
            found.setdefault(configuration_name(run.metadata.parameters), []).append(run.metadata.processor_seconds)
    return {name: sorted(times) for name, times in found.items()}


def _ranks(run: StoredRun) -> int:
    return max(1, run.metadata.ranks)
