# SPDX-License-Identifier: Apache-2.0
"""`quipu tensor explain`: show the influence of parameters on the time, alone and together."""

from __future__ import annotations

from pathlib import Path

import typer

from ..output import layout, own_file, say, show, show_json
from .files import naming, read_data, read_model

LEAST_SHARE = 0.001
"""Pairs of parameters with a smaller share of the variance are not shown."""


def command(
    *,
    model: Path = typer.Argument(..., metavar="MODEL", help="A model from quipu tensor fit."),
    data: Path = typer.Option(
        None, "--data", metavar="DATA", help="The measurements: also show the error over the number of rows."
    ),
    top: int = typer.Option(
        8, "--top", min=2, max=50, metavar="N", help="Show pairs of the N most important parameters."
    ),
    plot: Path = typer.Option(
        None, "--plot", metavar="FILE", help="Draw the effects to a PNG, SVG or PDF file (needs matplotlib)."
    ),
    output: Path = typer.Option(None, "--output", "-o", metavar="FILE", help="Also write an HTML page of the effects."),
    force: bool = typer.Option(False, "--force", help="Overwrite a file that is not such a page."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show the share of the variance of log time that each parameter explains, alone and with others.

    Pages and plots also show the extrapolation beyond the measured values with its 90 % interval, and the tried models.

    \b
    Example: quipu tensor explain model.json -o effects.html
    """
    from quipu.modeling.tensor.explain import continuations, main_effects, pair_effects, tried_models
    from quipu.modeling.tensor.growth import error_by_rows
    from quipu.report.json_views import document_json
    from quipu.report.terminal.tables import plain_table
    from quipu.report.text import percent

    write = None
    if output is not None:
        write = own_file(output, lambda old: "quipu-tensor-effects" in old, "page of effects", force)
    read = read_model(model)
    effects = main_effects(read)
    pairs = pair_effects(read, [effect.parameter for effect in effects[:top]])[:top]
    beyond = continuations(read)
    growth = []
    if data is not None:
        table = read_data(data, read.target, read.categorical).columns
        with naming(data):
            growth = error_by_rows(read, *read.measured(table))
    if plot is not None:
        from quipu.report.tensor_plots import draw_effects

        draw_effects(effects, read.target, plot, tried_models(read), beyond, growth)
        say(f"wrote {plot}")
    if write is not None:
        from quipu.report.html import html_effects

        shown = [one for one in pairs if one.share >= LEAST_SHARE]
        page = html_effects(model.name, read.target, effects, shown, (), tried_models(read), beyond, growth)
        write(page)
        say(f"wrote {output}")
    if as_json:
        by_parameter = [
            {
                "parameter": one.parameter,
                "share": one.share,
                "total": one.total,
                "values": list(one.values),
                "log_time": one.logs.tolist(),
            }
            for one in effects
        ]
        further = [
            {
                "parameter": one.parameter,
                "forms": list(one.forms),
                "values": list(one.values[one.inside :]),
                "log_time": one.logs[one.inside :].tolist(),
                "low": one.low[one.inside :].tolist(),
                "high": one.high[one.inside :].tolist(),
            }
            for one in beyond
        ]
        show_json(
            document_json(
                "tensor-effects",
                str(model),
                effects=by_parameter,
                pairs=[{"parameters": [one.first, one.second], "share": one.share} for one in pairs],
                beyond=further,
                error_by_rows=[{"rows": one.rows, "mlogq": one.error} for one in growth],
            )
        )
        return
    room = layout()
    lines = []
    for one in effects:
        low, high = int(one.logs.argmin()), int(one.logs.argmax())
        lines.append(
            [
                one.parameter,
                percent(one.share),
                percent(one.total),
                _at(one.values[low]),
                _at(one.values[high]),
                f"{float(one.logs[high] - one.logs[low]):.2f}",
            ]
        )
    columns = ["parameter", "alone", "with others", "fastest at", "slowest at", "log ratio"]
    together = [[f"{one.first}, {one.second}", percent(one.share)] for one in pairs if one.share >= LEAST_SHARE]
    tables = [plain_table(columns, lines, room)]
    if growth:
        tables.append(
            plain_table(["rows", "error (MLogQ)"], [[f"{one.rows}", percent(one.error)] for one in growth], room)
        )
    show(tables + ([plain_table(["together", "share"], together, room)] if together else []))


def _at(value: float | str) -> str:
    from quipu.report.text import number

    return value if isinstance(value, str) else number(value)
