# SPDX-License-Identifier: Apache-2.0
"""`quipu facts`: the functions of a program, as the compiler left them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import UsageError

from .output import layout, show, show_json

if TYPE_CHECKING:
    from ..source.functions import StaticFunction

_ORDERS = ("name", "blocks", "instructions")


def command(
    *,
    program: Path = typer.Argument(..., metavar="PROGRAM", help="A program, library or object file."),
    sort: str = typer.Option("blocks", "--sort", "-s", metavar="BY", help="Order: name, blocks or instructions."),
    top: int = typer.Option(None, "--top", min=1, metavar="N", help="Show only the first N functions."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, with the names of the functions that are called."),
) -> None:
    """Show the functions of a program that was built with the Quipu compiler wrappers.

    Sizes are those of the compiler's intermediate code after inlining; a function that is a region is measured on
    its own, and the work of the others counts for their callers.

    \b
    Example: quipu facts ./heat --top 20
    """
    from quipu.report.terminal import tables

    from ..source.functions import static_functions

    if sort not in _ORDERS:
        raise UsageError(f"--sort {sort!r}: choose one of {', '.join(_ORDERS)}")
    functions = static_functions(program)
    functions.sort(key=lambda entry: entry.display if sort == "name" else (-getattr(entry, sort), entry.display))
    shown = functions[:top]
    if as_json:
        entries = [asdict(entry) for entry in shown]
        show_json({"format": "quipu-facts", "schema": 1, "program": str(program), "functions": entries})
        return
    show([tables.function_table([_row(entry) for entry in shown], layout())])


def _row(entry: StaticFunction) -> tuple[str, ...]:
    place = f"{entry.file}:{entry.line}" if entry.file else ""
    calls = f"{len(entry.calls)}+{entry.indirect_calls}" if entry.indirect_calls else str(len(entry.calls))
    return entry.display, place, str(entry.blocks), str(entry.instructions), calls, "region" if entry.hook else ""
