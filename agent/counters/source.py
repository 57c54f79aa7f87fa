# SPDX-License-Identifier: Apache-2.0
"""What every source of counters offers, and what it counted."""

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
    """What a source counted in a run.

    ranks: of the rows. values: per metric int64 of shape (ranks, call paths), exclusive. facts: what the archive says
    of the source: "source", and how it counted. problems: what could not be counted, for people.
    """

    metrics: tuple[Metric, ...]
    ranks: tuple[int, ...]
    values: Mapping[str, NDArray[np.int64]]
    facts: Mapping[str, Any]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """What is to be counted: names of `quipu.modeling.counters.COUNTERS`, or of events that the source knows.

    Empty: all that it counts here.
    """

    names: tuple[str, ...] = field(default=())

    def chosen(self, metrics: Sequence[Metric]) -> tuple[Metric, ...]:
        """Return the wanted metrics of a source."""
        return tuple(metric for metric in metrics if not self.names or metric.name in self.names)

    def among(self, metrics: Sequence[Metric], counted: Collection[str]) -> bool:
        """Return whether all wanted metrics of a source are among these names."""
        return all(metric.name in counted for metric in self.chosen(metrics))


class CounterSource(ABC):
    """One source of counters. name: as users and archives name it."""

    name: str

    @abstractmethod
    def metrics(self) -> tuple[Metric, ...]:
        """Return what it can count."""

    @abstractmethod
    def unavailable(self, names: Sequence[str] = ()) -> str:
        """Return why it cannot be used on this machine, and what to do about it; empty if it can.

        names: what it shall count, as in `Wanted`.
        """

    def knows(self, event: str) -> bool:
        """Return whether this is the name of an event of this source."""
        return False

    def of_machine(self, machine: Machine) -> CounterSource:
        """Return the source with the caches of a described machine. Raises UsageError if it has none to simulate."""
        raise UsageError(f"--machine: belongs to --counters cachegrind, {self.name} does not simulate its caches")

    def variables(self, wanted: Wanted) -> Mapping[str, str]:
        """Return what the runtime must be given in the environment, so that it counts as the program runs."""
        return {}

    def shims(self, raw: Path, python: bool = False) -> tuple[str, ...]:
        """Return the scripts that a launcher starts instead of the program, each in a separate run; none if the
        source needs no further run.

        raw: the folder of the run, for what the scripts count. python: functions of Python are regions.
        """
        return ()

    @abstractmethod
    def collect(
        self, raw: Path, tree: CallTree, wanted: Wanted, attributes: Sequence[Mapping[str, str]] = ()
    ) -> Counted:
        """Return what was counted of the call paths of a tree. Raises FormatError for files that are damaged.

        attributes: of each process, as its profile says.
        """
