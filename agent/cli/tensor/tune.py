# SPDX-License-Identifier: Apache-2.0
"""`quipu tensor tune`: find the configurations with the lowest predicted times."""

from __future__ import annotations

import math
from pathlib import Path

import typer
from quipu.modeling.errors import UsageError

from ..output import layout, show, show_json
from .files import codes_of, read_model


def command(
    *,
    model: Path = typer.Argument(..., metavar="MODEL", help="A model from quipu tensor fit."),
    at: list[str] = typer.Option([], "--at", metavar="NAME=VALUE,...", help="Fixed values of parameters."),
    values: list[str] = typer.Option(
        [], "--values", metavar="NAME=VALUE,...", help="Possible values of a parameter. [default: the measured values]"
    ),
    constraints: list[str] = typer.Option(
        [], "--constraint", metavar="EXPRESSION", help="A condition, such as 'ppn * tpp <= 128'; repeat for several."
    ),
    top: int = typer.Option(5, "--top", min=1, max=50, metavar="N", help="Show the N fastest configurations."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Find the values with the lowest predicted time, for all parameters that --at does not fix.

    Values that were not measured together are combined only if no other configuration fulfils the constraints.

    \b
    Example: quipu tensor tune model.json --at n=1e6 --constraint 'ppn * tpp <= 128'
    """
    from quipu.modeling.tensor.tune import best_configurations
    from quipu.report.json_views import document_json, json_number
    from quipu.report.terminal.tables import plain_table
    from quipu.report.text import number

    read = read_model(model)
    given = codes_of(read, "--at", at)
    if several := [name for name, found in given.items() if len(found) > 1]:
        raise UsageError(f"--at {several[0]}: give one value here, and several values to --values")
    candidates = codes_of(read, "--values", values)
    if twice := [name for name in candidates if name in given]:
        raise UsageError(f"parameter {twice[0]} is in both --at and --values")
    fixed = {name: found[0] for name, found in given.items()}
    found = best_configurations(read, fixed, candidates, constraints, top)
    if as_json:
        configurations = [
            {
                "values": dict(one.values),
                "predicted": one.time,
                "low": one.low,
                "high": json_number(one.high),
                "extrapolated": list(one.extrapolated),
                "hidden": list(one.hidden),
            }
            for one in found
        ]
        show_json(document_json("tensor-tuning", str(model), configurations=configurations))
        return
    columns = [*read.parameters, read.target, "90 % interval", "extrapolated"]
    lines = [
        [
            *(value if isinstance(value, str) else number(value) for value in one.values.values()),
            number(one.time),
            f"{number(one.low)} to {number(one.high)}" if math.isfinite(one.high) else "open",
            ", ".join([*one.extrapolated, *one.hidden]),
        ]
        for one in found
    ]
    show([plain_table(columns, lines, layout())])
