# SPDX-License-Identifier: Apache-2.0
"""What is known of a run besides its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import msgspec
from quipu.modeling.documents import Count, Number, Positive, Whole, is_parameter
from quipu.modeling.errors import MeasurementError
from quipu.modeling.experiment import Metric
from quipu.modeling.measurement_quality import RunQuality

from .fingerprint import Fingerprint

RESERVED = frozenset({"callpath", "rank", "thread"})
"""Names of the other columns, which no metric may have."""


OTHERS_MATTER = 0.25
"""Processors that others use from which on times count as disturbed: services of an idle system use less.

benchmarks/quality_thresholds.py measures false alarms and misses with half and twice this number.
"""

Bytes = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class NodeFacts(TypedDict, total=False):
    """What a node agent wrote of its host, as far as anything reads it; other keys may be there."""

    host: str
    ended: bool
    cpus: Count | None
    cores: Count | None
    memory_bytes: Bytes | None
    agent_seconds: Number | None
    ranks: list[Any] | None
    samples: list[Any] | None
    processes: list[Any] | None
    counters: dict[str, Number] | None


class LauncherFacts(TypedDict, total=False):
    """What is known of a launcher, as far as anything reads it; other keys may be there."""

    family: str
    version: str


@dataclass(frozen=True)
class RunMetadata:
    """One repetition of one configuration: what was started, how it ended, and its problems.

    seconds and exit_code are None while they are not known (the launching process itself was killed).
    processor_seconds: of the launched processes, as far as the launcher waited for them.
    exit_code is negative if a signal ended the launched process, as in `subprocess`.
    overhead: what measuring cost, see overhead.totals. rank_columns: the archive has the
    values of every rank, and not their statistics alone. grid: the extents of the process grid, as declared, or as
    the program made it. periodic: in which of its dimensions the first rank and the last are neighbours; empty if the
    program does not say. counters: which source counted what the processor did ("source"), and how; "clock_hz": what
    time was counted in, if that was the time stamp counter. fingerprint: what was measured and how, None in archives
    of earlier versions. threads: of a rank, so many ran at once; 1 in archives of earlier versions. counts_only: effort
    and communication were measured, and no time (`quipu run --counts`).
    """

    parameters: Mapping[str, Number] = field(default_factory=dict)
    repetition: Positive = 1
    command: tuple[str, ...] = ()
    started: str = ""
    seconds: Number | None = None
    processor_seconds: Number | None = None
    exit_code: Whole | None = None
    partial: bool = False
    problems: tuple[str, ...] = ()
    ranks: Count = 0
    launcher: Mapping[str, Any] = field(default_factory=dict)
    environment_added: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[Metric, ...] = ()
    nodes: tuple[Mapping[str, Any], ...] = ()
    overhead: Mapping[str, Number] = field(default_factory=dict)
    quipu_version: str = ""
    rank_columns: bool = True
    grid: tuple[Positive, ...] = ()
    periodic: tuple[bool, ...] = ()
    counters: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: Fingerprint | None = None
    threads: Positive = 1
    counts_only: bool = False

    @property
    def complete(self) -> bool:
        """Whether the run ended well and every rank is in it."""
        return self.exit_code == 0 and not self.partial

    @property
    def oversubscribed(self) -> bool:
        """Whether ranks and threads shared processors, so that times contain waiting. Simulated time does not."""
        if self.counts_only or self.launcher.get("family") == "smpi":
            return False
        return any(self._needed(node) > _processors(node) for node in self.nodes)

    def _needed(self, node: Mapping[str, Any]) -> int:
        """Return how many processors the ranks of a node and their threads need to run at once."""
        return len(node.get("ranks") or ()) * self.threads

    @property
    def others(self) -> float | None:
        """How many processors others used on average on the busiest node, as far as is known.

        Of the host of the launch all is known: the load without what the launched processes used. Of other nodes it is
        what was used beyond one processor for each rank.
        """
        measured = self.launcher.get("others")
        found = [float(measured)] if isinstance(measured, int | float) and measured >= 0 else []
        if self.launcher.get("family") != "smpi":
            here = self.launcher.get("host") if found else None
            others = [node for node in self.nodes if node.get("host") != here]
            found += [load for node in others for load in _load_beyond(self._needed(node), node)]
        return max(found, default=None)

    @property
    def loaded(self) -> bool:
        """Whether others used processors that the ranks needed, so that times contain waiting for one.

        Simulated time does not: SimGrid reads the processor time of the simulating thread.
        """
        others = self.others
        if self.counts_only or others is None or others < OTHERS_MATTER or self.launcher.get("family") == "smpi":
            return False
        return any(self._needed(node) + others > _processors(node) + OTHERS_MATTER for node in self.nodes)

    @property
    def processors(self) -> tuple[int, int] | None:
        """How many processors ranks and threads could use at once, and how many there were on these nodes, if known."""
        known = [(self._needed(node), _processors(node)) for node in self.nodes]
        if not known or any(math.isinf(available) for _, available in known):
            return None
        return sum(needed for needed, _ in known), int(sum(available for _, available in known))

    @property
    def quality(self) -> RunQuality:
        """What disturbed the run, as far as is known."""
        simulated = self.ranks if self.launcher.get("family") == "smpi" else 0
        disturbed = self.others, self.oversubscribed, self.loaded
        return RunQuality(self.processors, *disturbed, simulated, self.simulated_by_effort, self.threads)

    @property
    def simulated_by_effort(self) -> bool:
        """Whether computation took simulated time by its effort, whatever it took here, measuring included."""
        return self.launcher.get("compute") == "effort"


def _load_beyond(needed: int, node: Mapping[str, Any]) -> list[float]:
    """Return how many processors of a node were used beyond the needed ones; nothing if it was not sampled twice."""
    samples = [sample for sample in node.get("samples") or () if isinstance(sample, dict)][1:]  # the first has no span
    percents = [sample.get("cpu_percent") for sample in samples]
    known = [float(percent) for percent in percents if isinstance(percent, int | float)]
    cpus = node.get("cpus")
    if not known or not cpus:
        return []
    return [max(0.0, sum(known) / len(known) / 100 * cpus - needed)]


def _processors(node: Mapping[str, Any]) -> float:
    """Return how many processors the ranks of a node could use: those they were bound to, if that is known of all."""
    bound = [rank.get("bound") for rank in node.get("ranks") or ()]
    allowed = {cpu for own in bound for cpu in own or ()}
    return min(len(allowed) if all(bound) and bound else math.inf, node.get("cpus") or math.inf)


def configuration_name(parameters: Mapping[str, float]) -> str:
    """Return the name of a configuration as in folder names: "p=4,n=100000"; "run" if there are no parameters.

    Raises MeasurementError if a parameter is called as none may be: what else would the path lead to?
    """
    if strange := [name for name in parameters if not is_parameter(name)]:
        raise MeasurementError(f"{strange[0]!r} is no name of a parameter: letters, digits and _ only")
    return ",".join(f"{name}={number_text(value)}" for name, value in parameters.items()) or "run"


def number_text(value: float) -> str:
    """Return a parameter value as text: whole numbers without a fraction."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
