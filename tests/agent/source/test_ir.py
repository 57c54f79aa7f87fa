# SPDX-License-Identifier: Apache-2.0
"""Facts and call graphs out of LLVM IR that other compilers wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from peers import require
from quipu.agent.installation import native_file
from quipu.agent.source.callgraph import call_graph
from quipu.agent.source.ir import IrFacts, functions_of, is_ir
from quipu.agent.source.ir_text import call_of, read_text
from quipu.modeling.callgraph import CallGraph, CallKind
from quipu.modeling.errors import FormatError

require("llvmlite")

SOURCE = """
#include <stdlib.h>
struct Base { virtual double apply(double) = 0; virtual ~Base() {} };
struct Twice : Base {
    double apply(double x) override {
        for (int i = 0; i < 17; i++)
            x *= 1.5;
        return x;
    }
};
static int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}
double grid[100][50];
double sweep(int n) {
    double sum = 0;
    for (int i = 0; i < 100; i++)
        for (int j = 0; j < 50; j++)
            for (int k = 0; k < n; k++)
                sum += grid[i][j] * k;
    return sum;
}
int down(int n) {
    int sum = 0, i = 0;
    for (int k = 10; k > 0; k -= 3)
        sum += n / k;
    do {
        sum += i;
        i += 2;
    } while (i < 9);
    while (n > 0)
        n /= 2;
    return sum;
}
static int recursive(int n) { return n ? recursive(n - 1) : 0; }
int main(int argc, char **argv) {
    int numbers[3] = {3, 1, 2};
    qsort(numbers, 3, sizeof *numbers, compare);
    Base *twice = new Twice;
    int (*through)(int) = argc > 1 ? down : recursive;
    for (int i = 0; i < argc; i++)
        sweep(through(i));
    return twice->apply(2) > 3;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a C++ program as bitcode at -O0 and as text at -O1."""
    folder = tmp_path_factory.mktemp("ir")
    (folder / "app.cpp").write_text(SOURCE)
    for output, options in (("app.bc", "-O0 -c"), ("app.ll", "-O1 -S")):
        command = ["clang++-19", "-g", *options.split(), "-emit-llvm", "app.cpp", "-o", output]
        subprocess.run(command, check=True, cwd=folder)
    return folder


def by_name(facts: list[IrFacts]) -> dict[str, IrFacts]:
    return {entry.function.display: entry for entry in facts}


def calls(graph: CallGraph) -> set[tuple[str, str, CallKind]]:
    names = [function.display for function in graph.functions]
    return {(names[call.caller], names[call.callee], call.kind) for call in graph.calls}


def test_loops_and_constant_trip_counts(folder: Path) -> None:
    found = by_name(functions_of(folder / "app.bc"))
    assert found["sweep(int)"].loops == ((1, 100), (2, 50), (3, None))
    assert found["down(int)"].loops == ((1, 4), (1, 5), (1, None))
    assert found["Twice::apply(double)"].loops == ((1, 17),)
    assert found["compare(void const*, void const*)"].loops == ()
    assert by_name(functions_of(folder / "app.ll"))["sweep(int)"].loops == ((1, 100), (2, 50), (3, None))


def test_sizes_places_and_calls(folder: Path) -> None:
    main = by_name(functions_of(folder / "app.bc"))["main"].function
    assert (Path(main.file).name, main.line) == ("app.cpp", 36)
    assert main.indirect_calls == 2
    assert {"qsort", "_Z5sweepi"} <= set(main.calls)
    assert main.blocks > 3
    assert main.instructions > main.blocks


def test_the_graph_is_that_of_the_wrappers(folder: Path, tmp_path: Path) -> None:
    """The pass sees the same source before optimization; it knows rows of virtual tables besides."""
    subprocess.run([native_file("quipu-c++"), "-g", "-O0", folder / "app.cpp", "-o", tmp_path / "app"], check=True)
    wrapped, read = call_graph(tmp_path / "app"), call_graph(folder / "app.bc")
    facts = [
        {f.key: (f.display, f.line, f.statements, f.loops, f.loop_depth, f.local) for f in graph.functions if f.defined}
        for graph in (wrapped, read)
    ]
    assert facts[0] == facts[1]
    certain = [
        {call for call in calls(graph) if call[2] in (CallKind.DIRECT, CallKind.HANDED)} for graph in (wrapped, read)
    ]
    assert certain[0] == certain[1]
    for caller, callee, _ in calls(wrapped):  # over-approximated by type alone
        assert any((caller, callee) == call[:2] for call in calls(read))


def test_calls_through_pointers_follow_their_type(folder: Path) -> None:
    found = calls(call_graph(folder / "app.bc"))
    assert ("main", "down(int)", CallKind.INDIRECT) in found
    assert ("main", "recursive(int)", CallKind.INDIRECT) in found
    assert ("main", "compare(void const*, void const*)", CallKind.HANDED) in found
    assert ("recursive(int)", "recursive(int)", CallKind.DIRECT) in found
    assert not any(callee.startswith("compare") and kind is CallKind.INDIRECT for _, callee, kind in found)


def test_folders_and_archives(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "app.bc").write_bytes((folder / "app.bc").read_bytes())
    (tmp_path / "other.ll").write_text(
        "declare void @_Z5sweepi(i32)\ndefine void @other() {\n  call void @_Z5sweepi(i32 3)\n  ret void\n}\n"
    )
    expected = {*by_name(functions_of(folder / "app.bc")), "other"}
    assert set(by_name(functions_of(tmp_path))) == expected
    assert ("other", "sweep(int)", CallKind.DIRECT) in calls(call_graph(tmp_path))
    members = [tmp_path / "deep" / "er" / "app.bc", tmp_path / f"{'long' * 10}.ll"]
    members[1].write_bytes((tmp_path / "other.ll").read_bytes())
    for tool in ("llvm-ar-19", "llvm-ar-19 --format=bsd"):
        archive = tmp_path / "lib.a"
        archive.unlink(missing_ok=True)
        subprocess.run([*tool.split(), "rc", archive, *members], check=True, capture_output=True)
        assert is_ir(archive)
        assert set(by_name(functions_of(archive))) == expected


def test_elf_files_are_no_ir(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int main(void) { return 0; }")
    subprocess.run(["clang-19", "-c", "a.c"], check=True, cwd=tmp_path)
    subprocess.run(["ar", "rc", "lib.a", "a.o"], check=True, cwd=tmp_path)
    assert not is_ir(tmp_path / "a.o")
    assert not is_ir(tmp_path / "lib.a")
    assert not is_ir(tmp_path / "none")


NEWER = """define i32 @f() {
  %y = frobnicate i32 1
  ret i32 %y
}
!llvm.ident = !{!0}
!0 = !{!"clang version 99.1.2"}
"""


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("new.ll", NEWER.encode(), "was written by LLVM 99.1.2, and llvmlite here reads up to LLVM "),
        ("bad.ll", b"hello", "cannot read it: LLVM IR parsing error"),
        ("binary.ll", b"define \xff\xfe", "is neither text nor bitcode"),
        ("bad.bc", b"BC\xc0\xdenothing", "cannot read it: LLVM bitcode parsing error"),
        ("undefined.ll", b"define i32 @f() {\n  ret i32 %x\n}\n", "cannot read it: "),
        ("lib.a", b"!<arch>\n" + b"x" * 70, "the header of a member"),
    ],
)
def test_bad_files_are_one_error(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        functions_of(tmp_path / name)
    assert name in str(caught.value)


def test_a_cut_file_is_an_error(folder: Path, tmp_path: Path) -> None:
    content = (folder / "app.bc").read_bytes()
    for size in (100, 1000, len(content) // 2):
        (tmp_path / "cut.bc").write_bytes(content[:size])
        with pytest.raises(FormatError):
            functions_of(tmp_path / "cut.bc")


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"contains no LLVM IR"):
        call_graph(tmp_path)


def test_names_of_rust(tmp_path: Path) -> None:
    (tmp_path / "r.ll").write_text(
        "define void @_ZN4core3ptr28drop_in_place$LT$$RF$str$GT$17h0123456789abcdefE() {\n  ret void\n}\n"
        'define void @"name with \\22quotes\\22"() {\n  ret void\n}\n'
    )
    assert set(by_name(functions_of(tmp_path / "r.ll"))) == {"core::ptr::drop_in_place<&str>", 'name with "quotes"'}


@pytest.mark.parametrize(
    ("text", "callee", "kind"),
    [
        ("call void @f(ptr noundef %x, i32 1)", "f", "void (ptr, i32)"),
        ("call i32 (ptr, ...) @printf(ptr @.str, double %v)", "printf", "i32 (ptr, ...)"),
        (
            "tail call fastcc noundef { i32, i64 } %p(<4 x float> %a, [2 x i64] %b)",
            "",
            "{ i32, i64 } (<4 x float>, [2 x i64])",
        ),
        ('invoke void @"a b"(ptr byval(%t) align 8 %s) to label %1 unwind label %2', "a b", "void (ptr)"),
        ('call void asm sideeffect "nop(", "~{memory}"()', "", ""),
    ],
)
def test_types_of_calls(text: str, callee: str, kind: str) -> None:
    module = read_text(f"define void @g() {{\n  {text}\n  ret void\n}}")
    (found, *_) = module.functions[0].blocks[0].instructions
    assert call_of(found)[:2] == (callee, kind)


LOOP = """
define void @f() {{
entry:
  br label %loop
loop:
  %i = phi {type} [ {start}, %entry ], [ %next, %loop ]
  call void @g()
  %next = {step}
  %go = icmp {compare}
  br i1 %go, label %{true}, label %{false}
end:
  ret void
}}
declare void @g()
"""


@pytest.mark.parametrize(
    ("start", "step", "compare", "stays", "trips"),
    [
        (0, "add i32 %i, 1", "slt i32 %next, 10", True, 10),
        (0, "add nuw nsw i32 %i, 3", "sle i32 %next, 9", True, 4),
        (5, "add i32 %i, -1", "sgt i32 %next, 0", True, 5),
        (5, "sub i32 %i, 1", "eq i32 %next, 0", False, 5),
        (0, "add i32 %i, 4", "ne i32 %next, 10", True, None),  # never equal
        (0, "add i32 %i, 1", "sgt i32 10, %next", True, 10),
        (0, "add i32 %i, 1", "sge i32 %next, 10", False, 10),
        (20, "add i32 %i, 1", "slt i32 %next, 10", True, 1),
        (0, "mul i32 %i, 2", "slt i32 %next, 10", True, None),
        (-5, "add i32 %i, 1", "ult i32 %next, 10", True, None),
        (0, "add i32 %i, -1", "slt i32 %next, 10", True, None),
        (0, "add i32 %i, 1", "slt i32 %i, 10", True, 11),
    ],
)
def test_trip_counts(tmp_path: Path, start: int, step: str, compare: str, stays: bool, trips: int | None) -> None:
    ends = {"true": "loop", "false": "end"} if stays else {"true": "end", "false": "loop"}
    text = LOOP.format(type="i32", start=start, step=step, compare=compare, **ends)
    (tmp_path / "loop.ll").write_text(text)
    assert functions_of(tmp_path / "loop.ll")[0].loops == ((1, trips),)


def test_an_irreducible_graph_and_code_that_nobody_reaches(tmp_path: Path) -> None:
    (tmp_path / "odd.ll").write_text(
        "define void @f(i1 %c) {\n  br i1 %c, label %a, label %b\na:\n  br label %b\nb:\n"
        "  br i1 %c, label %a, label %e\n"
        "e:\n  ret void\ndead:\n  br label %dead\n}\n"
    )
    assert functions_of(tmp_path / "odd.ll")[0].loops == ()
