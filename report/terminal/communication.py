# SPDX-License-Identifier: Apache-2.0
"""Show a communication matrix as a map of characters, and the pairs of ranks with the largest amounts."""

from __future__ import annotations

import numpy as np
from quipu.modeling.experiment import IntArray
from rich.console import Group, RenderableType
from rich.text import Text

from ..communication_views import CommunicationView
from ..text import percent, quantity
from .columns import elastic
from .glyphs import Layout

# The characters for the amounts of blocks, in ascending order. The largest amount of a character is a quarter of the
# largest amount of the next character.
_SHADES = ("·", "░", "▒", "▓", "█")
_ASCII_SHADES = (".", ":", "+", "#", "@")
_STEP = 4.0


def communication_facts(view: CommunicationView) -> list[tuple[str, str]]:
    """Return (label, text) pairs for the head of the view."""
    fewest, mean, most = view.partners
    facts = [
        ("sent", f"{quantity(view.total_bytes, 'B')} in {quantity(view.total_messages, '1')} messages"),
        ("partners", f"a rank sends to {fewest} .. {most} ranks, {mean:.3g} in the mean"),
    ]
    if view.distances:
        texts = (
            f"{distance:+d} {percent(share)}" if distance else f"itself {percent(share)}"
            for distance, share in view.distances
        )
        facts.append(("distance", f"receiver minus sender: {', '.join(texts)}"))
    rank, factor = view.busiest
    if factor > 1.05:
        facts.append(("busiest", f"rank {rank} sends {factor:.3g} times the mean"))
    if view.within_nodes is not None:
        facts.append(("locality", f"{percent(view.within_nodes)} stays on a node"))
    return facts


def communication_map(view: CommunicationView, layout: Layout) -> RenderableType:
    """Return the communication matrix as characters whose darkness shows the amount, with senders as rows.

    A block of ranks has two characters, or one if the width is too small.
    """
    values, measure, unit = (view.bytes, "bytes", "B") if view.total_bytes else (view.messages, "messages", "1")
    shades = _SHADES if layout.glyphs.unicode else _ASCII_SHADES
    labels = [_label(view, block) for block in range(len(values))]
    left = max(len(label) for label in labels) + 1
    wide = 2 if left + 2 * len(values) <= layout.width else 1
    levels = _levels(values)
    lines = [Text(f"{'':{left}}to {_label(view, 0)} .. {_label(view, len(values) - 1)}", style="dim")]
    for label, row in zip(labels, levels.tolist(), strict=True):
        line = Text(f"{label:>{left - 1}} ", style="dim")
        line.append("".join((" " if level < 0 else shades[level]) * wide for level in row), style="default")
        lines.append(line)
    most = float(values.max(initial=0))
    limits = (f"{shade} {quantity(most / _STEP ** (len(shades) - 1 - at), unit)}" for at, shade in enumerate(shades))
    lines.append(Text(f"{'':{left}}{measure}, up to: {'  '.join(limits)}", style="dim"))
    return Group(*lines)


def pair_table(view: CommunicationView, layout: Layout) -> RenderableType:
    """Return a table of the pairs of ranks with the largest amounts."""
    total = max(1, view.total_bytes)
    rows = [
        (
            str(pair.sender),
            str(pair.receiver),
            quantity(pair.bytes, "B"),
            quantity(pair.messages, "1"),
            quantity(pair.bytes / pair.messages, "B"),
            percent(pair.bytes / total),
        )
        for pair in view.pairs
    ]
    return elastic(("from", "to", "sent", "messages", "per message", "share"), rows, (), (0, 1, 2, 3, 4, 5), layout)


def _label(view: CommunicationView, block: int) -> str:
    """Return the ranks of a block as text: `8-11`."""
    first = block * view.ranks_per_block
    last = min(view.ranks, first + view.ranks_per_block) - 1
    return str(first) if first == last else f"{first}-{last}"


def _levels(values: IntArray) -> IntArray:
    """Return the number of the shade of each block, from the lightest; -1 for a block without communication."""
    most = max(1.0, float(values.max(initial=0)))
    with np.errstate(divide="ignore"):
        below = np.log(values / most) / np.log(_STEP)
    levels = np.clip(len(_SHADES) - 1 + np.ceil(below), 0, len(_SHADES) - 1)
    return np.where(values > 0, levels, -1).astype(np.int64)
