# SPDX-License-Identifier: Apache-2.0
"""Computation scalability: useful work of a run relative to the run with the fewest processors of its series.

With W = 1 in strong and W = processors in weak scaling, and U, I, C the useful seconds, instructions and cycles of all
processors together:

    computation scalability = (U reference / W reference) / (U / W) = instruction · IPC · frequency scaling

Without cycles, instructions per second stand for IPC · frequency. Effort stands for instructions that nobody counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..experiment import FloatArray
from ..run_times import CYCLES, EFFORTS, INSTRUCTIONS, RunTimes
from .bounds import exact, ratio

Kind = Literal["strong", "weak", "none"]
KINDS = ("auto", "strong", "weak")
_HALF = 0.5  # exponent of the total work in the processors: 0 in strong scaling, 1 in weak scaling


@dataclass(frozen=True, eq=False)
class Scaling:
    """What a run is compared with. kind: "none" where the reference has as many processors, or is the run itself."""

    kind: Kind
    reference: RunTimes


def scalings(runs: Sequence[RunTimes], wanted: str = "auto") -> list[Scaling]:
    """Return what each run of an experiment, one per configuration, is compared with.

    Runs that differ in processors alone are a series; if there is no such pair, and each run has other processors, all
    are. `wanted`: "strong", "weak", or "auto": total work that grows like the processors is weak scaling.
    """
    keys = _keys(runs)
    found = []
    for run, key in zip(runs, keys, strict=True):
        series = [one for one, own in zip(runs, keys, strict=True) if own == key]
        reference = min(series, key=lambda one: (one.processors, one.ranks))
        largest = max(series, key=lambda one: (one.processors, one.ranks))
        times = largest.processors / reference.processors
        kind = kind_of(wanted, amount(work_of(largest)), amount(work_of(reference)), times)
        found.append(Scaling(kind if run.processors != reference.processors else "none", reference))
    return found


def resource_parameters(runs: Sequence[RunTimes]) -> dict[str, str]:
    """Return the parameters that say how large all runs are: name → "ranks", "threads" or "processors"."""
    found = {}
    for name in runs[0].point if runs else ():
        for size in ("ranks", "processors", "threads"):
            if all(run.point[name] == getattr(run, size) for run in runs):
                found[name] = size
                break
    return found


def size_at(runs: Sequence[RunTimes], point: Mapping[str, float]) -> tuple[int, int]:
    """Return the ranks, and the threads of each, at a point; of the run with fewest where no parameter says it."""
    known = {size: int(point[name]) for name, size in resource_parameters(runs).items()}
    fewest = min(runs, key=lambda run: (run.processors, run.ranks))
    threads = known.get("threads", fewest.threads)
    return known.get("ranks", known.get("processors", fewest.processors) // threads), threads


def reference_at(runs: Sequence[RunTimes], point: Mapping[str, float]) -> RunTimes | dict[str, float]:
    """Return what a point is compared with: the run with the fewest processors of the same series.

    Without a run that differs in processors alone, it is the run with the fewest processors if all runs are one series,
    else the point with the fewest processors that were measured, which has to be predicted.
    """
    resources = resource_parameters(runs)
    fewest = min(runs, key=lambda run: (run.processors, run.ranks))
    alike = [run for run in runs if all(run.point[name] == point[name] for name in point if name not in resources)]
    if alike:
        return min(alike, key=lambda run: (run.processors, run.ranks))
    if len(set(_keys(runs))) == 1:
        return fewest
    return {name: fewest.point[name] if name in resources else value for name, value in point.items()}


def _keys(runs: Sequence[RunTimes]) -> list[tuple[float, ...]]:
    """Return which series each run belongs to."""
    resources = resource_parameters(runs)
    points = [tuple(run.point.values()) for run in runs]
    keys = [tuple(value for name, value in run.point.items() if name not in resources) for run in runs]
    own = {key: {point for point, other in zip(points, keys, strict=True) if other == key} for key in keys}
    sizes = {point: run.processors for point, run in zip(points, runs, strict=True)}
    if all(len(members) == 1 for members in own.values()) and len(set(sizes.values())) == len(sizes):
        return [()] * len(runs)
    return keys


def kind_of(wanted: str, done: float, at_reference: float, times: float) -> Kind:
    """Return the kind of scaling of the work `done` at `times` the processors of the reference."""
    if times == 1.0:
        return "none"
    if wanted in ("strong", "weak"):
        return "weak" if wanted == "weak" else "strong"
    if not (done > 0.0 and at_reference > 0.0):
        return "strong"
    return "weak" if math.log(done / at_reference) / math.log(times) >= _HALF else "strong"


def weight(kind: Kind, processors: int) -> float:
    """Return how much work a run is expected to do (W)."""
    return float(processors) if kind == "weak" else 1.0


@dataclass(frozen=True, eq=False)
class Work:
    """What all processors of a run did outside of MPI and OpenMP, per scope, shape (3, scopes): useful seconds, counts.

    counts: metric → how often, of the metrics that were counted.
    """

    processors: int
    useful: FloatArray
    counts: Mapping[str, FloatArray]


def work_of(run: RunTimes) -> Work:
    """Return the work of a measured run."""
    counts = {
        name: exact(run.sums_of(np.where(run.useful_paths, run.sums[name], 0.0)))
        for name in (*INSTRUCTIONS, CYCLES)
        if name in run.sums and run.sums[name].any()
    }
    return Work(run.processors, exact(run.useful_sum), counts)


def computation_factors(work: Work, reference: Work, kind: Kind) -> dict[str, FloatArray]:
    """Return the computation scalability of each scope and its factors, each of shape (3, scopes)."""
    expected = weight(kind, work.processors) / weight(kind, reference.processors)
    factors = {"computation": ratio(expected * reference.useful, work.useful)}
    name = next((name for name in INSTRUCTIONS if name in work.counts and name in reference.counts), None)
    if name is None:
        return factors
    now, then = work.counts[name], reference.counts[name]
    factors["instruction"] = ratio(expected * then, now)
    if CYCLES not in work.counts or CYCLES not in reference.counts:
        factors["rate"] = ratio(ratio(now, work.useful), ratio(then, reference.useful))
        return factors
    used, used_then = work.counts[CYCLES], reference.counts[CYCLES]
    factors["ipc"] = ratio(ratio(now, used), ratio(then, used_then))
    factors["frequency"] = ratio(ratio(used, work.useful), ratio(used_then, reference.useful))
    return factors


def amount(work: Work) -> float:
    """Return how much work the program did: effort, else instructions, else seconds."""
    found = next((work.counts[name] for name in (*EFFORTS, *INSTRUCTIONS) if name in work.counts), work.useful)
    return float(found[0, -1])
