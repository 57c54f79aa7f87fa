# SPDX-License-Identifier: Apache-2.0
"""`quipu tensor predict`: predict the times for the rows of a table, or for one configuration."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import typer
from quipu.modeling.errors import UsageError

from ..output import show_json, write_own
from .files import codes_of, naming, read_data, read_model

_COLUMNS = ("predicted", "low", "high", "extrapolated")


def command(
    *,
    model: Path = typer.Argument(..., metavar="MODEL", help="A model from quipu tensor fit."),
    data: Path = typer.Argument(None, metavar="[DATA]", help="A CSV or Parquet file with the parameters."),
    at: list[str] = typer.Option([], "--at", metavar="NAME=VALUE,...", help="One configuration instead."),
    confidence: float = typer.Option(0.9, "--confidence", metavar="SHARE", help="Confidence of the intervals."),
    output: Path = typer.Option(None, "--output", "-o", metavar="FILE", help="Write CSV to a file."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Predict times with their intervals, and name parameters with values outside of the measurements.

    Columns of the output: predicted, low, high, extrapolated (names of parameters; a*b: the values of a and b were
    measured, but not together).

    \b
    Example: quipu tensor predict model.json new.csv -o predicted.csv
    """
    import numpy as np
    from quipu.modeling.tensor.columns import hidden_pairs
    from quipu.report.json_views import document_json

    if (data is None) == (not at):
        raise UsageError("give DATA, or a configuration with --at NAME=VALUE for each parameter")
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"--confidence {confidence:g}: give a share between 0 and 1, such as 0.9")
    read = read_model(model)
    if data is None:
        given = codes_of(read, "--at", at)
        if missing := [name for name in read.parameters if len(given.get(name, [])) != 1]:
            raise UsageError(f"--at: one value for {', '.join(missing)} is needed")
        x = np.array([[given[name][0] for name in read.parameters]])
    else:
        table = read_data(data, read.target, read.categorical)
        with naming(data):
            x = read.matrix(table.columns)
    rows: list[dict[str, Any]] = []
    good = np.isfinite(x).all(axis=1)
    values = [np.full(len(x), np.nan) for _ in range(3)]
    outside = np.zeros(x.shape, dtype=bool)
    if good.any():
        for array, found in zip(values, read.model.predict_interval(x[good], confidence), strict=True):
            array[good] = found
        outside[good] = read.model.extrapolated(x[good])
    hidden = hidden_pairs(read, x)
    for row in range(len(x)):
        names = [name for name, beyond in zip(read.parameters, outside[row], strict=True) if beyond]
        numbers = [float(array[row]) if np.isfinite(array[row]) else None for array in values]
        rows.append(
            dict(zip(("predicted", "low", "high"), numbers, strict=True))
            | {"extrapolated": names, "hidden": hidden[row]}
        )
    if as_json:
        show_json(document_json("tensor-predictions", str(model), rows=rows))
        return
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in rows:
        writer.writerow(
            [
                *("" if one[name] is None else f"{one[name]:.6g}" for name in ("predicted", "low", "high")),
                " ".join([*one["extrapolated"], *one["hidden"]]),
            ]
        )
    if output is None:
        typer.echo(file.getvalue(), nl=False)
    else:
        own = ",".join(_COLUMNS)
        sources = [model, data]
        write_own(output, file.getvalue(), lambda old: old.startswith(own), "file of predictions", None, sources)
