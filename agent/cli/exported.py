# SPDX-License-Identifier: Apache-2.0
"""What `quipu export` wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quipu.modeling.experiment import Experiment


@dataclass(frozen=True)
class Exported:
    """A file for another tool. name: of what was exported; notes: what the file cannot say; content: what is in it."""

    name: str
    file: Path
    notes: Sequence[str] = ()
    content: str = ""


def oversubscribed_note(data: Experiment) -> list[str]:
    """Return a note on the configurations with more ranks than processors, which no format of an experiment marks."""
    from quipu.report.text import points_text

    if data.dedicated.all():
        return []
    which = points_text(data.parameters, data.points[~data.dedicated].tolist())
    return [f"oversubscribed (more ranks than processors), which the file cannot say: {which}"]
