# SPDX-License-Identifier: Apache-2.0
"""The result of `quipu export`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quipu.modeling.experiment import Experiment


@dataclass(frozen=True)
class Exported:
    """A file for another tool.

    name: the name of the exported experiment or run. notes: information that the format cannot represent. content: a
    description of the content.
    """

    name: str
    file: Path
    notes: Sequence[str] = ()
    content: str = ""


def oversubscribed_note(data: Experiment) -> list[str]:
    """Return a note on configurations with more ranks than processors, which no export format can mark."""
    from quipu.report.text import points_text

    if data.dedicated.all():
        return []
    which = points_text(data.parameters, data.points[~data.dedicated].tolist())
    return [f"oversubscribed (more ranks than processors), which the file cannot say: {which}"]
