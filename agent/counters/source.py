# SPDX-License-Identifier: Apache-2.0
"""The interface of counter sources, and their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import UsageError
from quipu.modeling.experiment import CallTree, Metric
from quipu.modeling.machine import Machine


@dataclass(frozen=True)
class Counted:
    """The counts of a source in a run.

    ranks: the rank of each row of values. values: exclusive counts of each metric, shape (ranks, call paths). facts:
    the name of the source ("source") and details, for the archive. problems: texts about missing counts.
    """

    metrics: tuple[Metric, ...]
    ranks: tuple[int, ...]
    values: Mapping[str, NDArray[np.int64]]
    facts: Mapping[str, Any]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """The requested counters: names in `quipu.modeling.counters.COUNTERS`, or events of the source.

    Empty: all counters of the source on this machine.
    """

    names: tuple[str, ...] = field(default=())

    def chosen(self, metrics: Sequence[Metric]) -> tuple[Metric, ...]:
        """Return the requested metrics among the metrics of a source."""
        return tuple(metric for metric in metrics if not self.names or metric.name in self.names)

    def among(self, metrics: Sequence[Metric], counted: Collection[str]) -> bool:
        """Return whether the names `counted` contain all requested metrics of a source."""
        return all(metric.name in counted for metric in self.chosen(metrics))


class CounterSource(ABC):
    """One source of counters. name: its name in options and archives."""

    name: str

    @abstractmethod
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics that the source can count."""

    @abstractmethod
    def unavailable(self, names: Sequence[str] = ()) -> str:
        """Return why the source cannot be used on this machine, and what to do; empty if it can be used.

        names: the requested counters, as in `Wanted`.
        """

    def knows(self, event: str) -> bool:
        """Return whether `event` is the name of an event that this source can count."""
        return False

    def of_machine(self, machine: Machine) -> CounterSource:
        """Return a source that simulates the caches of a described machine.

        Raises UsageError if this source does not simulate given caches.
        """
        raise UsageError(f"--machine: belongs to --counters cachegrind, {self.name} does not simulate its caches")

    def variables(self, wanted: Wanted) -> Mapping[str, str]:
        """Return the environment variables that name the events for the runtime to count while the program runs."""
        return {}

    def shims(self, raw: Path, python: bool = False) -> tuple[str, ...]:
        """Return shell scripts that start the program in another way; each one is used in a separate, additional run.

        The result is empty if the source needs no additional run. raw: the raw folder (files of the measured
        processes), into which the scripts write. python: whether Python functions are regions.
        """
        return ()

    @abstractmethod
    def collect(
        self, raw: Path, tree: CallTree, wanted: Wanted, attributes: Sequence[Mapping[str, str]] = ()
    ) -> Counted:
        """Return the counts of the call paths of a tree. Raises FormatError for damaged files.

        raw: the raw folder. attributes: attributes of each process from its profile.
        """
