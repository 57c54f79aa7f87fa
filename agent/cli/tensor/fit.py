# SPDX-License-Identifier: Apache-2.0
"""`quipu tensor fit`: fit a model with many parameters to a table of measurements."""

from __future__ import annotations

from pathlib import Path

import typer
from quipu.modeling.errors import UsageError

from ..output import layout, say, show, show_json
from ..quoting import names_of
from .files import naming, read_data, require_model_place, write_model


def command(
    *,
    data: Path = typer.Argument(..., metavar="DATA", help="A CSV or Parquet file, or an experiment."),
    target: str = typer.Option(
        "time", "--target", metavar="COLUMN", help="The column with times; for an experiment, the metric."
    ),
    parameters: list[str] = typer.Option(
        [], "--parameters", metavar="COLUMN,...", help="Columns with parameters. [default: all except the target]"
    ),
    categorical: list[str] = typer.Option(
        [],
        "--categorical",
        metavar="COLUMN,...",
        help="Columns of numbers without an order. Text columns always have none.",
    ),
    uniform: list[str] = typer.Option([], "--uniform", metavar="COLUMN,...", help="Columns with a uniform grid."),
    geometric: list[str] = typer.Option([], "--geometric", metavar="COLUMN,...", help="Columns with a geometric grid."),
    loss: str = typer.Option("log", "--loss", metavar="NAME", help="log, or mlogq2 with positive factors."),
    budget: float = typer.Option(8.0, "--budget", metavar="SECONDS", help="Work for the selection of a model."),
    seed: int = typer.Option(0, "--seed", metavar="N", help="Seed of the random numbers."),
    output: Path = typer.Option(Path("model.json"), "--output", "-o", metavar="FILE", help="The model to write."),
    force: bool = typer.Option(False, "--force", help="Overwrite a file that is not a model."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Fit a tensor-completion model; validation on held-out rows selects grids, rank and penalties.

    \b
    Example: quipu tensor fit data.csv --target time_s --categorical layout,solver -o model.json
    """
    from quipu.modeling.tensor.columns import fit_columns
    from quipu.report.json_views import document_json
    from quipu.report.terminal import head
    from quipu.report.text import number, percent, quality_fact

    if not 0.0 < budget <= 1e5:
        raise UsageError(f"--budget {budget:g}: give seconds above 0, up to 100000")
    if not 0 <= seed < 2**32:
        raise UsageError(f"--seed {seed}: give a whole number from 0 to 4294967295")
    if loss not in ("log", "mlogq2"):
        raise UsageError(f"--loss {loss!r}: choose one of log, mlogq2")
    both = dict.fromkeys(names_of(uniform), "uniform"), dict.fromkeys(names_of(geometric), "geometric")
    if twice := sorted(both[0].keys() & both[1].keys()):
        raise UsageError(f"--uniform and --geometric both name {twice[0]}")
    require_model_place(output, force)
    table = read_data(data, target, names_of(categorical))
    with naming(data):
        model, x, _, notes = fit_columns(
            table.columns,
            target,
            names_of(parameters),
            names_of(categorical),
            both[0] | both[1],
            table.place,
            loss=loss,
            time_budget=budget,
            random_state=seed,
        )
    notes = (*table.notes, *notes)
    size = write_model(output, model, force)
    fitted = model.model
    if as_json:
        show_json(
            document_json(
                "tensor-fit",
                str(data),
                quality=table.quality,
                model=str(output),
                rows=len(x),
                parameters=list(model.parameters),
                categorical=list(model.categorical),
                rank=fitted.rank_,
                bytes=size,
                mlogq=fitted.error_ if fitted.error_ == fitted.error_ else None,
                notes=list(notes),
            )
        )
        return
    room = layout()
    error = f"{percent(fitted.error_)} on held-out rows (MLogQ)" if fitted.error_ == fitted.error_ else "not known"
    shown = [
        *quality_fact(table.quality),
        ("rows", f"{len(x)}"),
        ("parameters", ", ".join(model.parameters)),
        ("categorical", ", ".join(model.categorical) or "none"),
        (
            "derived",
            ", ".join(_derived(model.parameters, mode) for mode in fitted.modes_ if len(mode.parameters) > 1) or "none",
        ),
        ("rank, knots", f"{fitted.rank_}, {' × '.join(str(mode.size) for mode in fitted.modes_) or 'none'}"),
        ("error", error),
        ("size", f"{number(size)} bytes"),
    ]
    show([head(str(data), shown, list(notes), room)])
    say(f"wrote {output} and {output.with_suffix('.npz').name}")


def _derived(names: tuple[str, ...], mode: object) -> str:
    first, second = (names[at] for at in mode.parameters)  # type: ignore[attr-defined]
    return f"{first} {'·' if mode.signs[1] > 0 else '/'} {second}"  # type: ignore[attr-defined]
