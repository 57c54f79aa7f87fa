# SPDX-License-Identifier: Apache-2.0
"""The call graph that the pass leaves in object files, through every way of linking."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from quipu.agent.campaign.repetition import LaunchOptions, run
from quipu.agent.cli.main import run_command_line
from quipu.agent.installation import native_file
from quipu.agent.source.callgraph import call_graph
from quipu.modeling.callgraph import CallGraph, CallKind
from quipu.modeling.errors import FormatError

from .conftest import INSTALLED_LLVMS, PROGRAMS, Workshop


def calls_of(graph: CallGraph) -> dict[tuple[str, str], tuple[CallKind, int]]:
    """Return the kinds and loop depths of calls by displayed names; static functions by their keys."""
    keys = [f.key if "@" in f.key else f.display.partition("(")[0] for f in graph.functions]
    return {(keys[call.caller], keys[call.callee]): (call.kind, call.loop_depth) for call in graph.calls}


def objects(workshop: Workshop, *options: str) -> list[Path]:
    made = []
    for name in ("callgraph", "callgraph_other"):
        made.append(workshop.folder / f"{name}.o")
        command: list[str | Path] = [native_file("quipu-c++"), "-c", *options, PROGRAMS / f"{name}.cpp", "-o", made[-1]]
        subprocess.run(command, check=True, env=workshop.environment)
    return made


@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_calls_of_every_kind(workshop: Workshop, level: str) -> None:
    program = workshop.folder / "program"
    parts = objects(workshop, level)
    subprocess.run([native_file("quipu-c++"), *parts, "-pthread", "-o", program], check=True, env=workshop.environment)
    graph = call_graph(program)
    calls = calls_of(graph)
    here, other = (f"_ZL6helperi@{PROGRAMS / name}" for name in ("callgraph.cpp", "callgraph_other.cpp"))
    assert calls["choose", here] == (CallKind.DIRECT, 0)
    assert calls["outside", other] == (CallKind.DIRECT, 0)
    assert calls["main", "Square::area"] == calls["main", "Circle::area"] == (CallKind.VIRTUAL, 2)
    assert calls["main", "choose"] == calls["main", "compute"] == (CallKind.INDIRECT, 0)
    assert calls["main", "work"] == calls["main", "compare"] == (CallKind.HANDED, 0)
    assert ("main", "Circle::edge") not in calls
    by_name = {function.display.partition("(")[0]: number for number, function in enumerate(graph.functions)}
    functions = {name: graph.functions[number] for name, number in by_name.items()}
    assert functions["compute"].statements == 4  # Listing 1 of PIRA II
    assert (functions["compute"].loops, functions["main"].loop_depth) == (1, 2)
    assert functions["Circle::edge"].overrides == ("_ZNK5Shape4edgeEv",)
    recursive = {name for name, number in by_name.items() if graph.recursive[number]}
    assert recursive == {"odd", "even"}
    assert not graph.reachable[by_name["never"]]
    assert graph.reachable[by_name["outside"]]


def test_every_way_of_linking(workshop: Workshop) -> None:
    parts = objects(workshop, "-O2", "-fPIC")
    folder = workshop.folder
    compiler = str(native_file("quipu-c++"))

    def run(*command: str | Path) -> None:
        subprocess.run([*map(str, command)], check=True, env=workshop.environment, cwd=folder)

    run(compiler, *parts, "-pthread", "-o", "direct")
    run("ar", "rcs", "libother.a", parts[1])
    run(compiler, parts[0], "libother.a", "-pthread", "-o", "archived")
    run("ld", "-r", *parts, "-o", "joined.o")
    run(compiler, "joined.o", "-pthread", "-o", "relocated")
    run(compiler, "-shared", parts[1], "-o", "libother.so")
    run(compiler, parts[0], "-L.", "-lother", "-Wl,-rpath,$ORIGIN", "-pthread", "-o", "shared")
    expected = calls_of(call_graph(folder / "direct"))
    for name in ("archived", "relocated", "shared"):
        assert calls_of(call_graph(folder / name)) == expected
    assert ("outside", "helper") in calls_of(call_graph(parts[1]))
    content = parts[1].read_bytes()
    for place, damage in (("QPS1", b"QPS2"), ("QPS1", b"QPS1\xff\xff\xff\x7f")):
        start = content.index(place.encode())
        parts[1].write_bytes(content[:start] + damage + content[start + len(damage) :])
        with pytest.raises(FormatError, match=r"section \.quipu\.facts is damaged at byte 0"):
            call_graph(parts[1])


def test_fortran(workshop: Workshop) -> None:
    source = workshop.folder / "source.f90"
    source.write_text(
        """module m
contains
subroutine grow(a, n)
  integer :: n, i, j
  real(8) :: a(n,n)
  do i = 1, n
    do j = 1, n
      call bump(a(j,i))
    end do
  end do
end subroutine
subroutine bump(x)
  real(8) :: x
  x = x + 1
end subroutine
end module
program p
  use m
  real(8) :: a(4,4)
  a = 1
  call grow(a, 4)
  print *, a(1,1)
end program
"""
    )
    graph = call_graph(workshop.build(source, "-O2", wrapper="quipu-fc"))
    calls = calls_of(graph)
    assert calls["main program", "m::grow"] == (CallKind.DIRECT, 0)
    assert calls["m::grow", "m::bump"] == (CallKind.DIRECT, 2)
    main = graph.main
    assert main is not None
    assert graph.functions[main].name == "_QQmain"
    assert graph.functions[graph.index["_QMmPbump"]].fortran


def test_the_command_marks_calls_that_a_run_has_seen(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    """`main` may call `compute` or `choose` through a pointer and calls one. The exports to MetaCG and dot mark it."""
    program, folder = workshop.folder / "program", workshop.folder
    command: list[str | Path] = [native_file("quipu-c++"), "-O0", *objects(workshop, "-O0"), "-pthread", "-o", program]
    subprocess.run(command, check=True, env=workshop.environment)
    run([str(program)], {}, 1, folder / "runs", LaunchOptions(environment={"QUIPU_ALL": "1"}))

    def graph_of(*options: str | Path) -> str:
        capsys.readouterr()
        assert run_command_line(["callgraph", str(program), *map(str, options)]) == 0
        return capsys.readouterr().out

    def certain(text: str) -> set[str]:
        (main,) = (one for one in json.loads(text)["functions"] if one["key"] == "main")
        return {call["function"] for call in main["calls"] if call["certain"] and call["kind"] == "indirect"}

    assert certain(graph_of()) == set()
    seen = certain(graph_of("--runs", folder / "runs"))
    assert len(seen) == 1
    nodes = json.loads(graph_of("--metacg"))["_CG"]
    assert seen <= set(nodes["main"]["callees"])
    statics = {name for name in nodes if name.startswith("_ZL6helperi")}
    assert {tuple(nodes[name]["callers"]) for name in statics} == {("_Z6choosei",), ("_Z7outsidei",)}
    drawn = graph_of("--dot")
    assert 'label="main\\n' in drawn
    assert all(f"style={style}" in drawn for style in ("solid", "dashed", "dotted"))


LIBRARY = """
#include <algorithm>
#include <string>
#include <vector>

struct Item {
    Item(int n);
    Item(const Item &);
    int n;
};
Item::Item(int n) : n(n) {}
Item::Item(const Item &o) : n(o.n) {}

int main(int argc, char **) {
    std::vector<Item> items;
    items.push_back(Item(argc));
    std::vector<int> numbers;
    numbers.push_back(argc);
    return std::string(argc, 'x').size() + items.size() + numbers.size() + std::max(argc, 2) == 0;
}
"""


def test_library_without_the_program_is_left_out(workshop: Workshop) -> None:
    source, program = workshop.folder / "library.cpp", workshop.folder / "library"
    source.write_text(LIBRARY)
    command: list[str | Path] = [native_file("quipu-c++"), "-g", "-std=c++17", source, "-o", program]
    subprocess.run(command, check=True, env=workshop.environment)
    graph = call_graph(program)
    defined = {function.display for function in graph.functions if function.defined}
    assert "std::vector<Item, std::allocator<Item>>::push_back(Item&&)" in defined  # reaches Item::Item
    assert not {
        name for name in defined if name.startswith(("std::max", "std::vector<int, std::allocator<int>>::size"))
    }
    bitcode = workshop.folder / "library.bc"
    subprocess.run(
        ["clang++-19", "-g", "-std=c++17", "-c", "-emit-llvm", source, "-o", bitcode],
        check=True,
        env=workshop.environment,
    )
    assert {f.display for f in call_graph(bitcode).functions if f.defined} == defined
