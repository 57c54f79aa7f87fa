# SPDX-License-Identifier: Apache-2.0
"""The metadata of a run: parameters, command, exit code, nodes, and what disturbed the measurement."""

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
"""Names of key columns of the tables, which metrics must not have."""


OTHERS_MATTER = 0.25
"""Times count as disturbed if other programs use at least this number of processors. An idle system uses less.

benchmarks/quality_thresholds.py measures false alarms and misses with half and twice this number.
"""

Bytes = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class NodeFacts(TypedDict, total=False):
    """The known keys in the record that a node agent writes about its node. The record may contain further keys."""

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
    """The known keys of the record about the launcher that have a fixed type. The record contains further keys."""

    family: str
    version: str


@dataclass(frozen=True)
class RunMetadata:
    """Metadata of one repetition of one configuration.

    - parameters: value by name. repetition: number from 1. started: time of the start (ISO 8601, UTC).
    - seconds: elapsed time of the launch. exit_code: -N if signal N ended the launched process, as in `subprocess`.
      Both are None if the process of Quipu that launched the program was killed.
    - processor_seconds: processor time of the launched process and of all its descendants that were waited for.
    - partial: whether data are missing. problems: texts that say which and why.
    - ranks: number of ranks.
    - launcher: facts about the launch. environment_added: variables that the run added to the environment.
    - metrics: the measured metrics. nodes: one record for each node (`NodeFacts`).
    - overhead: see `merge.overhead.totals`; empty if unknown.
    - rank_columns: whether the archive contains the values of each rank; otherwise only statistics over the ranks.
    - grid: extents of the Cartesian process grid, declared by the user or created by the program; empty if unknown.
      periodic: for each dimension, whether the first and the last rank are neighbours; empty if unknown.
    - counters: the source of the hardware counters ("source") and its settings; "clock_hz": frequency of the time stamp
      counter (Hz), if this counter measured the times.
    - fingerprint: the conditions of the run; None in archives of earlier versions.
    - threads: largest number of concurrent threads of a rank; 1 in archives of earlier versions.
    - counts_only: only effort and communication were measured, without times (`quipu run --counts`).
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
        """Return whether the run ended without an error and contains every rank."""
        return self.exit_code == 0 and not self.partial

    @property
    def oversubscribed(self) -> bool:
        """Return whether a node had more ranks times threads than processors, so that times contain waiting.

        Always False for count-only runs and for simulated ranks.
        """
        if self.counts_only or self.launcher.get("family") == "smpi":
            return False
        return any(self._needed(node) > _processors(node) for node in self.nodes)

    def _needed(self, node: Mapping[str, Any]) -> int:
        """Return the number of processors needed to run all ranks of a node and their threads at the same time."""
        return len(node.get("ranks") or ()) * self.threads

    @property
    def others(self) -> float | None:
        """Return the mean number of processors that other programs used on the busiest node; None if unknown.

        On the host of the launch, the number is the load minus the processor time of the launched processes. On other
        nodes, it is the load minus one processor for each thread of each rank.
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
        """Return whether other programs used processors that the ranks needed, so that times contain waiting.

        Always False for count-only runs, and for simulated ranks: SimGrid measures the processor time of its thread.
        """
        others = self.others
        if self.counts_only or others is None or others < OTHERS_MATTER or self.launcher.get("family") == "smpi":
            return False
        return any(self._needed(node) + others > _processors(node) + OTHERS_MATTER for node in self.nodes)

    @property
    def processors(self) -> tuple[int, int] | None:
        """Return the number of processors that the ranks and threads needed, and the number that they could use.

        Both are sums over the nodes. Returns None if they are unknown.
        """
        known = [(self._needed(node), _processors(node)) for node in self.nodes]
        if not known or any(math.isinf(available) for _, available in known):
            return None
        return sum(needed for needed, _ in known), int(sum(available for _, available in known))

    @property
    def quality(self) -> RunQuality:
        """Return what is known about disturbances of the measurement."""
        simulated = self.ranks if self.launcher.get("family") == "smpi" else 0
        disturbed = self.others, self.oversubscribed, self.loaded
        return RunQuality(self.processors, *disturbed, simulated, self.simulated_by_effort, self.threads)

    @property
    def simulated_by_effort(self) -> bool:
        """Return whether the time of simulated computation is effort × rate, not its duration on this machine."""
        return self.launcher.get("compute") == "effort"


def _load_beyond(needed: int, node: Mapping[str, Any]) -> list[float]:
    """Return, as a list, the mean number of busy processors of a node minus `needed`, at least 0.

    The list is empty if the node has fewer than two samples of its load.
    """
    # A sample is a mean over the interval since the last sample, so the first sample is not valid.
    samples = [sample for sample in node.get("samples") or () if isinstance(sample, dict)][1:]
    percents = [sample.get("cpu_percent") for sample in samples]
    known = [float(percent) for percent in percents if isinstance(percent, int | float)]
    cpus = node.get("cpus")
    if not known or not cpus:
        return []
    return [max(0.0, sum(known) / len(known) / 100 * cpus - needed)]


def _processors(node: Mapping[str, Any]) -> float:
    """Return the number of processors that the ranks of a node could use, inf if unknown.

    If the binding of all ranks is known, only the processors to which they are bound count.
    """
    bound = [rank.get("bound") for rank in node.get("ranks") or ()]
    allowed = {cpu for own in bound for cpu in own or ()}
    return min(len(allowed) if all(bound) and bound else math.inf, node.get("cpus") or math.inf)


def configuration_name(parameters: Mapping[str, float]) -> str:
    """Return the name of a configuration for folder names, such as "p=4,n=100000"; "run" if there are no parameters.

    Raises MeasurementError for an invalid name of a parameter, because the name becomes part of a path.
    """
    if strange := [name for name in parameters if not is_parameter(name)]:
        raise MeasurementError(f"{strange[0]!r} is not a valid name of a parameter: use letters, digits and _")
    return ",".join(f"{name}={number_text(value)}" for name, value in parameters.items()) or "run"


def number_text(value: float) -> str:
    """Return the value of a parameter as text; whole numbers have no decimal point."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
