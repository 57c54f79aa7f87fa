"""A diagnosis as text, for all kinds of output."""

from __future__ import annotations

import math

from quipu.modeling.diagnosis import Diagnosis

from .terminal.text import Glyphs, percent, quantity
from .views import FindingRow


def finding_rows(diagnosis: Diagnosis, glyphs: Glyphs) -> list[FindingRow]:
    """Return the findings of a diagnosis as text, in their order."""
    times, to = ("×", "→") if glyphs.unicode else ("x", "->")
    return [
        FindingRow(
            label=own.label,
            cause=own.cause.value,
            lost=quantity(own.lost, "s", glyphs),
            share=percent(diagnosis.share(own)),
            slowdown=f"{own.slowdown_measured:.3g}{times} {to} {own.slowdown:.3g}{times}",
            waiting=f"{own.wait_share:.0%}" if math.isfinite(own.wait_share) else "",
            growth=own.growth,
            evidence=own.evidence,
            effort=own.effort,
            basis=own.basis,
        )
        for own in diagnosis.findings
    ]
