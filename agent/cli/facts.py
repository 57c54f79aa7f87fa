# SPDX-License-Identifier: Apache-2.0
"""`quipu facts`: show the functions of a program after the optimizations of the compiler."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import UsageError

from .output import layout, show, show_json

if TYPE_CHECKING:
    from ..source.ir import IrFacts

_ORDERS = ("name", "blocks", "instructions", "loops")


def command(
    *,
    program: Path = typer.Argument(..., metavar="PROGRAM", help="A program, library or object file; or LLVM IR."),
    sort: str = typer.Option(
        "blocks", "--sort", "-s", metavar="BY", help="Order: name, blocks, instructions or loops."
    ),
    top: int = typer.Option(None, "--top", min=1, metavar="N", help="Show only the first N functions."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, with the names of the functions that are called."),
) -> None:
    """Show the functions of a program that was built with the Quipu compiler wrappers.

    Sizes are sizes of the compiler's intermediate code after inlining. A function that is a region is measured
    separately; the work of any other function is part of its callers.

    The input can also be LLVM IR of any compiler: bitcode (.bc), text (.ll), folders and archives of them. Then sizes
    are the sizes in these files, and the loops of each function are shown.

    \b
    Example: quipu facts ./heat --top 20
             quipu facts bitcode/ --sort loops
    """
    from quipu.report.terminal import tables

    from ..source.functions import static_functions
    from ..source.ir import IrFacts, functions_of, is_ir

    if sort not in _ORDERS:
        raise UsageError(f"--sort {sort!r}: choose one of {', '.join(_ORDERS)}")
    of_ir = is_ir(program)
    if sort == "loops" and not of_ir:
        raise UsageError("--sort loops: only files of LLVM IR contain loops; for a program see quipu callgraph")
    facts = functions_of(program) if of_ir else [IrFacts(entry, ()) for entry in static_functions(program)]
    facts.sort(key=lambda entry: _place(entry, sort))
    shown = facts[:top]
    if as_json:
        entries = [_as_json(entry, of_ir) for entry in shown]
        show_json({"format": "quipu-facts", "schema": 1, "program": str(program), "functions": entries})
        return
    rows = [_row(entry, of_ir) for entry in shown]
    show([tables.ir_function_table(rows, layout()) if of_ir else tables.function_table(rows, layout())])


def _place(entry: IrFacts, sort: str) -> tuple[int, str]:
    function = entry.function
    size = {"name": 0, "loops": len(entry.loops)}.get(sort)
    return -(getattr(function, sort) if size is None else size), function.display


def _as_json(entry: IrFacts, of_ir: bool) -> dict[str, object]:
    loops = [{"depth": depth, "trip_count": trips} for depth, trips in entry.loops]
    return asdict(entry.function) | ({"loops": loops} if of_ir else {})


def _row(entry: IrFacts, of_ir: bool) -> tuple[str, ...]:
    function = entry.function
    place = f"{function.file}:{function.line}" if function.file else ""
    direct = str(len(function.calls))
    calls = f"{direct}+{function.indirect_calls}" if function.indirect_calls else direct
    sizes = function.display, place, str(function.blocks), str(function.instructions), calls
    if not of_ir:
        return (*sizes, "region" if function.hook else "")
    depth = max((depth for depth, _ in entry.loops), default=0)
    trips = " ".join(f"{trips}" for _, trips in entry.loops if trips is not None)
    return (*sizes, str(len(entry.loops) or ""), str(depth or ""), trips)
