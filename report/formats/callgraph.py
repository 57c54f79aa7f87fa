# SPDX-License-Identifier: Apache-2.0
"""Write call graphs as JSON, in the file format 2.0 of MetaCG (which CaPI and PIRA read), and for Graphviz."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from quipu.modeling.callgraph import CallGraph, CallKind, Function
from quipu.modeling.printable import counted

_LINES = {CallKind.DIRECT: "solid", CallKind.VIRTUAL: "dashed", CallKind.INDIRECT: "dotted", CallKind.HANDED: "dotted"}


def callgraph_json(graph: CallGraph, program: str) -> dict[str, Any]:
    """Return a call graph as a JSON document: its functions, sorted by key, with their callees. program: its name."""
    callees = defaultdict(list)
    for call in graph.calls:
        callees[call.caller].append(
            {
                "function": graph.functions[call.callee].key,
                "kind": call.kind.value,
                "sites": call.sites,
                "loop_depth": call.loop_depth,
                "certain": call.certain,
            }
        )
    sums = graph.aggregated_statements
    recursive, reachable = graph.recursive.tolist(), graph.reachable.tolist()
    order = sorted(range(len(graph.functions)), key=lambda number: graph.functions[number].key)
    functions = [
        {
            **_described(graph.functions[number]),
            "aggregated_statements": int(sums[number]),
            "recursive": recursive[number],
            "reachable": reachable[number],
            "calls": sorted(callees[number], key=lambda call: str(call["function"])),
        }
        for number in order
    ]
    return {"format": "quipu-callgraph", "schema": 1, "program": program, "functions": functions}


def _described(function: Function) -> dict[str, Any]:
    return {name: getattr(function, name) for name in Function.__dataclass_fields__}


def metacg(graph: CallGraph, version: str) -> dict[str, Any]:
    """Return a call graph in the file format 2.0 of MetaCG. version: version of Quipu.

    MetaCG identifies functions by their linker names. If several functions (static ones) have the same linker name,
    their keys, which contain the file, are used instead.
    """
    bearers = Counter(function.name for function in graph.functions)
    names = [function.name if bearers[function.name] == 1 else function.key for function in graph.functions]
    callees: dict[str, set[str]] = defaultdict(set)
    callers: dict[str, set[str]] = defaultdict(set)
    for call in graph.calls:
        callees[names[call.caller]].add(names[call.callee])
        callers[names[call.callee]].add(names[call.caller])
    overridden: dict[str, set[str]] = defaultdict(set)
    for name, function in zip(names, graph.functions, strict=True):
        for base in function.overrides:
            overridden[base].add(name)
    nodes = {
        name: {
            "callees": sorted(callees[name]),
            "callers": sorted(callers[name]),
            "hasBody": function.defined,
            "isVirtual": function.virtual,
            "doesOverride": bool(function.overrides),
            "overrides": list(function.overrides),
            "overriddenBy": sorted(overridden[name]),
            "meta": {
                "numStatements": function.statements,
                "fileProperties": {"origin": function.file, "systemInclude": function.file.startswith("/usr/")},
                "loopDepth": function.loop_depth,
            },
        }
        for name, function in sorted(zip(names, graph.functions, strict=True), key=lambda pair: pair[0])
    }
    generator = {"name": "Quipu", "version": version, "sha": ""}
    return {"_CG": nodes, "_MetaCG": {"version": "2.0", "generator": generator}}


def graphviz(graph: CallGraph) -> str:
    """Return the functions with code that main may reach, in the language of Graphviz.

    Uncertain calls are dashed (virtual functions) or dotted (pointers to functions).
    """
    lines = ["digraph calls {", '  node [shape=box, fontname="sans-serif"];']
    shown = [number for number, f in enumerate(graph.functions) if f.defined and graph.reachable[number]]
    for number in shown:
        function = graph.functions[number]
        text = f"{function.display}\n{counted(function.statements, 'statement', 'statements')}" + (
            f", loops {function.loops}" if function.loops else ""
        )
        lines.append(f"  n{number} [label={_quoted(text)}];")
    visible = set(shown)
    for call in graph.calls:
        if call.caller in visible and call.callee in visible:
            style = "solid" if call.certain else _LINES[call.kind]
            lines.append(f"  n{call.caller} -> n{call.callee} [style={style}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
