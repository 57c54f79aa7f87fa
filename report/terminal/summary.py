# SPDX-License-Identifier: Apache-2.0
"""Show the heads of views, summaries of runs, and the progress of a campaign."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..text import duration, quantity
from ..views import CampaignStep, RunView
from .glyphs import Layout, clean, elide, wrapped

_BAR_WIDTH = 20


def head(title: str, facts: Sequence[tuple[str, str]], notes: Sequence[str], layout: Layout) -> RenderableType:
    """Return the head of a view: a title, facts (label, text) in two columns, and notes."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    label_width = max((len(label) for label, _ in facts), default=0)
    table.add_column(no_wrap=True, style="dim", width=label_width)
    width = max(20, layout.width - label_width - 4)
    table.add_column(overflow="fold", max_width=width)
    for label, text in facts:
        table.add_row(Text(label), Text(wrapped(clean(text, layout.glyphs), width)))
    heading = Text(elide(clean(title, layout.glyphs), layout.width, layout.glyphs), style="bold")
    return Group(heading, *([table] if facts else []), *note_lines(notes, layout))


def note_lines(notes: Sequence[str], layout: Layout) -> list[RenderableType]:
    """Return notes as lines that start with `note:`."""
    texts = [wrapped(f"note: {clean(note, layout.glyphs)}", layout.width) for note in notes]
    return [Text(text, style="yellow", overflow="fold") for text in texts]


def run_summary(run: RunView, layout: Layout) -> RenderableType:
    """Return a summary of one finished run: archive, ranks, time, problems."""
    outcome = "ok" if run.exit_code == 0 and not run.partial else "partial" if run.partial else "failed"
    style = {"ok": "green", "partial": "yellow", "failed": "bold red"}[outcome]
    line = Text()
    line.append(outcome, style=style)
    line.append(f"  {clean(run.name, layout.glyphs)}", style="bold")
    ranks = "rank" if run.ranks == 1 else "ranks"
    seconds = clean(quantity(run.seconds, "s"), layout.glyphs)
    line.append(f"  {run.ranks} {ranks}, {run.call_paths} call paths, {seconds}")
    if run.node_use:
        line.append(clean(f", {', '.join(run.node_use)}", layout.glyphs))
    if run.exit_code:
        line.append(f", exit code {run.exit_code}", style="red")
    return Group(line, *note_lines(run.problems, layout))


def campaign_line(step: CampaignStep, layout: Layout) -> Text:
    """Return a line about the progress of a campaign: bar, number of runs, run, outcome, remaining time.

    The progress is printed as lines, and not as a live display, because the programs write to the same terminal.
    """
    total = max(1, step.total)
    full = _BAR_WIDTH * step.done // total
    full_cell, empty_cell = ("█", "░") if layout.glyphs.unicode else ("#", ".")
    line = Text()
    line.append(full_cell * full, style="green")
    line.append(empty_cell * (_BAR_WIDTH - full), style="dim")
    line.append(f" {step.done:>{len(str(step.total))}}/{step.total}  ")
    tail = Text()
    if step.outcome:
        tail.append(f"  {step.outcome}", style={"ok": "green", "failed": "bold red", "partial": "yellow"}[step.outcome])
        tail.append(f" {clean(quantity(step.seconds, 's'), layout.glyphs)}")
    if step.left is not None and step.done < step.total:
        tail.append(f"  about {duration(step.left)} left", style="dim")
    room = max(12, layout.width - len(line.plain) - len(tail.plain))
    line.append(elide(clean(step.name, layout.glyphs), room, layout.glyphs))
    line.append_text(tail)
    return line
