# SPDX-License-Identifier: Apache-2.0
"""Model the computation of kernels: T_comp + BF_mem · T_mem (Eq. 2 and 3, Tables 1 and 2 of the APMT paper).

All values are per rank. Without counts of stalls, CPI_core and BF_mem come from Eq. 5 over all measured configurations
by least squares (`refinement`). Without counts of accesses, all time belongs to the instructions.

The paper models a function as a whole. A function that is called in two places may grow in two ways, so each call path
is a part with a separate model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..counters import LEVELS
from ..experiment import Experiment, FloatArray
from ..machine import Machine
from ..pmnf.model import Prediction
from .amounts import Amount, Counted, Models, product, summed
from .counts import Counters, Counts
from .identify import Kernel
from .refinement import DOUBT, UNHIDDEN, CpiAndBlocking, from_stalls, refined
from .reuse import Costs, ReuseTime, reuse_time
from .served import served
from .variables import Variables


@dataclass(frozen=True)
class Part:
    """The model of a call path of a kernel: seconds per instruction, and per unit of one further effort, if any.

    instructions, further: their numbers. levels: the accesses that each memory level serves. time: a model of the time,
    if instructions were not counted. reuse: T_mem by reuse distances, instead of levels.
    """

    path: int
    counts: Counts
    fitted: CpiAndBlocking
    instructions: Amount | None
    further: Amount | None
    levels: Mapping[str, Amount]
    time: Amount | None
    reuse: ReuseTime | None = None


@dataclass(frozen=True)
class KernelModel:
    """The model of the computation of a kernel.

    counts: sum over its call paths. clock: unit of cycles in Hz; clocks: the clock of each measured configuration,
    (C,); frequency: the parameter with the clock frequency, if any. latencies: seconds of each level. doubt: half of
    the 90 % interval of the ratio of times on another machine to measured times, relative to the ratio.
    """

    kernel: Kernel
    counts: Counts
    parts: tuple[Part, ...]
    clock: float
    latencies: Mapping[str, float]
    clocks: FloatArray
    frequency: str | None = None
    doubt: float = 0.0

    def compute(self, point: Mapping[str, float]) -> Prediction:
        """Return T_comp = instructions · CPI / f (Table 2), per rank, in seconds."""
        found = []
        for part in self.parts:
            if part.instructions is not None and part.fitted.cpi > 0:
                by = part.fitted.cpi / (point[self.frequency] if self.frequency else self.clock)
                found.append(product(part.instructions.at(point), by, part.fitted.uncertainty))
            if part.further is not None:
                found.append(product(part.further.at(point), part.fitted.per_unit, part.fitted.uncertainty))
        return summed(found)

    def unexplained(self, point: Mapping[str, float]) -> Prediction:
        """Return the seconds per rank of parts whose time counts do not explain."""
        return summed([part.time.at(point) for part in self.parts if part.time is not None])

    def memory(self, point: Mapping[str, float]) -> Prediction:
        """Return BF_mem · T_mem, T_mem = T_L1 + T_L2 + T_LLC + T_mm (Table 2), per rank, in seconds.

        With reuse distances, BF_mem is the measured value. The additional time of longer distances at the point counts
        as not hidden, because nothing was measured about it.
        """
        found = [
            product(growth.at(point), part.fitted.blocking * self.latencies[level], part.fitted.uncertainty)
            for part in self.parts
            for level, growth in part.levels.items()
        ]
        for part in self.parts:
            if part.reuse is not None:
                as_measured, further = part.reuse.at(point)
                doubt = math.hypot(part.fitted.uncertainty, part.fitted.doubt)
                found.append(product(as_measured, part.fitted.blocking, doubt))
                found.append(product(further, UNHIDDEN, math.hypot(part.fitted.uncertainty, DOUBT)))
        return summed(found)

    @property
    def explained(self) -> dict[int, Explained]:
        """Return the parts with a known memory time, and the whole time of their instructions and memory accesses."""
        return {
            part.path: Explained(replace(self, parts=(part,)))
            for part in self.parts
            if (part.levels or part.reuse is not None) and part.counts.instructions is not None
        }

    @property
    def cpi(self) -> FloatArray:
        """Return CPI of the whole kernel at each configuration, in computation only; NaN without instructions."""
        if self.counts.instructions is None:
            return np.full(self.counts.time.shape, np.nan)
        blocked = sum(
            (part.fitted.blocking * part.counts.memory_time(self.latencies) for part in self.parts),
            np.zeros_like(self.counts.time),
        )
        use = (self.counts.instructions > 0) & (self.counts.time > 0)
        many = np.where(use, self.counts.instructions, np.nan)
        return np.asarray(np.maximum(self.counts.time - blocked, 0.0) * self.clocks / many)

    @property
    def blocking(self) -> float:
        """Return BF_mem: time of waiting for memory / T_mem, at the measured configurations (Eq. 3); NaN if unknown."""
        times = [float(part.counts.memory_time(self.latencies).sum()) for part in self.parts]
        waited = sum(part.fitted.blocking * time for part, time in zip(self.parts, times, strict=True))
        return waited / sum(times) if sum(times) > 0 else float("nan")

    @property
    def residual(self) -> float:
        """Return the root mean square of the relative residuals, weighted by the time of the parts."""
        weights = [float(part.counts.time.sum()) for part in self.parts]
        squares = [weight * part.fitted.residual**2 for weight, part in zip(weights, self.parts, strict=True)]
        return (sum(squares) / sum(weights)) ** 0.5 if sum(weights) > 0 else 0.0


@dataclass(frozen=True)
class Explained:
    """The time of the single part of a kernel, T_comp + BF_mem · T_mem (Eq. 2), per rank in seconds."""

    kernel: KernelModel

    @property
    def measured(self) -> FloatArray:
        """Return the time at the configurations, (C,)."""
        (part,) = self.kernel.parts
        assert part.counts.instructions is not None
        time = part.counts.instructions * part.fitted.cpi / self.kernel.clocks
        if part.fitted.unit:
            time += part.counts.further[part.fitted.unit] * part.fitted.per_unit
        return np.asarray(time + part.fitted.blocking * part.counts.memory_time(self.kernel.latencies))

    def at(self, point: Mapping[str, float]) -> Prediction:
        """Return the time at a point."""
        return summed((self.kernel.compute(point), self.kernel.memory(point)))


def kernel_models(
    experiment: Experiment,
    variables: Variables,
    kernels: Sequence[Kernel],
    times: FloatArray,
    clock: float,
    machine: Machine | None,
    models: Models,
) -> tuple[KernelModel, ...]:
    """Return the models of kernels, in their order. times: seconds per rank, (call paths, C). clock: Hz.

    machine: latencies; None: T_mem is unknown, and part of T_comp. models: predict counts at other points.
    """
    latencies = {} if machine is None else {level: machine.latency(level) for level in LEVELS}
    costs = Costs.of(machine.reach) if machine is not None and variables.has_amount else None
    clocks = variables.clocks(experiment.parameters, experiment.points, clock)
    counters = Counters(experiment, times, clocks, bool(latencies), costs)
    whole = [counters.of(kernel.paths) for kernel in kernels]
    program = refined(whole, latencies, clocks, None)
    parts: list[tuple[int, Part]] = []
    for number, kernel in enumerate(kernels):
        together = refined([whole[number]], latencies, clocks, program)
        for path in kernel.paths:
            counts = counters.of((path,))
            if not counts.time.any():
                continue
            if counts.stalls is not None and counts.instructions is not None and counts.levels:
                fitted = from_stalls(counts, latencies, clocks)
            else:
                fitted = refined([counts], latencies, clocks, together)
            parts.append((number, _part(experiment, variables, path, counts, fitted, models, costs)))
    return tuple(
        KernelModel(
            kernel,
            counts,
            tuple(part for at, part in parts if at == number),
            clock,
            latencies,
            clocks,
            variables.frequency,
        )
        for number, (kernel, counts) in enumerate(zip(kernels, whole, strict=True))
    )


def _part(
    experiment: Experiment,
    variables: Variables,
    path: int,
    counts: Counts,
    fitted: CpiAndBlocking,
    models: Models,
    costs: Costs | None,
) -> Part:
    """Return a call path with its counts at any point."""

    def amount(*names: str) -> Amount:
        return Counted(models, names, (path,))

    if counts.instructions is None:
        return Part(path, counts, fitted, None, None, {}, amount("time"))
    instructions = amount("instructions" if counts.exact else "cpu_instructions")
    further = amount(fitted.unit) if fitted.unit else None
    if not variables.has_amount:
        levels = {level: amount(LEVELS[level]) for level, own in counts.levels.items() if own.any()}
        return Part(path, counts, fitted, instructions, further, levels, None)
    amounts = variables.amounts(experiment.parameters, experiment.points)
    here = counts.absence.present(experiment.parameters, experiment.points)
    if counts.reuse is not None and costs is not None:
        accesses = amount("accesses")
        reuse = reuse_time(counts.reuse.where(here), costs, accesses, variables, amounts[here])
        return Part(path, counts, fitted, instructions, further, {}, None, reuse)
    accesses, total = amount(*(LEVELS[level] for level in counts.levels)), counts.accesses[here]
    served_by = {
        level: served(accesses, variables, amounts[here], total, own[here]) for level, own in counts.levels.items()
    }
    return Part(path, counts, fitted, instructions, further, served_by, None)
