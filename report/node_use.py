# SPDX-License-Identifier: Apache-2.0
"""Texts about the energy and memory traffic of whole nodes while a program ran.

The values include other programs on the nodes. Counters may overlap: the energy of a processor package contains the
energy of its cores.
"""

from __future__ import annotations

from collections.abc import Sequence

from .measured_run import Metadata
from .text import quantity

_UNITS = {"_joules": "J", "_bytes": "B"}


def node_totals(run: Metadata) -> dict[str, float]:
    """Return the sums over the nodes of a run (J or bytes) by counter; empty if no node has counters."""
    totals: dict[str, float] = {}
    for node in run.nodes:
        for name, value in (node.get("counters") or {}).items():
            totals[name] = totals.get(name, 0.0) + value
    return totals


def node_use(runs: Sequence[Metadata]) -> list[str]:
    """Return the mean of each counter over the runs that have it, as texts such as `energy package 12.3 J`."""
    values: dict[str, list[float]] = {}
    for run in runs:
        for name, value in node_totals(run).items():
            values.setdefault(name, []).append(value)
    return [
        f"{name.removesuffix(end).replace('_', ' ')} {quantity(sum(found) / len(found), unit)}"
        for name, found in sorted(values.items())
        for end, unit in _UNITS.items()
        if name.endswith(end)
    ]
