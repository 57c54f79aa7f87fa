# SPDX-License-Identifier: Apache-2.0
"""The counter source `effort`, which is always available and counts nothing in addition to the compiler pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from quipu.modeling.experiment import CallTree, Metric

from .source import Counted, CounterSource, Wanted


class Effort(CounterSource):
    """Counts nothing: every run has exact instructions, loads and stores; models compute cycles as time × frequency."""

    name = "effort"

    def metrics(self) -> tuple[Metric, ...]:
        """Return no metrics: every archive contains the metrics of the compiler pass without this source."""
        return ()

    def unavailable(self, names: Sequence[str] = ()) -> str:
        """Return an empty text: the source is always available."""
        return ""

    def collect(
        self, raw: Path, tree: CallTree, wanted: Wanted, attributes: Sequence[Mapping[str, str]] = ()
    ) -> Counted:
        """Return only the name of the source."""
        return Counted((), (), {}, {"source": self.name})
