# SPDX-License-Identifier: Apache-2.0
"""Show kernels as a table, and sentences about their limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ..text import percent, quantity
from .columns import elastic
from .glyphs import Layout, clean
from .headings import KERNEL, LIMITED_BY
from .names import IN_TEXT, shorten

if TYPE_CHECKING:
    from ..kernel_views import KernelRow


def kernel_table(rows: Sequence[KernelRow], layout: Layout) -> RenderableType:
    """Return a table of kernels: predicted time and its parts, CPI, BF_mem, residual of the model, limit.

    CPI: cycles per instruction. BF_mem: part of the memory time that blocks the kernel. In a narrow terminal, the
    residual is omitted first, then BF_mem, CPI and kind.
    """
    texts = []
    for row in rows:
        span = f"{quantity(row.total.lower, 's')} .. {quantity(row.total.upper, 's')}"
        parts = (row.compute, row.memory, row.communication)
        texts.append(
            (
                row.name,
                row.kind,
                quantity(row.total.value, "s"),
                percent(row.share),
                span,
                *(quantity(part, "s") if part else "" for part in parts),
                f"{row.cpi:.3g}" if row.cpi == row.cpi else "",
                f"{row.blocking:.2g}" if row.blocking == row.blocking else "",
                percent(row.residual),
                row.cause,
            )
        )
    first = (KERNEL, "kind", "predicted", "share", "90 % interval", "compute", "memory", "MPI")
    headings = (*first, "CPI", "BF_mem", "residual", LIMITED_BY)
    optional = [headings.index(name) for name in ("residual", "BF_mem", "CPI", "kind")]
    return elastic(headings, texts, (0, 11), (2, 3, 5, 6, 7, 8, 9, 10), layout, optional)


def advice_lines(rows: Sequence[KernelRow], most: int, layout: Layout) -> Table:
    """Return the advice for the first `most` kernels."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(overflow="fold", max_width=layout.width)
    for row in rows[:most]:
        name = shorten(row.name, IN_TEXT, layout.glyphs)
        table.add_row(Text(clean(f"{name} ({percent(row.share)}): {row.cause}: {row.advice}", layout.glyphs)))
    return table
