# SPDX-License-Identifier: Apache-2.0
"""Show the description of a machine as tables."""

from __future__ import annotations

from quipu.modeling.machine import Machine
from rich.console import RenderableType

from ..text import quantity
from .columns import elastic
from .glyphs import Layout
from .summary import head


def machine_tables(machine: Machine, layout: Layout) -> list[RenderableType]:
    """Return tables of a machine: clocks, caches, latency of loads by size of the memory, bandwidth, and network."""
    facts = [
        ("processor", machine.processor),
        ("cores", str(machine.cores)),
        ("frequency", quantity(machine.frequency, "Hz")),
        *([("floating-point operations", f"{quantity(machine.flops)}flop/s of a core")] if machine.flops else []),
        ("time stamp counter", quantity(machine.tsc, "Hz") if machine.tsc else "none"),
    ]
    shown: list[RenderableType] = [head(machine.host, facts, (), layout), _levels(machine, layout)]
    if machine.reach:
        reaches = [
            (f"{one.bytes / 1024:.0f} KiB", quantity(one.in_order, "s"), quantity(one.scattered, "s"))
            for one in machine.reach
        ]
        shown.append(elastic(("loads over", "a line in order", "scattered"), reaches, (), (0, 1, 2), layout))
    if machine.bandwidth:
        rows = [(str(one.cores), f"{quantity(one.bytes_per_second, 'B')}/s") for one in machine.bandwidth]
        shown.append(elastic(("cores", "bandwidth"), rows, (), (0, 1), layout))
    if machine.network:
        entries = [
            (
                one.operation,
                str(one.ranks),
                quantity(one.alpha, "s"),
                f"{quantity(1 / one.beta, 'B')}/s" if one.beta else "",
            )
            for one in machine.network
        ]
        shown.append(elastic(("operation", "ranks", "α", "1/β"), entries, (), (1, 2, 3), layout))
    return shown


def _levels(machine: Machine, layout: Layout) -> RenderableType:
    rows = [
        (f"L{one.level}", f"{one.bytes / 1024:.0f} KiB", f"{one.line} B", str(one.cores), quantity(one.latency, "s"))
        for one in machine.caches
    ]
    rows.append(("memory", "", "", "", quantity(machine.memory, "s")))
    return elastic(("level", "size", "line", "cores", "latency"), rows, (), (1, 2, 3, 4), layout)
