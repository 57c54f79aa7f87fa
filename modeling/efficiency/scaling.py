# SPDX-License-Identifier: Apache-2.0
"""Computation scalability: useful time of a run relative to the run with the fewest processors of its series.

U is the useful time (outside of MPI and OpenMP) of all processors together. W is the expected relative work: 1 for
strong scaling, the number of processors for weak scaling.

    computation scalability = (U reference / W reference) / (U / W) = instruction · IPC · frequency scaling

Instruction scaling compares the numbers of instructions, IPC scaling the instructions per cycle, frequency scaling the
cycles per second. Without cycles, instructions per second are used for IPC · frequency. If the processor did not count
instructions, effort replaces them.
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
_HALF = 0.5  # limit of the exponent with which total work grows with processors: 0 in strong, 1 in weak scaling


@dataclass(frozen=True, eq=False)
class Scaling:
    """The reference of a run, and the kind of scaling; "none" if both have the same number of processors."""

    kind: Kind
    reference: RunTimes


def scalings(runs: Sequence[RunTimes], wanted: str = "auto") -> list[Scaling]:
    """Return the reference of each run: the run with the fewest processors of its series.

    runs: one per configuration of an experiment. Runs that differ only in the number of processors form a series. If no
    two runs do, and all have different numbers of processors, all runs form one series. wanted: "strong", "weak", or
    "auto": weak if the total work grows with an exponent of at least 1/2 of the processors.
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
    """Return the parameters whose value is a number of processors in all runs, by name.

    Each has the kind of its number: "ranks", "processors" (ranks · threads) or "threads" (per rank).
    """
    found = {}
    for name in runs[0].point if runs else ():
        for size in ("ranks", "processors", "threads"):
            if all(run.point[name] == getattr(run, size) for run in runs):
                found[name] = size
                break
    return found


def size_at(runs: Sequence[RunTimes], point: Mapping[str, float]) -> tuple[int, int]:
    """Return the number of ranks, and of threads per rank, at a point.

    If no parameter gives a number, it is the number of the run with the fewest processors.
    """
    known = {size: int(point[name]) for name, size in resource_parameters(runs).items()}
    fewest = min(runs, key=lambda run: (run.processors, run.ranks))
    threads = known.get("threads", fewest.threads)
    return known.get("ranks", known.get("processors", fewest.processors) // threads), threads


def reference_at(runs: Sequence[RunTimes], point: Mapping[str, float]) -> RunTimes | dict[str, float]:
    """Return the reference of a point: a run, or a point that must be predicted.

    It is the run with the fewest processors among the runs that differ only in the number of processors. Without such
    runs, it is the run with the fewest processors if all runs form one series. Otherwise it is the point itself with
    the numbers of processors of that run.
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
    """Return a key for each run; runs of one series have equal keys."""
    resources = resource_parameters(runs)
    points = [tuple(run.point.values()) for run in runs]
    keys = [tuple(value for name, value in run.point.items() if name not in resources) for run in runs]
    own = {key: {point for point, other in zip(points, keys, strict=True) if other == key} for key in keys}
    sizes = {point: run.processors for point, run in zip(points, runs, strict=True)}
    if all(len(members) == 1 for members in own.values()) and len(set(sizes.values())) == len(sizes):
        return [()] * len(runs)
    return keys


def kind_of(wanted: str, done: float, at_reference: float, times: float) -> Kind:
    """Return the kind of scaling of a run. wanted: "strong", "weak" or "auto".

    done, at_reference: total work of the run and of the reference; times: ratio of their numbers of processors.
    """
    if times == 1.0:
        return "none"
    if wanted in ("strong", "weak"):
        return "weak" if wanted == "weak" else "strong"
    if not (done > 0.0 and at_reference > 0.0):
        return "strong"
    return "weak" if math.log(done / at_reference) / math.log(times) >= _HALF else "strong"


def weight(kind: Kind, processors: int) -> float:
    """Return the expected relative work W of a run."""
    return float(processors) if kind == "weak" else 1.0


@dataclass(frozen=True, eq=False)
class Work:
    """The work of all processors of a run together outside of MPI and OpenMP, by scope.

    useful: seconds. counts: instructions, cycles or effort, by metric. All arrays have shape (3, scopes).
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
    """Return the computation scalability of each scope and its factors by name, each of shape (3, scopes).

    Factors without the necessary counts are missing.
    """
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
    """Return the total work of the program: effort if it is known, else instructions, else useful seconds."""
    found = next((work.counts[name] for name in (*EFFORTS, *INSTRUCTIONS) if name in work.counts), work.useful)
    return float(found[0, -1])
