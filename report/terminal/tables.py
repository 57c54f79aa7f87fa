# SPDX-License-Identifier: Apache-2.0
"""Show models, rankings, configurations, checks, functions and other views as tables."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from quipu.modeling.message import without_codes
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..text import (
    OPEN_INTERVAL,
    START_AND_END,
    beyond_text,
    core_hours,
    factor,
    interval_text,
    number,
    path_text,
    percent,
    quantity,
    uncertain_percent,
)
from ..views import ChangeRow, Check, ConfigurationRow, ModelRow, NoiseRow, RankedRow
from .columns import elastic, least_width, with_left_out
from .glyphs import Layout, clean
from .headings import ABOVE, BASIS, BELOW, CALL_PATH, FUNCTION, MODEL, NOTE, REASON, REGION, TIME_FROM_EFFORT
from .names import IN_TEXT, shorten
from .shared_notes import kind_of_note, shared_notes
from .summary import note_lines

if TYPE_CHECKING:
    from quipu.modeling.design.program import Search
    from quipu.modeling.diagnosis import Diagnosis
    from quipu.modeling.file_use import FileFinding
    from quipu.modeling.rates import PathRates, Rates
    from quipu.modeling.refine.selection import RegionSelection

    from ..loop_views import LoopRow

_GAP = 2


def model_table(rows: Sequence[ModelRow], layout: Layout) -> RenderableType:
    """Return a table of models: call path, metric, formula, error of the fit (SMAPE), basis of the model, notes.

    The models of the start and the end of MPI come last, below a separate heading. A note that several call paths have
    is printed once below the table, with their number.
    """
    shared = shared_notes(rows)
    texts = [
        (
            *(path_text(row.path), row.metric, row.formula, percent(row.error / 100), row.basis),
            "; ".join(without_codes(note) for note in row.notes if kind_of_note(note) not in shared),
        )
        for row in sorted(rows, key=lambda row: row.start_and_end)
    ]
    if outside := sum(row.start_and_end for row in rows):
        texts.insert(len(rows) - outside, (f"{START_AND_END}:", "", "", "", "", ""))
    table = elastic((CALL_PATH, "metric", MODEL, "SMAPE", BASIS, NOTE), texts, (0, 2, 4, 5), (3,), layout)
    return Group(table, Text(), *note_lines(list(shared.values()), layout)) if shared else table


def change_table(rows: Sequence[ChangeRow], layout: Layout) -> RenderableType:
    """Return a table of changes of behaviour: call path, metric, parameter values before and after, both models."""
    texts = [(path_text(row.path), row.metric, row.between, row.below, row.above) for row in rows]
    return elastic((CALL_PATH, "metric", "changes", BELOW, ABOVE), texts, (0, 3, 4), (), layout)


def loop_table(rows: Sequence[LoopRow], metric: str, layout: Layout, predicted: bool = False) -> RenderableType:
    """Return a table of loops: share of a metric, call path, source line, number of enclosing loops, executions.

    predicted: whether to show the predicted number of executions and its interval before the formula.
    """
    texts = [
        (
            percent(row.share),
            path_text(row.path),
            row.place,
            str(row.depth),
            *((quantity(row.value), interval_text(row.low, row.high, "1")) if predicted else ()),
            ("" if row.exact else "≈ ") + row.executions,
        )
        for row in rows
    ]
    numbers = (
        ("executions", "90 % interval", "formula, all ranks together")
        if predicted
        else ("executions, all ranks together",)
    )
    headings = (f"share of {metric}", CALL_PATH, "line", "depth", *numbers)
    return elastic(headings, texts, (1, len(headings) - 1), (0, 3, 4) if predicted else (0, 3), layout)


def largest_loops(rows: Sequence[LoopRow], metric: str, layout: Layout) -> RenderableType:
    """Return a table of the loops that contribute most to a metric at a point, below a title."""
    title = Text(f"loops with most {metric} there (quipu model --loops shows all)", style="bold")
    return Group(title, loop_table(rows, metric, layout, predicted=True))


def noise_table(rows: Sequence[NoiseRow], layout: Layout) -> RenderableType:
    """Return a table of the noise: median range, 5 and 95 % quantiles of the deviations, largest deviation."""
    texts = []
    for row in rows:
        span = "" if math.isnan(row.low) else f"{percent(row.low)} .. {percent(row.high)}"
        numbers = (row.repetitions, percent(row.level), span, percent(row.worst))
        texts.append((path_text(row.path), row.metric, *numbers, row.place, row.warning))
    headings = (CALL_PATH, "metric", "repetitions", "range", "90 % of deviations", "worst", "at", NOTE)
    return elastic(headings, texts, (0, 7), (2, 3, 4, 5), layout)


def ranking_table(
    rows: Sequence[RankedRow],
    unit: str,
    layout: Layout,
    start_and_end: Sequence[RankedRow] = (),
    mark: bool = True,
) -> RenderableType:
    """Return a table of call paths at a point: predicted value, share, interval, distance beyond the measured range.

    Call paths whose value is 0 are left out. unit: of the metric. start_and_end: rows below the ranking, which are not
    part of the program. mark: whether to mark rows whose model depends on oversubscribed runs.

    If the width is too small, the distance is omitted, then the share. Then names are printed in separate lines, then
    the model is omitted. A line below the table names the omitted columns.
    """
    texts: list[tuple[str, ...]] = []
    rows = [row for row in rows if not row.is_nothing]
    for place, row in enumerate((*rows, *start_and_end), start=1):
        inside = place <= len(rows)
        ends = interval_text(row.low, row.high, unit)
        numbers = quantity(row.value, unit), percent(row.share) if inside else "", ends
        marks = beyond_text(row.beyond), "oversubscribed" if row.oversubscribed and mark else ""
        texts.append((str(place) if inside else "", path_text(row.path), *numbers, *marks, row.formula))
    headings = ("", CALL_PATH, "predicted", "share", "90 % interval", "beyond", "", MODEL)
    tried: list[tuple[int, ...]] = [(), (5,), (5, 3), (5, 3, 7)]
    ways = [(one, beside) for beside in (True, False) for one in tried[: 3 if beside else 4]]
    fitting = (
        one
        for one, beside in ways
        if least_width(headings, _without(texts, one), (1, 7), beside=beside) <= layout.width
    )
    hidden = next(fitting, tried[-1]) if texts else ()
    table = elastic(headings, _without(texts, hidden), (1, 7), (0, 2, 3), layout)
    return with_left_out(table, [headings[at] for at in hidden], layout)


def _without(rows: Sequence[tuple[str, ...]], columns: Collection[int]) -> list[tuple[str, ...]]:
    """Return rows in which some columns are empty, so that tables leave these columns out."""
    return [tuple("" if at in columns else text for at, text in enumerate(row)) for row in rows]


def search_table(search: Search, layout: Layout) -> RenderableType:
    """Return a table of suggested runs: configuration, repetition, core hours, reduction of the variance, reason."""
    texts = [
        (
            str(place),
            ", ".join(f"{name}={number(value)}" for name, value in search.point(one).items()),
            str(one.repetition),
            core_hours(one.cost),
            percent(one.gain),
            one.reason,
        )
        for place, one in enumerate(search.suggestions, start=1)
    ]
    return elastic(("", "point", "repetition", "cost", "gain", REASON), texts, (1, 5), (0, 2, 3, 4), layout)


def filter_table(selection: RegionSelection, dropped: int, layout: Layout) -> RenderableType:
    """Return a table of the regions that a filter selects, and the first `dropped` ones that it excludes."""
    texts = [
        (
            word,
            one.region.display,
            percent(one.share),
            quantity(one.visits),
            quantity(one.overhead, "s"),
            one.reason_with(lambda name: shorten(name, IN_TEXT, layout.glyphs)),
        )
        for word, choices in (("keep", selection.kept), ("drop", selection.dropped[:dropped]))
        for one in choices
    ]
    headings = ("", REGION, "share", "visits per rank", "overhead", REASON)
    return elastic(headings, texts, (1, 5), (2, 3, 4), layout)


def refinement_table(
    rows: Sequence[tuple[int, int, int, tuple[float, float], float | None, float | None, float]], layout: Layout
) -> RenderableType:
    """Return a table of the iterations of a refinement.

    rows: number of the iteration; number of selected regions and of executed ones among them; measured overhead and its
    error; predicted overhead; coverage (all shares; None if unknown); seconds.
    """
    texts = [
        (
            str(number),
            str(marked),
            str(executed),
            uncertain_percent(*overhead),
            "" if predicted is None else percent(predicted),
            "" if coverage is None else percent(coverage),
            quantity(seconds, "s"),
        )
        for number, marked, executed, overhead, predicted, coverage, seconds in rows
    ]
    headings = ("iteration", "regions marked", "executed", "overhead", "predicted", "coverage", "time")
    return elastic(headings, texts, (), tuple(range(7)), layout)


def diagnosis_table(diagnosis: Diagnosis, top: int, layout: Layout) -> RenderableType:
    """Return a table of findings: call path, cause, time lost at the target, its share, slowdown, growth, effort.

    The slowdown is given for the largest measured values and for the target.
    """
    waits = any(math.isfinite(one.wait_share) for one in diagnosis.findings[:top])
    texts = [
        (
            one.label,
            one.cause.value,
            quantity(one.lost, "s"),
            percent(diagnosis.share(one)),
            f"{factor(one.slowdown_measured)} → {factor(one.slowdown)}",
            one.growth,
            *([percent(one.wait_share, 0) if math.isfinite(one.wait_share) else ""] if waits else []),
            one.effort,
        )
        for one in diagnosis.findings[:top]
    ]
    headings = [CALL_PATH, "cause", "lost", "share", "slowdown", "grows as", *(["waiting"] if waits else [])]
    last = len(headings)
    return elastic((*headings, TIME_FROM_EFFORT), texts, (0, last), (2, 3, 4, *([6] if waits else [])), layout)


def files_table(findings: Sequence[FileFinding], place: str, top: int, layout: Layout) -> RenderableType:
    """Return a table of uses of files that do not scale, as measured and at the target. place: the target as text."""
    headings = ("files", "why", "measured", "at target", "bytes of a write", "from")

    def amount(value: float, unit: str) -> str:
        if math.isnan(value):
            return OPEN_INTERVAL
        return quantity(value, unit) if unit == "B" else f"{number(round(value, 2))} {unit}"

    rows = [
        (
            one.group,
            one.use.value,
            amount(one.measured, one.unit),
            amount(one.at_target, one.unit),
            "" if math.isnan(one.size) else quantity(one.size, "B"),
            one.label,
        )
        for one in findings[:top]
    ]
    title = Text(clean(f"ways of using files that do not scale, as measured and at {place}", layout.glyphs), "bold")
    return Group(title, elastic(headings, rows, (0, 5), (2, 3, 4), layout))


def beyond_effort_table(diagnosis: Diagnosis, top: int, layout: Layout) -> RenderableType:
    """Return a table of call paths that take longer than their effort explains, but have no finding.

    Columns: call path, lost seconds at the target, their share, predicted seconds, basis of the model.
    """
    texts = [
        (one.label, quantity(one.lost, "s"), percent(diagnosis.share(one)), quantity(one.predicted, "s"), one.basis)
        for one in diagnosis.others[:top]
    ]
    headings = (CALL_PATH, "also beyond effort", "share", "of", BASIS)
    return elastic(headings, texts, (0, 4), (1, 2, 3), layout)


def plan_table(
    parameters: Sequence[str], rows: Sequence[tuple[Mapping[str, float], int, bool, str]], layout: Layout
) -> RenderableType:
    """Return a table of planned runs: parameter values, number of runs, whether they are count-only, estimated time."""
    names = [clean(name, layout.glyphs) for name in parameters]
    texts = [
        (*(number(values[name]) for name in parameters), str(runs), "counts" if counts else "time, counts", takes)
        for values, runs, counts, takes in rows
    ]
    columns = (*range(len(names) + 1), len(names) + 2)
    return elastic((*names, "runs", "measured", "takes"), texts, (), columns, layout)


def generated_table(rows: Sequence[tuple[str, str, str, str]], layout: Layout) -> RenderableType:
    """Return a table of generated functions: name, steps of computation, MPI operation, elements of a message."""
    return elastic((FUNCTION, "steps of computation", "MPI", "elements"), rows, (1,), (), layout)


def _mark(row: ConfigurationRow) -> str:
    """Return the reason why a configuration has no times, or times that contain waiting for a processor."""
    if row.counts_only:
        return "counts only"
    return "oversubscribed" if row.oversubscribed else "loaded machine" if row.loaded else ""


def configuration_table(parameters: Sequence[str], rows: Sequence[ConfigurationRow], layout: Layout) -> RenderableType:
    """Return a table of the measured configurations: parameter values, repetitions, total of a metric, spread."""
    names = [clean(name, layout.glyphs) for name in parameters]
    outside = any(row.start_and_end for row in rows)
    headings = (*names, "repetitions", "program", "spread", START_AND_END, "")
    texts = [
        (
            *map(number, row.point),
            str(row.repetitions),
            "" if row.counts_only else quantity(row.total, row.unit),
            "" if math.isnan(row.spread) else percent(row.spread),
            quantity(row.start_and_end, row.unit) if outside and not row.counts_only else "",
            _mark(row),
        )
        for row in rows
    ]
    return elastic(headings, texts, (), tuple(range(len(headings) - 1)), layout)


def check_table(checks: Sequence[Check], layout: Layout) -> Table:
    """Return a table of components; for a missing one, its purpose and the command that installs it."""
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


def function_table(rows: Sequence[Sequence[str]], layout: Layout) -> RenderableType:
    """Return a table of the functions of a program: size in LLVM IR after inlining, calls, whether it is a region."""
    return elastic((FUNCTION, "source", "blocks", "instructions", "calls", ""), rows, (0, 1), (2, 3, 4), layout)


def ir_function_table(rows: Sequence[Sequence[str]], layout: Layout) -> RenderableType:
    """Return a table of functions of LLVM IR: size, calls, number and depth of loops, constant trip counts."""
    headings = (FUNCTION, "source", "blocks", "instructions", "calls", "loops", "depth", "constant trip counts")
    return elastic(headings, rows, (0, 1, 7), (2, 3, 4, 5, 6), layout)


def plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]], layout: Layout) -> RenderableType:
    """Return a table of texts. The first column is shortened if necessary."""
    return elastic(headings, rows, (0,), tuple(range(1, len(headings))), layout)


def rates_table(rates: Rates, most: int, layout: Layout) -> RenderableType:
    """Return a table of rates (seconds per unit of effort): the program and its `most` longest call paths."""
    return _rates_table(CALL_PATH, rates.metrics, (rates.program, *rates.callpaths[:most]), layout)


def operation_rates_table(rates: Rates, most: int, layout: Layout) -> RenderableType:
    """Return a table of processor seconds per call and per byte: the `most` MPI operations with the most time."""
    from quipu.modeling.rates import OPERATION_METRICS

    return _rates_table("operation of MPI", OPERATION_METRICS, rates.operations[:most], layout)


def _rates_table(heading: str, metrics: Sequence[str], entries: Sequence[PathRates], layout: Layout) -> RenderableType:
    texts = []
    for entry in entries:
        numbers = [f"{1e9 * rate:.3g} ns" if rate else "" for rate in entry.rates]
        texts.append((entry.label, percent(entry.share), *numbers, percent(entry.residual)))
    headings = (heading, "share", *metrics, "residual")
    return elastic(headings, texts, (0,), tuple(range(1, len(headings))), layout)
