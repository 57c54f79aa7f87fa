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
    """A file or folder that was written for another tool.

    name: the name of the exported experiment or run. notes: texts about information that the format cannot represent.
    content: a description of the content, which follows the name of the file in the last message.
    """

    name: str
    file: Path
    notes: Sequence[str] = ()
    content: str = ""


def oversubscribed_note(data: Experiment) -> list[str]:
    """Return notes on configurations whose times contain waiting for a processor. No export format can mark these."""
    from quipu.report.text import waiting_texts

    return [f"the exported file does not show this: {text}" for text in waiting_texts([data])]
