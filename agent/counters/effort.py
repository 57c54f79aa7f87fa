# SPDX-License-Identifier: Apache-2.0
"""The source that is always there: exact effort of the compiler pass, and cycles from time and the clock's
frequency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from quipu.modeling.experiment import CallTree, Metric

from .source import Counted, CounterSource, Wanted


class Effort(CounterSource):
    """Nothing is counted besides: instructions, loads and stores are metrics of every run, cycles are time × clock."""

    name = "effort"

    def metrics(self) -> tuple[Metric, ...]:
        """Return no metrics: the archive has the metrics of the pass already."""
        return ()

    def unavailable(self, names: Sequence[str] = ()) -> str:
        """It can always be used."""
        return ""

    def collect(
        self, raw: Path, tree: CallTree, wanted: Wanted, attributes: Sequence[Mapping[str, str]] = ()
    ) -> Counted:
        """Return nothing but who counted."""
        return Counted((), (), {}, {"source": self.name})
