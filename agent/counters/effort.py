# SPDX-License-Identifier: Apache-2.0
"""The counter source that is always available: exact effort of the compiler pass, and cycles from time and clock
frequency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from quipu.modeling.experiment import CallTree, Metric

from .source import Counted, CounterSource, Wanted


class Effort(CounterSource):
    """No additional counting: instructions, loads and stores are metrics of every run; cycles are time × frequency."""

    name = "effort"

    def metrics(self) -> tuple[Metric, ...]:
        """Return no metrics, because every archive contains the metrics of the pass."""
        return ()

    def unavailable(self, names: Sequence[str] = ()) -> str:
        """Return an empty text: the source is always available."""
        return ""

    def collect(
        self, raw: Path, tree: CallTree, wanted: Wanted, attributes: Sequence[Mapping[str, str]] = ()
    ) -> Counted:
        """Return only the name of the source."""
        return Counted((), (), {}, {"source": self.name})
