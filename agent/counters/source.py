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

    ranks: the rank of each row. values: exclusive counts by metric, int64 of shape (ranks, call paths). facts: "source"
    and details of the counting, for the archive. problems: texts about missing counts.
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
        """Return the wanted metrics of a source."""
        return tuple(metric for metric in metrics if not self.names or metric.name in self.names)

    def among(self, metrics: Sequence[Metric], counted: Collection[str]) -> bool:
        """Return whether all wanted metrics of a source are among these names."""
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
        """Return whether this is the name of an event of this source."""
        return False

    def of_machine(self, machine: Machine) -> CounterSource:
        """Return the source with the caches of a described machine. Raises UsageError if it cannot simulate them."""
        raise UsageError(f"--machine: belongs to --counters cachegrind, {self.name} does not simulate its caches")

    def variables(self, wanted: Wanted) -> Mapping[str, str]:
        """Return the environment variables with which the runtime counts while the program runs."""
        return {}

    def shims(self, raw: Path, python: bool = False) -> tuple[str, ...]:
        """Return scripts that a launcher starts instead of the program, each in a separate run.

        The result is empty if the source needs no further run. raw: the raw folder, for the files of the scripts.
        python: whether functions of Python are regions.
        """
        return ()

    @abstractmethod
    def collect(
        self, raw: Path, tree: CallTree, wanted: Wanted, attributes: Sequence[Mapping[str, str]] = ()
    ) -> Counted:
        """Return the counts of the call paths of a tree. Raises FormatError for damaged files.

        attributes: attributes of each process from its profile.
        """
