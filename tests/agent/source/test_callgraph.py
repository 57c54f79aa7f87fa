# SPDX-License-Identifier: Apache-2.0
"""How object files are joined to one call graph."""

from __future__ import annotations

import numpy as np
from quipu.agent.source.callgraph import joined
from quipu.agent.source.described import DescribedAddress, DescribedAlias, DescribedFunction, DescribedTable, Entry
from quipu.modeling.callgraph import CallGraph, CallKind
from quipu.modeling.experiment import CallTree, Region
from quipu.report.formats.callgraph import callgraph_json, graphviz, metacg


def edges(graph: CallGraph) -> set[tuple[str, str, str]]:
    keys = [function.key for function in graph.functions]
    return {(keys[call.caller], keys[call.callee], call.kind.value) for call in graph.calls}


def test_a_strong_definition_takes_the_place_of_a_weak_one() -> None:
    weak = DescribedFunction("f", statements=1, weak=True, calls=(("g", 1, 0),))
    strong = DescribedFunction("f", statements=2, calls=(("h", 1, 0),))
    graph = joined([[weak], [strong], [weak]])
    assert edges(graph) >= {("f", "h", "direct")}
    assert graph.functions[graph.index["f"]].statements == 2


def test_static_functions_of_a_header_are_one_and_others_stay_apart() -> None:
    header = DescribedFunction("s", file="a.h", line=3, local=True)
    other = DescribedFunction("s", file="b.c", line=3, local=True)
    files = [
        [header, DescribedFunction("f", calls=(("s", 1, 0),))],
        [header, DescribedFunction("g", calls=(("s", 1, 0),))],
        [other, DescribedFunction("h", calls=(("s", 1, 0),))],
    ]
    assert edges(joined(files)) == {("f", "s@a.h", "direct"), ("g", "s@a.h", "direct"), ("h", "s@b.c", "direct")}
    graph = joined(files)
    found = graph.of_region(Region("s", "s", file="b.c"))
    assert found is not None
    assert graph.functions[found].key == "s@b.c"


def test_aliases_addresses_of_other_files_and_tables() -> None:
    files: list[list[Entry]] = [
        [
            DescribedAlias("C1", "C2"),
            DescribedFunction("C2"),
            DescribedFunction("D", type="void (ptr)"),
            DescribedTable("_ZTV1A", (((), ("B", "void (ptr)"), ("D", "void (ptr)")),)),
        ],
        [
            DescribedFunction(
                "main", calls=(("C1", 2, 1),), indirect=(("i32 ()", 1, 0),), virtual=((2, "void (ptr)", 1, 1),)
            ),
            DescribedAddress("t", "i32 ()"),
            DescribedFunction("t"),
            DescribedFunction("other", taken=True, type="i32 (i32)"),
        ],
    ]
    graph = joined(files)
    assert edges(graph) == {("main", "C2", "direct"), ("main", "t", "indirect"), ("main", "D", "virtual")}
    tree = CallTree(
        (Region("main", "main"), Region("D", "D")), np.array([0, 1], dtype=np.int64), np.array([-1, 0], dtype=np.int64)
    )
    seen = {graph.functions[call.callee].key for call in graph.with_seen([tree]).calls if call.certain}
    assert seen == {"C2", "D"}


def test_sums_of_statements_count_each_function_once() -> None:
    names = {"main": "ab", "a": "bc", "b": "a", "c": "", "x": "c"}
    functions = [
        DescribedFunction(name, statements=10**at, calls=tuple((callee, 1, 0) for callee in callees))
        for at, (name, callees) in enumerate(names.items())
    ]
    graph = joined([functions])
    sums = {function.key: int(graph.aggregated_statements[n]) for n, function in enumerate(graph.functions)}
    assert sums == {"main": 1111, "a": 1110, "b": 1110, "c": 1000, "x": 11000}
    on_paths = graph.on_paths_from_main([graph.index["c"]])
    assert {graph.functions[int(n)].key for n in np.flatnonzero(on_paths)} == {"main", "a", "b", "c"}


def test_exports() -> None:
    graph = joined([[DescribedFunction("main", calls=(("f", 3, 2),), statements=4), DescribedFunction("f", depth=1)]])
    content = metacg(graph, "1")
    assert content["_CG"]["f"]["callers"] == ["main"]
    assert content["_CG"]["main"]["meta"]["numStatements"] == 4
    assert content["_MetaCG"]["version"] == "2.0"
    (main,) = (entry for entry in callgraph_json(graph, "p")["functions"] if entry["key"] == "main")
    assert main["calls"] == [{"function": "f", "kind": "direct", "sites": 3, "loop_depth": 2, "certain": True}]
    assert CallKind.DIRECT.value in str(main)
    assert "n0 -> n1 [style=solid];" in graphviz(graph)
