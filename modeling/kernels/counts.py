# SPDX-License-Identifier: Apache-2.0
"""Counts of parts of a program, per configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..absence import PRESENT, Absence, absence_of
from ..counters import LEVELS, MISSES, SCATTERED
from ..experiment import Experiment, FloatArray
from ..rate_fit import METRICS, typical
from .reuse import Costs, Reuse, reuse_of

THRESHOLD_E = 1e-4
"""Last-level misses per memory access above which contention for memory shows ("E", section 4.2 of the paper)."""


@dataclass(frozen=True)
class Counts:
    """The sums of counts over some call paths, per configuration (C,): per rank, in seconds or numbers.

    time: 0 at configurations whose time is not used (`identify.times_of`). instructions: None if unknown. exact:
    whether they are effort. levels: accesses that each level served; empty if unknown. stalls: seconds of waiting for
    memory, None if not counted. further: other effort that may explain time: calls, and other counts of the pass.
    reuse: reuse distances, and waits: the resulting T_mem in seconds; None if distances were not counted or the machine
    was not measured. absence: configurations at which nothing is executed.
    """

    time: FloatArray
    instructions: FloatArray | None
    exact: bool
    levels: dict[str, FloatArray]
    stalls: FloatArray | None
    further: dict[str, FloatArray]
    reuse: Reuse | None = None
    waits: FloatArray | None = None
    absence: Absence = PRESENT

    def memory_time(self, latencies: Mapping[str, float]) -> FloatArray:
        """Return T_mem in seconds, (C,): accesses of each level times its latency (Table 2).

        With reuse distances: the time of accesses beyond the time of the first level.
        """
        if self.waits is not None:
            return self.waits
        parts = [values * latencies[level] for level, values in self.levels.items()]
        return np.asarray(sum(parts, np.zeros_like(self.time)))

    @property
    def accesses(self) -> FloatArray:
        """Return the accesses that all levels served."""
        return np.asarray(sum(self.levels.values(), np.zeros_like(self.time)))

    @property
    def criterion(self) -> float:
        """Return E = |N_LLCmiss / N_totalmem| (section 4.2), the maximum over configurations; NaN if unknown.

        With reuse distances, misses are those of the largest simulated cache.
        """
        if self.reuse is not None:
            return float(np.max(self.reuse.misses[-1] / np.maximum(self.reuse.accesses, 1.0)))
        if not self.levels:
            return float("nan")
        total = self.accesses
        missed = self.levels.get("memory", np.zeros_like(self.time))
        return float(np.max(missed / np.where(total > 0, total, 1.0)))


class Counters:
    """The counters of all call paths of an experiment, with one typical value of the repetitions."""

    def __init__(
        self, experiment: Experiment, times: FloatArray, clocks: FloatArray, memory: bool, costs: Costs | None = None
    ) -> None:
        """Read the counters of an experiment.

        times: seconds per rank (call paths, C). clocks: Hz, (C,). memory: whether latencies of the levels are known.
        costs: times by reuse distance, if known; they replace levels if reuse distances were counted.
        """
        self._experiment = experiment
        self._times = times
        self._clocks = clocks
        names = ["instructions", "cpu_instructions", "cpu_cycles", "stall_cycles", "visits", *METRICS]
        names += LEVELS.values() if memory else ()
        names += ("accesses", "bytes_in_order", *MISSES.values(), *SCATTERED.values()) if costs is not None else ()
        self._costs = costs
        self._values = {name: found for name in dict.fromkeys(names) if (found := self._typical(name)) is not None}

    def _typical(self, name: str) -> FloatArray | None:
        values = self._experiment.values.get(name)
        if values is None or not np.nan_to_num(values).any():
            return None
        effort = self._experiment.metric(name).is_effort
        return np.asarray(np.nan_to_num(values).max(axis=2)) if effort else typical(values)

    def of(self, paths: tuple[int, ...]) -> Counts:
        """Return the sums of the counts of call paths."""
        chosen = list(paths)
        found = {name: values[chosen].sum(axis=0) for name, values in self._values.items()}
        counted = set(MISSES.values()) if "accesses" in found and found["accesses"].any() else set()
        found = {name: values for name, values in found.items() if values.any() or name in counted}
        instructions = found.get("instructions")
        exact = instructions is not None
        cycles, stalls = found.get("cpu_cycles"), found.get("stall_cycles")
        reuse, waits = (reuse_of(found), None) if self._costs is not None else (None, None)
        if reuse is not None and self._costs is not None:
            one = np.ones(len(reuse.misses))
            waits = np.array([reuse.seconds(self._costs, at, one) for at in range(self._experiment.configurations)])
        return Counts(
            time=self._times[chosen].sum(axis=0) if cycles is None else cycles / self._clocks,
            instructions=instructions if exact else found.get("cpu_instructions"),
            exact=exact,
            levels={level: found[name] for level, name in LEVELS.items() if name in found and reuse is None},
            stalls=None if stalls is None else stalls / self._clocks,
            further={name: found[name] for name in ("visits", *METRICS[1:]) if exact and name in found},
            reuse=reuse,
            waits=waits,
            absence=absence_of(self._experiment, chosen),
        )
