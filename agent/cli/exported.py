"""What `quipu export` wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Exported:
    """A file for another tool. name: of what was exported; notes: what the file cannot say; content: what is in it."""

    name: str
    file: Path
    notes: Sequence[str] = ()
    content: str = ""
