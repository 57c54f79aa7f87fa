"""What is known of a run besides its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from quipu.modeling.documents import Count, Number, Positive, Whole
from quipu.modeling.experiment import Metric

RESERVED = frozenset({"callpath", "rank", "thread"})
"""Names of columns beside the metrics: no metric may be called so."""


@dataclass(frozen=True)
class RunMetadata:
    """One repetition of one configuration: what was started, how it ended, what is doubtful about it.

    seconds and exit_code are None while they are not known (the launching process itself was killed).
    exit_code is negative if a signal ended the launched process, as in `subprocess`.
    overhead: what measuring cost, see overhead.totals. rank_columns: the archive has the
    values of every rank, and not their statistics alone.
    """

    parameters: Mapping[str, Number] = field(default_factory=dict)
    repetition: Positive = 1
    command: tuple[str, ...] = ()
    started: str = ""
    seconds: Number | None = None
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

    @property
    def complete(self) -> bool:
        """Whether the run ended well and every rank is in it."""
        return self.exit_code == 0 and not self.partial

    @property
    def oversubscribed(self) -> bool:
        """Whether ranks shared processors, so that times contain waiting for one. Simulated time does not."""
        if self.launcher.get("family") == "smpi":
            return False
        return any(len(node.get("ranks") or ()) > (node.get("cpus") or math.inf) for node in self.nodes)


def configuration_name(parameters: Mapping[str, float]) -> str:
    """Return the name of a configuration as in folder names: "p=4,n=100000"; "run" if there are no parameters."""
    return ",".join(f"{name}={number_text(value)}" for name, value in parameters.items()) or "run"


def number_text(value: float) -> str:
    """Return a parameter value as text: whole numbers without a fraction."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
