# SPDX-License-Identifier: Apache-2.0
"""`quipu export`: write an experiment, or the call tree of a run, in the format of another tool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import typer
from quipu.modeling.errors import UsageError

from .export_stacks import SUFFIXES as STACKS
from .export_stacks import export_stacks
from .exported import Exported, oversubscribed_note
from .options import OVER_RANKS_OPTION, metric_names, over_ranks_of
from .output import say, show_json, write_own

THICKET = "thicket"
_EXPERIMENTS = {"extrap-json": ".json", "extrap-jsonl": ".jsonl", "csv": ".csv", "parquet": ".parquet"}
# Patterns that show that Quipu exported a file. Such files may be overwritten.
_TABLES = {
    "csv": re.compile(r'"callpath",(?:"[^"\n]*",)*"repetition"'),
    "parquet": re.compile(r"PAR1.*quipu\.export", re.DOTALL),
}
_OWN = re.compile(r'\{"exporter": "quipu", "param(eter)?s"')


def _formats(incomplete: str) -> list[str]:
    """Return the names of formats that begin with `incomplete`, for the completion of commands in a shell."""
    return [name for name in (*_EXPERIMENTS, THICKET, *STACKS) if name.startswith(incomplete)]


def command(
    *,
    measured: Path = typer.Argument(
        ..., metavar="EXPERIMENT", help="An experiment (a folder, or a file of Extra-P), or a run."
    ),
    format_name: str = typer.Option(
        None,
        "--format",
        "-f",
        autocompletion=_formats,
        metavar="FORMAT",
        help="Of an experiment: extrap-json, extrap-jsonl, csv, parquet, thicket (a folder). Of one call tree: folded, "
        "speedscope, chrome-trace, pprof, hatchet, caliper. Default: by the suffix of FILE, else extrap-json.",
    ),
    output: Path = typer.Option(None, "--output", "-o", metavar="FILE", help="Default: the name of the experiment."),
    inclusive: bool = typer.Option(
        None, "--inclusive/--exclusive", help="For Extra-P: values with or without the call paths below."
    ),
    metric: list[str] = typer.Option(
        [],
        "--metric",
        "-m",
        metavar="NAME",
        autocompletion=metric_names,
        help="Metrics of a call tree; repeat or separate by commas. Default: all that are not zero and fit the format.",
    ),
    at: list[str] = typer.Option(
        [],
        "--at",
        metavar="NAME=NUMBER,...",
        help="The configuration of an experiment whose call tree is exported; default: the last one.",
    ),
    ranks: bool = typer.Option(
        False, "--ranks", help="Export each rank separately (speedscope, chrome-trace, caliper)."
    ),
    over_ranks: str = OVER_RANKS_OPTION,
    force: bool = typer.Option(False, "--force", help="Overwrite a file that is not an export."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON about the file."),
) -> None:
    """Write an experiment, or the call tree of a run or configuration, to a file that another tool reads.

    \b
    Example: quipu export heat --format extrap-jsonl -o heat.jsonl
             quipu export heat/p=4,n=100.r1 --format speedscope
             quipu export heat --at p=4,n=100 --format folded --metric blocks
             quipu export heat --format thicket -o heat.cali.runs
    """
    from quipu.report.json_views import document_json

    chosen = _format(format_name, output)
    written = _export(measured, chosen, output, inclusive, metric, at, ranks, over_ranks, force)
    if as_json:
        facts = {"file": str(written.file), "export_format": chosen, "notes": list(written.notes)}
        show_json(document_json("export", written.name, **facts))
        return
    for note in written.notes:
        say(note)
    say(f"wrote {written.file}{written.content}")


def _export(
    measured: Path,
    chosen: str,
    output: Path | None,
    inclusive: bool | None,
    metric: list[str],
    at: list[str],
    ranks: bool,
    over_ranks: str,
    force: bool,
) -> Exported:
    if chosen == THICKET:
        if given := _given(metric, at, ranks, inclusive):
            raise UsageError(f"{given}: a folder of --format {chosen} always contains all exclusive values")
        from .export_runs import export_runs

        return export_runs(measured, output, over_ranks, force)
    if chosen in STACKS:
        if inclusive is not None:
            raise UsageError(f"--inclusive and --exclusive belong to the formats of Extra-P, not to {chosen}")
        return export_stacks(
            measured, chosen, output, metrics=metric, at=at, ranks=ranks, over_ranks=over_ranks, force=force
        )
    if given := _given(metric, at, ranks):
        raise UsageError(f"{given}: a file of --format {chosen} always contains all metrics and configurations")
    return _export_experiment(measured, chosen, output, bool(inclusive), over_ranks, force)


def _given(metric: list[str], at: list[str], ranks: bool, inclusive: bool | None = None) -> str:
    """Return the names of the options that the user gave, separated by commas, for a message."""
    options = (
        ("--metric", metric),
        ("--at", at),
        ("--ranks", ranks),
        ("--inclusive or --exclusive", inclusive is not None),
    )
    return ", ".join(name for name, value in options if value)


def _export_experiment(
    source: Path, chosen: str, output: Path | None, inclusive: bool, over_ranks: str, force: bool
) -> Exported:
    from quipu.report.formats.extrap import format_json, format_json_lines

    from ..load.measurements import load

    data = load(source, over_ranks_of(over_ranks))
    target = Path(f"{data.name}{_EXPERIMENTS[chosen]}") if output is None else output
    if chosen in _TABLES:
        from quipu.modeling.table_columns import table_columns
        from quipu.report.formats import tables

        if inclusive:
            raise UsageError(
                f"--inclusive: a file of --format {chosen} contains exclusive values, which its readers add up"
            )
        content = (tables.csv if chosen == "csv" else tables.parquet)(data)
        write_own(
            target, content, lambda old: _TABLES[chosen].match(old) is not None, f"export to {chosen}", force, [source]
        )
        renamed = table_columns(data.parameters, data.values).renamed
        return Exported(data.name, target, [*oversubscribed_note(data), *renamed])
    written = (format_json if chosen == "extrap-json" else format_json_lines)(data, inclusive)
    write_own(target, written.text, lambda old: _OWN.match(old) is not None, "export of measurements", force, [source])
    notes = oversubscribed_note(data)
    notes += [f"left out, because Extra-P needs every metric at every point: {text}" for text in written.left_out]
    return Exported(data.name, target, notes)


def _format(name: str | None, output: Path | None) -> str:
    suffixes: Mapping[str, str] = {**STACKS, **_EXPERIMENTS}
    if name is None:
        fits = [] if output is None else [known for known, suffix in suffixes.items() if output.name.endswith(suffix)]
        return fits[0] if fits else "extrap-json"
    if name not in (*suffixes, THICKET):
        raise UsageError(f"--format {name!r}: choose one of {', '.join([*_EXPERIMENTS, THICKET, *STACKS])}")
    return name
