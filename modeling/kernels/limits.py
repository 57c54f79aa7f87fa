# SPDX-License-Identifier: Apache-2.0
"""Describe what limits a kernel, and what a developer can do, as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .communication import Kind
from .computation import KernelModel
from .counts import THRESHOLD_E
from .identify import KernelKind
from .model import GroupPrediction, KernelPrediction, ProgramModel
from .transfers import Transfers

# A part of the time above which it is the limit, and a part of the accesses that counts as many.
_MOST, _MANY = 0.5, 0.05
# The largest mean of cycles per instruction that instructions need without waiting: the cycles of a division of
# registers, the slowest instruction (Fog 2022, "Instruction tables": throughput of 4 to 8 on processors since 2015). A
# function above this value waits for something that was not counted.
_SLOWEST = 8.0
# The work per rank does not scale if it falls by less than this part of the increase of the ranks.
_SCALES = 0.5


@dataclass(frozen=True)
class Limit:
    """cause: a few words; advice: a sentence."""

    cause: str
    advice: str


_NOTHING = Limit("not executed", "the models predict that it is not executed at this point")


def limit_of_kernel(model: ProgramModel, prediction: KernelPrediction, point: Mapping[str, float]) -> Limit:
    """Return the limit of a kernel at a point."""
    growth = _speedup(model, prediction, point)
    kernel = prediction.model
    total = prediction.total.value
    if total <= 0:
        return _NOTHING
    if prediction.unexplained.value > _MOST * total:
        return _unexplained(kernel)
    if prediction.memory.value > _MOST * total:
        misses = kernel.counts.criterion
        if kernel.counts.reuse is not None:
            return Limit(
                "memory",
                "it waits for data that are no longer in a near cache when it uses them again: work on blocks that "
                "fit, fuse loops over the same arrays, use smaller types, and access data in their order in memory",
            )
        if misses > THRESHOLD_E:
            return Limit(
                "memory",
                f"{misses:.1%} of its accesses go to memory: use each line that is loaded more often (blocking, fusing "
                "loops, smaller types), and prefer one pass over several",
            )
        return Limit(
            "caches",
            "it waits for caches, not for memory: keep its working set in the first level (blocking), and shorten "
            "chains of loads that depend on each other",
        )
    if growth is not None and growth < _SCALES:
        why = (
            "every rank does the same work for any number of ranks"
            if growth < 0.1
            else "its work per rank decreases more slowly than 1/ranks"
        )
        return Limit("not divided among ranks", f"{why}: divide it, or do it once and send the result")
    if math.isfinite(kernel.blocking) and kernel.blocking > _MANY and prediction.memory.value > 0.2 * total:
        return Limit(
            "instructions and caches",
            f"{kernel.blocking:.0%} of the memory time is not hidden behind computation: more independent loads "
            "in flight (unrolling, prefetching) would hide more",
        )
    if typical_cpi(kernel) > _SLOWEST:
        return _too_long(kernel)
    return Limit(
        "instructions",
        "executing its instructions takes the time: vectorize, reduce operations, or use a faster algorithm",
    )


def typical_cpi(kernel: KernelModel) -> float:
    """Return the mean CPI over the measured configurations; NaN without instructions."""
    known = kernel.cpi[np.isfinite(kernel.cpi)]
    return float(known.mean()) if known.size else math.nan


def _unexplained(kernel: KernelModel) -> Limit:
    if kernel.counts.instructions is not None and typical_cpi(kernel) > _SLOWEST:
        return _too_long(kernel)
    return Limit(
        "not known", "most of it has no counted instructions: its time was predicted from measured times alone"
    )


def _too_long(kernel: KernelModel) -> Limit:
    return Limit(
        "uncounted",
        f"its instructions take {_cycles(typical_cpi(kernel))} cycles each, more than any instruction alone: it waits "
        "for memory, calls functions without counts (libraries), or needs the operating system (threads, files, page "
        "faults)",
    )


def _cycles(count: float) -> str:
    return f"{count:.3g}" if count < 1000 else f"{count:.0f}"


def limit_of_group(prediction: GroupPrediction, point: Mapping[str, float]) -> Limit:
    """Return the limit of MPI operations at a point."""
    total = prediction.total.value
    if total <= 0:
        return _NOTHING
    if prediction.model.by_time:
        return Limit(
            "not known", "its bytes and messages are unknown: its time was predicted from measured times alone"
        )
    if prediction.waiting.value > _MOST * total:
        return Limit("waiting", "ranks wait for others: balance the work, or do independent work first")
    parts = {column.symbol: column for column in prediction.model.columns}
    if prediction.model.group.kind is Kind.COLLECTIVE:
        if "bytes" in parts and len(parts) == 1:
            return Limit("volume", "transferring its bytes takes the time: send less, or reduce before exchanging")
        return Limit(
            "latency",
            "the latency of its steps takes the time: make fewer calls with more values, or use a nonblocking form",
        )
    by_network = [column.amount for column in parts.values() if isinstance(column.amount, Transfers)]
    of_bytes = any(amount.is_of_bytes(point) for amount in by_network)
    if of_bytes or ("bytes" in parts and len(parts) == 1):
        return Limit(
            "volume",
            "transferring its bytes takes the time: send less (packing, smaller types), or overlap it with work",
        )
    return Limit(
        "latency",
        "the latency of its messages takes the time: send fewer and longer messages, or overlap them with work",
    )


def _speedup(model: ProgramModel, prediction: KernelPrediction, point: Mapping[str, float]) -> float | None:
    """Return the speedup of a kernel from the fewest measured processes to the point, relative to the ideal speedup."""
    name = model.variables.processes
    if name is None or prediction.kernel.kind is KernelKind.REST:
        return None
    fewest = model.ranges[model.parameters.index(name)][0]
    if point[name] < 2 * fewest or (model.variables.size is None and model.variables.others):
        return None
    there = model.at({**point, name: fewest})
    before = next(kernel.total.value for kernel in there.kernels if kernel.kernel == prediction.kernel)
    now = prediction.total.value
    if now <= 0:
        return None
    return before / now / (point[name] / fewest)
