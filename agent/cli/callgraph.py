# SPDX-License-Identifier: Apache-2.0
"""`quipu callgraph`: print the static call graph of a program, before inlining."""

from __future__ import annotations

from pathlib import Path

import typer
from quipu.modeling.errors import UsageError
from quipu.modeling.printable import printable, printable_json

from .output import own_file, say


def command(
    *,
    program: Path = typer.Argument(..., metavar="PROGRAM", help="A program, library or object file; or LLVM IR."),
    library: list[Path] = typer.Option(
        [], "--library", metavar="FILE", help="A shared library that the program loads with dlopen."
    ),
    runs: Path = typer.Option(
        None, "--runs", metavar="EXPERIMENT", help="Measured runs: calls that were observed are marked as certain."
    ),
    metacg: bool = typer.Option(False, "--metacg", help="Write MetaCG format 2.0."),
    dot: bool = typer.Option(False, "--dot", help="Write Graphviz; only functions that main can reach."),
    output: Path = typer.Option(None, "--output", "-o", metavar="FILE", help="Write a file instead of stdout."),
) -> None:
    """Show the call graph of a program that was built with the Quipu compiler wrappers, as JSON.

    The graph contains the functions of the program and of its shared libraries, inlined or not, with their statements,
    loops and calls. A virtual call or a call through a pointer leads to all functions that its type allows.

    The input can also be LLVM IR of any compiler: bitcode (.bc), text (.ll), folders and archives of them.

    \b
    Example: quipu callgraph ./heat --dot -o heat.dot
             quipu callgraph bitcode/ --library other.bc
    """
    from quipu.report.formats.callgraph import callgraph_json, graphviz
    from quipu.report.formats.callgraph import metacg as as_metacg

    from ..installation import quipu_version
    from ..source.callgraph import call_graph

    if metacg and dot:
        raise UsageError("--metacg and --dot are two formats: give one of them")
    write = None
    if output is not None:
        write = own_file(output, _is_call_graph, "call graph", None, [program, *library, runs])
    graph = call_graph(program, library)
    if runs is not None:
        from ..load.measurements import load

        graph = graph.with_seen([load(runs).tree])
    if dot:
        text = graphviz(graph)
    else:
        import msgspec

        data = as_metacg(graph, quipu_version()) if metacg else callgraph_json(graph, printable(str(program)))
        text = printable_json(msgspec.json.format(msgspec.json.encode(data), indent=1).decode()) + "\n"
    if write is None:
        print(text, end="")
    else:
        write(text)
        defined = sum(function.defined for function in graph.functions)
        say(f"wrote {output}: {defined} functions, {len(graph.calls)} calls")


def _is_call_graph(text: str) -> bool:
    """Return whether a text is an output of this command, in any of its formats."""
    return text.startswith(("digraph calls {", '{\n "format": "quipu-callgraph"')) or (
        text.startswith('{\n "_CG"') and '"name": "Quipu"' in text[-200:]
    )
