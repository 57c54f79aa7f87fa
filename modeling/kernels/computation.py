# SPDX-License-Identifier: Apache-2.0
"""Computation of kernels: T_comp + BF_mem · T_mem from counters (Eq. 2 and 3, Tables 1 and 2 of the APMT paper).

All values are per rank. With counted stalls, BF_mem follows from them. Without, CPI_core and BF_mem are fitted to all
measured configurations by Eq. 5 (least squares, `refinement`). Without counted accesses, T_mem is part of T_comp.

The paper models a function as a whole. Quipu models each call path of a function separately (a part), because the same
function may grow differently in two places. The method "paper" has one part per kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..counters import LEVELS
from ..experiment import Experiment, FloatArray
from ..machine import Machine
from ..pmnf.model import Prediction
from .counts import Counters, Counts
from .few import fit_line
from .growth import Growth, Method, growths, product, summed
from .identify import Kernel
from .refinement import DOUBT, UNHIDDEN, CpiAndBlocking, deviation, from_stalls, refined
from .reuse import Costs, ReuseTime, reuse_time
from .served import Served, served
from .variables import Variables, timed

# Seconds per instruction above which the operating system causes the time (it clears or reclaims pages): even a load
# from memory takes less. Such time follows the amount of memory.
_NOT_ITS_OWN = 2e-7
# A line in the amount of work replaces the model by instructions if it has at most this part of its residual.
_BETTER = 0.5


@dataclass(frozen=True)
class Part:
    """The model of some call paths of a kernel.

    counts: measured counters. fitted: seconds per instruction, and per unit of a further effort. instructions, further:
    growth of both. levels: growth of the accesses that each cache level serves. time: growth of the time itself, if
    instructions were not counted or do not explain it. reuse: T_mem by reuse distances; replaces levels.
    """

    counts: Counts
    fitted: CpiAndBlocking
    instructions: Growth | None
    further: Growth | None
    levels: Mapping[str, Growth | Served]
    time: Growth | None
    reuse: ReuseTime | None = None


@dataclass(frozen=True)
class KernelModel:
    """The model of the computation of a kernel.

    counts: sums over all its call paths. clock: clock of the processor (Hz). latencies: seconds per access of each
    cache level. clocks: clock of each measured configuration (Hz), shape (C,). frequency: name of the parameter that
    sets the clock, if any.
    """

    kernel: Kernel
    counts: Counts
    parts: tuple[Part, ...]
    clock: float
    latencies: Mapping[str, float]
    clocks: FloatArray
    frequency: str | None = None

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
        """Return the time of the parts that counters do not explain, per rank, in seconds."""
        return summed([part.time.at(point) for part in self.parts if part.time is not None])

    def memory(self, point: Mapping[str, float]) -> Prediction:
        """Return BF_mem · T_mem, T_mem = T_L1 + T_L2 + T_LLC + T_mm (Table 2), per rank, in seconds.

        With reuse distances, BF_mem applies to the memory time as measured. The additional memory time at the point,
        where distances are larger, counts fully (`UNHIDDEN`).
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
    def cpi(self) -> FloatArray:
        """CPI of the whole kernel at each measured configuration, in computation only; NaN without instructions."""
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
    def cpi_deviation(self) -> float:
        """The deviation of CPI over the configurations (Eq. 4); NaN without instructions."""
        known = self.cpi[np.isfinite(self.cpi)]
        return deviation(known) if known.size else float("nan")

    @property
    def blocking(self) -> float:
        """BF_mem (Eq. 3): time waited for memory / T_mem, summed over the measured configurations; NaN if unknown."""
        times = [float(part.counts.memory_time(self.latencies).sum()) for part in self.parts]
        waited = sum(part.fitted.blocking * time for part, time in zip(self.parts, times, strict=True))
        return waited / sum(times) if sum(times) > 0 else float("nan")

    @property
    def residual(self) -> float:
        """Root mean square of the relative errors of the modeled time; parts are weighted by their time."""
        weights = [float(part.counts.time.sum()) for part in self.parts]
        squares = [weight * part.fitted.residual**2 for weight, part in zip(weights, self.parts, strict=True)]
        return (sum(squares) / sum(weights)) ** 0.5 if sum(weights) > 0 else 0.0


def kernel_models(
    experiment: Experiment,
    variables: Variables,
    kernels: Sequence[Kernel],
    times: FloatArray,
    clock: float,
    machine: Machine | None = None,
    method: Method = "quipu",
) -> tuple[KernelModel, ...]:
    """Return the models of kernels, in their order.

    times: seconds per rank, shape (call paths, C). clock: Hz. machine: gives the latencies; without it T_mem is part of
    T_comp.
    """
    latencies = {} if machine is None else {level: machine.latency(level) for level in LEVELS}
    costs = Costs.of(machine.reach) if machine is not None and variables.has_amount and method == "quipu" else None
    clocks = variables.clocks(experiment.parameters, experiment.points, clock)
    counters = Counters(experiment, times, clocks, bool(latencies), costs)
    whole = [counters.of(kernel.paths) for kernel in kernels]
    program = refined(whole, latencies, clocks, None, method)
    fits: list[tuple[int, Counts, CpiAndBlocking]] = []
    for number, kernel in enumerate(kernels):
        together = refined([whole[number]], latencies, clocks, program, method)
        for paths in (kernel.paths,) if method == "paper" else tuple((path,) for path in kernel.paths):
            counts = counters.of(paths)
            if not counts.time.any():
                continue
            if counts.stalls is not None and counts.instructions is not None and counts.levels:
                fits.append((number, counts, from_stalls(counts, latencies, clocks)))
            else:
                fits.append((number, counts, refined([counts], latencies, clocks, together, method)))
    parts = _with_growth(experiment, variables, fits, method, costs)
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


def _with_growth(
    experiment: Experiment,
    variables: Variables,
    fits: Sequence[tuple[int, Counts, CpiAndBlocking]],
    method: Method,
    costs: Costs | None,
) -> list[tuple[int, Part]]:
    """Return the parts with the index of their kernel. Counters of one kind are modeled in one batch."""
    wanted: dict[bool, list[tuple[int, str, FloatArray]]] = {True: [], False: []}
    for number, (_, counts, fitted) in enumerate(fits):
        if counts.instructions is None:
            wanted[False].append((number, "time", counts.time))
            continue
        wanted[counts.exact].append((number, "instructions", counts.instructions))
        if fitted.unit:
            wanted[True].append((number, "further", counts.further[fitted.unit]))
        if method == "paper" or not variables.has_amount:
            wanted[False] += [(number, level, values) for level, values in counts.levels.items() if values.any()]
        elif counts.reuse is not None:
            wanted[True].append((number, "accesses", counts.reuse.accesses))
        elif counts.levels:
            wanted[True].append((number, "accesses", counts.accesses))
    found: dict[tuple[int, str], Growth] = {}
    for exact, entries in wanted.items():
        if entries:
            rows = np.stack([values for *_, values in entries])
            absences = [fits[number][1].absence for number, *_ in entries]
            models = growths(experiment, variables, rows, exact, method, absences)
            found |= {(number, what): model for (number, what, _), model in zip(entries, models, strict=True)}
    amounts = variables.amounts(experiment.parameters, experiment.points) if variables.has_amount else None
    use = timed(experiment)

    def present(counts: Counts) -> NDArray[np.bool_]:
        return counts.absence.present(experiment.parameters, experiment.points)

    def levels_of(number: int, counts: Counts) -> dict[str, Growth | Served]:
        if amounts is None or (number, "accesses") not in found:
            return {level: found[number, level] for level in counts.levels if (number, level) in found}
        growth, here = found[number, "accesses"], present(counts)
        total = counts.accesses[here]
        return {level: served(growth, amounts[here], total, own[here]) for level, own in counts.levels.items()}

    def part_of(number: int, counts: Counts, fitted: CpiAndBlocking) -> Part:
        time = found.get((number, "time"))
        # Instructions that the pass did not count come from another run, which may have done other work.
        unsure = counts.seconds_per_instruction > _NOT_ITS_OWN or (counts.waits is not None and not counts.exact)
        if method == "quipu" and amounts is not None and counts.instructions is not None and unsure:
            here = use & present(counts)
            line = fit_line(amounts[here], counts.time[here])
            if line.residual < _BETTER * fitted.residual:
                return Part(counts, fitted, None, None, {}, Growth(line, "few functions", variables, counts.absence))
        instructions, further = found.get((number, "instructions")), found.get((number, "further"))
        if counts.reuse is None or costs is None or amounts is None:
            return Part(counts, fitted, instructions, further, levels_of(number, counts), time)
        here = present(counts)
        reuse = reuse_time(counts.reuse.where(here), costs, found[number, "accesses"], amounts[here])
        return Part(counts, fitted, instructions, further, {}, time, reuse)

    return [(at, part_of(number, counts, fitted)) for number, (at, counts, fitted) in enumerate(fits)]
