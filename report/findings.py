"""A diagnosis as text, for all kinds of output."""

from __future__ import annotations

from quipu.modeling.diagnosis import Diagnosis

from .terminal.text import Glyphs, quantity
from .views import FindingRow


def finding_rows(diagnosis: Diagnosis, glyphs: Glyphs) -> list[FindingRow]:
    """Return the findings of a diagnosis as text, in their order."""
    times = "×" if glyphs.unicode else "x"
    return [
        FindingRow(
            label=own.label,
            cause=own.cause.value,
            lost=quantity(own.lost, "s", glyphs),
            slowdown=f"{own.slowdown:.3g}{times}",
            growth=own.growth,
            evidence=own.evidence,
            effort=own.effort,
            basis=own.basis,
        )
        for own in diagnosis.findings
    ]
