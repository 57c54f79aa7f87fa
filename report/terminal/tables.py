"""Tables of models, rankings, configurations, checks and functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from ..views import (
    ChangeRow,
    Check,
    ConfigurationRow,
    FindingRow,
    FunctionRow,
    GeneratedRow,
    ModelRow,
    NoiseRow,
    RankedRow,
    SelectionRow,
)
from .names import shorten
from .text import Layout, clean, elide, number, percent, quantity

_GAP = 2
_NAMES = ("call path", "region", "function")


def model_table(rows: Sequence[ModelRow], layout: Layout) -> Table:
    """Return models as a table: call path, metric, formula, fit error (SMAPE), what the model rests on, notes."""
    texts = [(_path(row.path), row.metric, row.formula, percent(row.error / 100), row.basis, row.note) for row in rows]
    return _table(("call path", "metric", "model", "SMAPE", "basis", "note"), texts, (0, 2, 5), (3,), layout)


def change_table(rows: Sequence[ChangeRow], layout: Layout) -> Table:
    """Return where behaviour changes: call path, metric, the values between which it does, models on both sides."""
    texts = [(_path(row.path), row.metric, row.between, row.below, row.above) for row in rows]
    return _table(("call path", "metric", "changes", "below", "above"), texts, (0, 3, 4), (), layout)


def noise_table(rows: Sequence[NoiseRow], layout: Layout) -> Table:
    """Return the noise of repetitions: the range of a configuration, quantiles of deviations, the worst one."""
    texts = [
        (
            _path(row.path),
            row.metric,
            row.repetitions,
            percent(row.level),
            "" if math.isnan(row.low) else f"{percent(row.low)} .. {percent(row.high)}",
            percent(row.worst),
            row.place,
            row.warning,
        )
        for row in rows
    ]
    headings = ("call path", "metric", "repetitions", "range", "90 % of deviations", "worst", "at", "note")
    return _table(headings, texts, (0, 7), (2, 3, 4, 5), layout)


def ranking_table(rows: Sequence[RankedRow], unit: str, layout: Layout) -> Table:
    """Return a ranking of call paths at a point: predicted value, share, interval, formula, extrapolation flag."""
    texts = []
    for place, row in enumerate(rows, start=1):
        interval = ""
        if row.low is not None and row.high is not None:
            interval = f"{_value(row.low, unit, layout)} .. {_value(row.high, unit, layout)}"
        flag = "extrapolation" if row.extrapolation else ""
        value = _value(row.value, unit, layout)
        texts.append((str(place), _path(row.path), value, percent(row.share), interval, flag, row.formula))
    headings = ("", "call path", "predicted", "share", "90 % interval", "", "model")
    return _table(headings, texts, (1, 6), (0, 2, 3), layout)


def selection_table(rows: Sequence[SelectionRow], layout: Layout) -> Table:
    """Return what a filter keeps and drops, and why."""
    texts = [
        (
            "keep" if row.kept else "drop",
            row.region,
            percent(row.share),
            _value(row.visits, "1", layout),
            _value(row.overhead, "s", layout),
            row.reason,
        )
        for row in rows
    ]
    headings = ("", "region", "share", "visits per rank", "overhead", "reason")
    return _table(headings, texts, (1, 5), (2, 3, 4), layout)


def diagnosis_table(rows: Sequence[FindingRow], layout: Layout) -> Table:
    """Return what will hurt: call path, cause, time lost at the target, slowdown there and as measured, its growth."""
    waits = any(row.waiting for row in rows)
    texts = [
        (
            row.label,
            row.cause,
            row.lost,
            row.share,
            row.slowdown,
            row.growth,
            *([row.waiting] if waits else []),
            row.effort,
        )
        for row in rows
    ]
    headings = ["call path", "cause", "lost", "share", "slowdown", "grows as", *(["waiting"] if waits else [])]
    last = len(headings)
    return _table((*headings, "time from effort"), texts, (0, last), (2, 3, 4, *([6] if waits else [])), layout)


def generated_table(rows: Sequence[GeneratedRow], layout: Layout) -> Table:
    """Return generated functions: how often they compute and what they communicate."""
    texts = [(row.name, row.loops, row.operations, row.elements) for row in rows]
    return _table(("function", "steps of computation", "MPI", "elements"), texts, (1,), (), layout)


def _path(path: tuple[str, ...]) -> str:
    return "->".join(path)


def configuration_table(parameters: Sequence[str], rows: Sequence[ConfigurationRow], layout: Layout) -> Table:
    """Return the measured configurations of an experiment: parameter values, repetitions, total of a metric."""
    headings = (*(clean(name, layout.glyphs) for name in parameters), "repetitions", "total", "spread")
    texts = [
        (
            *(number(value) for value in row.point),
            str(row.repetitions),
            _value(row.total, row.unit, layout),
            percent(row.spread),
        )
        for row in rows
    ]
    return _table(headings, texts, (), tuple(range(len(headings))), layout)


def check_table(checks: Sequence[Check], layout: Layout) -> Table:
    """Return what is installed and what is missing, each missing part with what needs it and what installs it."""
    styles = {"ok": "green", "warning": "yellow", "missing": "bold red"}
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=False)
    width = max((cell_len(check.name) for check in checks), default=0)
    table.add_column(no_wrap=True, width=7)
    table.add_column(no_wrap=True, width=width)
    table.add_column(overflow="fold", max_width=max(20, layout.width - 7 - width - 3 * _GAP))
    for check in checks:
        lines = [clean(check.found, layout.glyphs)] if check.found else []
        if check.state != "ok" and check.needed_for:
            lines.append(f"needed for: {clean(check.needed_for, layout.glyphs)}")
        if check.remedy:
            lines.append(f"fix with:  {clean(check.remedy, layout.glyphs)}")
        name = Text(clean(check.name, layout.glyphs))
        table.add_row(Text(check.state, style=styles[check.state]), name, Text("\n".join(lines)))
    return table


def function_table(rows: Sequence[FunctionRow], layout: Layout) -> Table:
    """Return the functions of a program: size in LLVM IR after inlining, calls, and whether it is a region."""
    texts = [
        (
            row.display,
            row.place,
            str(row.blocks),
            str(row.instructions),
            str(row.calls) + (f"+{row.indirect_calls}" if row.indirect_calls else ""),
            "region" if row.region else "",
        )
        for row in rows
    ]
    return _table(("function", "source", "blocks", "instructions", "calls", ""), texts, (0, 1), (2, 3, 4), layout)


def _value(value: float, unit: str, layout: Layout) -> str:
    return quantity(value, unit, layout.glyphs)


def _table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    elastic: tuple[int, ...],
    right: tuple[int, ...],
    layout: Layout,
) -> Table:
    """Return a table in which only the `elastic` columns give way; empty columns are left out."""
    cleaned = [[clean(text, layout.glyphs) for text in row] for row in rows]
    natural = [
        max([cell_len(heading), *(cell_len(row[at]) for row in cleaned)]) if any(row[at] for row in cleaned) else 0
        for at, heading in enumerate(headings)
    ]
    shown = [at for at in range(len(headings)) if natural[at]] or list(range(len(headings)))
    fixed = sum(natural[at] for at in shown if at not in elastic) + _GAP * (len(shown) - 1)
    widths = _share([natural[at] for at in elastic], max(0, layout.width - fixed))
    room = dict(zip(elastic, widths, strict=True))
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_edge=False)
    for at in shown:
        table.add_column(
            headings[at],
            justify="right" if at in right else "left",
            no_wrap=True,
            width=room.get(at, natural[at] or None),
        )
    cuts = {at: shorten if headings[at] in _NAMES else elide for at in elastic}
    for row in cleaned:
        table.add_row(*(Text(cuts[at](row[at], room[at], layout.glyphs) if at in cuts else row[at]) for at in shown))
    return table


def _share(natural: list[int], room: int) -> list[int]:
    """Divide `room` columns between texts of these widths: no more than each needs, at least 12."""
    widths = [0] * len(natural)
    left = room
    for place, at in enumerate(sorted(range(len(natural)), key=lambda at: natural[at])):
        widths[at] = max(min(natural[at], 12), min(natural[at], left // (len(natural) - place)))
        left -= widths[at]
    return widths
