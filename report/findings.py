"""A diagnosis as text, for all kinds of output."""

from __future__ import annotations

import math

from quipu.modeling.diagnosis import Diagnosis

from .text import factor, percent, quantity
from .views import FindingRow


def finding_rows(diagnosis: Diagnosis) -> list[FindingRow]:
    """Return the findings of a diagnosis as text, in their order."""
    return [
        FindingRow(
            label=own.label,
            cause=own.cause.value,
            lost=quantity(own.lost, "s"),
            share=percent(diagnosis.share(own)),
            slowdown=f"{factor(own.slowdown_measured)} → {factor(own.slowdown)}",
            waiting=percent(own.wait_share, 0) if math.isfinite(own.wait_share) else "",
            growth=own.growth,
            evidence=own.evidence,
            effort=own.effort,
            basis=own.basis,
        )
        for own in diagnosis.findings
    ]
