"""`quipu tensor explain`: which parameters matter, alone and together."""

from __future__ import annotations

from pathlib import Path

import typer

from ..output import layout, say, show, show_json, write_own
from .files import read_model

LEAST_SHARE = 0.001
"""Share of the variance from which a pair is shown."""


def command(
    *,
    model: Path = typer.Argument(..., metavar="MODEL", help="A model that quipu tensor fit wrote."),
    top: int = typer.Option(8, "--top", min=2, max=50, metavar="N", help="Pairs of the N most important parameters."),
    plot: Path = typer.Option(
        None, "--plot", metavar="FILE", help="Draw the effects to a PNG, SVG or PDF file (needs matplotlib)."
    ),
    output: Path = typer.Option(None, "--output", "-o", metavar="FILE", help="Write an HTML page of the effects, too."),
    force: bool = typer.Option(False, "--force", help="Write over a file that is no such page."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show the share of the variance of log time that each parameter explains, alone and with others.

    \b
    Example: quipu tensor explain model.json -o effects.html
    """
    from quipu.modeling.tensor.explain import main_effects, pair_effects, tried_models
    from quipu.report.json_views import document_json
    from quipu.report.terminal.tables import plain_table
    from quipu.report.text import percent

    read = read_model(model)
    effects = main_effects(read)
    pairs = pair_effects(read, [effect.parameter for effect in effects[:top]])[:top]
    if plot is not None:
        from quipu.report.tensor_plots import draw_effects

        draw_effects(effects, read.target, plot, tried_models(read))
        say(f"wrote {plot}")
    if output is not None:
        from quipu.report.html import html_effects

        shown = [one for one in pairs if one.share >= LEAST_SHARE]
        page = html_effects(model.name, read.target, effects, shown, (), tried_models(read))
        write_own(output, page, lambda old: "quipu-tensor-effects" in old, "page of effects", force)
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
        by_pair = [{"parameters": [one.first, one.second], "share": one.share} for one in pairs]
        show_json(document_json("tensor-effects", str(model), effects=by_parameter, pairs=by_pair))
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
    show(tables + ([plain_table(["together", "share"], together, room)] if together else []))


def _at(value: float | str) -> str:
    from quipu.report.text import number

    return value if isinstance(value, str) else number(value)
