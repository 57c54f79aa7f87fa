# SPDX-License-Identifier: Apache-2.0
"""Regions that programs mark with the interfaces of other tools, with the tool in the process and without it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from quipu.agent.installation import native_file

from .conftest import Measured, Workshop

LIBRARY = native_file("libquipu_annotations.so")
HEAD = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static volatile double sink;
__attribute__((noinline)) static void work(int n) { for (int i = 0; i < n; i++) sink += i; }
"""


def run(workshop: Workshop, program: str, tool: str = "", *, suffix: str = ".c", **environment: str) -> Measured:
    """Run a program that declares functions of a tool. tool: the source of the tool; without one Quipu has them."""
    source = workshop.folder / f"program{suffix}"
    source.write_text(HEAD + program)
    libraries = [str(LIBRARY)]
    if tool:
        (workshop.folder / f"tool{suffix}").write_text("#include <stdio.h>\n#include <stdarg.h>\n" + tool)
        libraries = [str(workshop.folder / "tool.so")]
        compiler = "clang++-19" if suffix == ".cpp" else "clang-19"
        command = [compiler, "-shared", "-fPIC", str(workshop.folder / f"tool{suffix}"), "-o", libraries[0]]
        subprocess.run(command, check=True)
    built = workshop.build(source, "-O1", "--quipu-all", *libraries, f"-Wl,-rpath,{LIBRARY.parent}", "-ldl")
    return workshop.run(built, LD_PRELOAD=str(LIBRARY), ends_with=0, **environment)


def visits(measured: Measured) -> dict[str, float]:
    assert not measured.profile.attributes.get("annotation_problem")
    return {"/".join(path): values["visits"] for path, values in measured.tree.items() if path and values["visits"]}


CALIPER = """
typedef uint64_t cali_id_t;
void cali_begin_region(const char *); void cali_end_region(const char *);
void cali_begin_phase(const char *); void cali_end_phase(const char *);
void cali_begin_byname(const char *); void cali_end_byname(const char *);
void cali_begin_string_byname(const char *, const char *); void cali_begin_int_byname(const char *, int);
cali_id_t cali_make_loop_iteration_attribute(const char *);
void cali_begin_int(cali_id_t, int); void cali_end(cali_id_t);
void cali_init(void);
int main(void) {
    cali_init();
    cali_begin_region("main loop");
    cali_id_t iteration = cali_make_loop_iteration_attribute("main loop");
    for (int i = 0; i < 3; i++) {
        cali_begin_int(iteration, i);
        cali_begin_phase("solve"); work(1); cali_end_phase("solve");
        cali_end(iteration);
    }
    cali_end_region("main loop");
    cali_begin_byname("alone"); work(1); cali_end_byname("alone");
    cali_begin_string_byname("region", "value"); work(1); cali_end_byname("region");
    cali_begin_string_byname("kind", "fast"); work(1); cali_end_byname("kind");
    cali_begin_int_byname("level", 3); work(1); cali_end_byname("level");
    cali_end_byname("never");
}
"""
CALIPER_TOOL = """
#include <stdint.h>
#define NAMED(function) void function(const char *name) { printf("%s %s\\n", #function, name); }
NAMED(cali_begin_region) NAMED(cali_end_region) NAMED(cali_begin_phase) NAMED(cali_end_phase)
NAMED(cali_begin_byname) NAMED(cali_end_byname)
void cali_begin_string_byname(const char *name, const char *value) { printf("string %s %s\\n", name, value); }
void cali_begin_int_byname(const char *name, int value) { printf("int %s %d\\n", name, value); }
uint64_t cali_make_loop_iteration_attribute(const char *name) { (void)name; return 42; }
const char *cali_attribute_name(uint64_t id) { return id == 42 ? "iteration#main loop" : ""; }
void cali_begin_int(uint64_t id, int value) { printf("begin %d %d\\n", (int)id, value); }
void cali_end(uint64_t id) { printf("end %d\\n", (int)id); }
void cali_init(void) { puts("init"); }
"""


@pytest.mark.parametrize("tool", ["", CALIPER_TOOL], ids=["alone", "with Caliper"])
def test_caliper(workshop: Workshop, tool: str) -> None:
    measured = run(workshop, CALIPER, tool)
    assert {path: count for path, count in visits(measured).items() if path.endswith("/work")} == {
        "main/main loop/iteration#main loop/solve/work": 3,
        "main/alone/work": 1,
        "main/value/work": 1,
        "main/kind=fast/work": 1,
        "main/level/work": 1,
    }
    assert any(key.startswith("iterations:0:iteration#main loop") for key in measured.profile.attributes)
    if tool:
        lines = measured.stdout.splitlines()
        assert lines[:5] == [
            "init",
            "cali_begin_region main loop",
            "begin 42 0",
            "cali_begin_phase solve",
            "cali_end_phase solve",
        ]
        assert lines[-1] == "cali_end_byname never"
        assert len(lines) == 24


CALIPER_CPP = """
namespace cali {
struct ScopeAnnotation { explicit ScopeAnnotation(const char *name); ~ScopeAnnotation(); };
struct Function { explicit Function(const char *name); ~Function(); };
struct Loop {
    struct Impl;
    Impl *pI;
    struct Iteration { const Impl *pI; Iteration(const Impl *, int); ~Iteration(); };
    Loop(const char *name); ~Loop(); void end();
};
}
"""
CALIPER_CPP_PROGRAM = (
    CALIPER_CPP
    + """
__attribute__((noinline)) static void solve() { cali::Function mark("solve()"); work(1); }
int main() {
    { cali::ScopeAnnotation scope("scope"); work(1); }
    { cali::ScopeAnnotation scope("throws"); try { cali::ScopeAnnotation in("in"); throw 1; } catch (int) { work(1); } }
    solve();
    cali::Loop loop("loop");
    for (int i = 0; i < 4; i++) { cali::Loop::Iteration iteration(loop.pI, i); work(1); }
    loop.end();
    work(1);
}
"""
)
CALIPER_CPP_TOOL = (
    CALIPER_CPP
    + """
namespace cali {
ScopeAnnotation::ScopeAnnotation(const char *name) { puts(name); } ScopeAnnotation::~ScopeAnnotation() { puts("-"); }
Function::Function(const char *name) { puts(name); } Function::~Function() { puts("-"); }
struct Loop::Impl { int open; };
Loop::Loop(const char *name) : pI(new Impl{1}) { puts(name); } Loop::~Loop() { end(); delete pI; }
void Loop::end() { if (pI->open) puts("-"); pI->open = 0; }
Loop::Iteration::Iteration(const Impl *impl, int i) : pI(impl) { printf("%d\\n", i); }
Loop::Iteration::~Iteration() { puts("-"); }
}
"""
)


def test_classes_of_caliper(workshop: Workshop) -> None:
    measured = run(workshop, CALIPER_CPP_PROGRAM, CALIPER_CPP_TOOL, suffix=".cpp")
    assert {path: count for path, count in visits(measured).items() if path.endswith("/work(int)")} == {
        "main/scope/work(int)": 1,
        "main/throws/work(int)": 1,
        "main/solve()/solve()/work(int)": 1,
        "main/loop/iteration#loop/work(int)": 4,
        "main/work(int)": 1,
    }
    assert measured.stdout.split() == [
        "scope",
        "-",
        "throws",
        "in",
        "-",
        "-",
        "solve()",
        "-",
        "loop",
        *(word for i in range(4) for word in (str(i), "-")),
        "-",
    ]


LIKWID = """
void likwid_markerInit(void); int likwid_markerRegisterRegion(const char *);
int likwid_markerStartRegion(const char *);
int likwid_markerStopRegion(const char *); void likwid_markerClose(void);
void likwid_markerGetRegion(const char *, int *, double *, double *, int *);
int main(void) {
    int events = 9, count; double values[9], time;
    likwid_markerInit(); likwid_markerRegisterRegion("triad");
    for (int i = 0; i < 5; i++) { likwid_markerStartRegion("triad"); work(1); likwid_markerStopRegion("triad"); }
    likwid_markerGetRegion("triad", &events, values, &time, &count);
    printf("%d\\n", events);
    likwid_markerClose();
}
"""
LIKWID_TOOL = """
void likwid_markerInit(void) { puts("init"); }
int likwid_markerRegisterRegion(const char *name) { puts(name); return 0; }
int likwid_markerStartRegion(const char *name) { puts("start"); return 0; }
int likwid_markerStopRegion(const char *name) { puts("stop"); return 0; }
void likwid_markerClose(void) { puts("close"); }
void likwid_markerGetRegion(const char *n, int *e, double *v, double *t, int *c) { *e = 3; }
"""


@pytest.mark.parametrize("tool", ["", LIKWID_TOOL], ids=["alone", "with LIKWID"])
def test_likwid(workshop: Workshop, tool: str) -> None:
    measured = run(workshop, LIKWID, tool)
    assert visits(measured) == {"main": 1, "main/triad": 5, "main/triad/work": 5}
    expected = ["init", "triad", *["start", "stop"] * 5, "3", "close"] if tool else ["0"]
    assert measured.stdout.split() == expected


SCOREP = """
typedef void *handle;
void SCOREP_User_RegionBegin(handle *, const char **, uint32_t *, const char *, uint32_t, const char *, uint32_t);
void SCOREP_User_RegionEnd(handle);
void SCOREP_User_RegionByNameBegin(const char *, uint32_t, const char *, uint32_t);
void SCOREP_User_RegionByNameEnd(const char *);
static const char *last_name; static uint32_t last_file;
static void part(handle *region, const char *name) {
    SCOREP_User_RegionBegin(region, &last_name, &last_file, name, 0, __FILE__, __LINE__);
    work(1);
    SCOREP_User_RegionEnd(*region);
}
int main(void) {
    static handle first, second;
    for (int i = 0; i < 3; i++) { part(&first, "first"); part(&second, "second"); }
    SCOREP_User_RegionByNameBegin("named", 0, __FILE__, __LINE__); work(1); SCOREP_User_RegionByNameEnd("named");
    SCOREP_User_RegionEnd(NULL);
}
"""
SCOREP_TOOL = """
#include <stdint.h>
static char regions[4]; static int used;
void SCOREP_User_RegionBegin(void **handle, const char **a, uint32_t *b, const char *name, uint32_t c, const char *d,
                             uint32_t e) { if (!*handle) *handle = &regions[used++]; printf("begin %s\\n", name); }
void SCOREP_User_RegionEnd(void *handle) { if (handle) printf("end %d\\n", (int)((char *)handle - regions)); }
void SCOREP_User_RegionByNameBegin(const char *name, uint32_t c, const char *d, uint32_t e) { puts(name); }
void SCOREP_User_RegionByNameEnd(const char *name) { puts("end"); }
"""


@pytest.mark.parametrize("tool", ["", SCOREP_TOOL], ids=["alone", "with Score-P"])
def test_scorep(workshop: Workshop, tool: str) -> None:
    measured = run(workshop, SCOREP, tool)
    ends = {path.removeprefix("main/").removeprefix("part/"): count for path, count in visits(measured).items()}
    assert {path: count for path, count in ends.items() if path.endswith("/work")} == {
        "first/work": 3,
        "second/work": 3,
        "named/work": 1,
    }
    if tool:
        assert measured.stdout.splitlines()[:4] == ["begin first", "end 0", "begin second", "end 1"]


ADIAK = """
int adiak_namevalue(const char *, int, const char *, const char *, ...);
int main(void) {
    double list[] = {1, 2, 3};
    adiak_namevalue("n", 2, NULL, "%d", -5);
    adiak_namevalue("cells", 2, "mesh", "%llu", 1ULL << 40);
    adiak_namevalue("cfl", 4, NULL, "%f", 0.5);
    adiak_namevalue("figure of merit", 3, NULL, "%f", 123.0);
    adiak_namevalue("solver", 2, NULL, "%s", "cg");
    adiak_namevalue("list", 2, NULL, "[%f]", list, 3);
    work(1);
}
"""
ADIAK_TOOL = """
#include <string.h>
int adiak_namevalue(const char *name, int category, const char *subcategory, const char *type, ...) {
    va_list arguments;
    va_start(arguments, type);
    if (!strcmp(type, "%d")) printf("%d\\n", va_arg(arguments, int));
    else if (!strcmp(type, "%llu")) printf("%llu %s\\n", va_arg(arguments, unsigned long long), subcategory);
    else if (!strcmp(type, "%f")) printf("%g\\n", va_arg(arguments, double));
    else if (!strcmp(type, "%s")) puts(va_arg(arguments, const char *));
    else { double *list = va_arg(arguments, double *); printf("%g of %d\\n", list[2], va_arg(arguments, int)); }
    va_end(arguments);
    return 0;
}
int adiak_job_size(void) { return adiak_namevalue("jobsize", 2, NULL, "%d", 64); }
"""


@pytest.mark.parametrize("tool", ["", ADIAK_TOOL], ids=["alone", "with Adiak"])
def test_adiak(workshop: Workshop, tool: str) -> None:
    program = ADIAK if not tool else ADIAK.replace("work(1);", "int adiak_job_size(void); adiak_job_size(); work(1);")
    measured = run(workshop, program, tool)
    named = {key: text for key, text in measured.profile.attributes.items() if key.startswith("parameter:")}
    assert named == {"parameter:n": "-5", "parameter:cells": str(1 << 40), "parameter:cfl": "0.5"}
    if tool:
        assert measured.stdout.splitlines() == ["-5", f"{1 << 40} mesh", "0.5", "123", "cg", "3 of 3", "64"]


KOKKOS = """
#include <dlfcn.h>
struct space { char name[64]; };
int main(void) {
    void *tool = dlopen(getenv("KOKKOS_TOOLS_LIBS"), RTLD_NOW | RTLD_GLOBAL);
    void (*begin)(const char *, uint32_t, uint64_t *) = dlsym(tool, "kokkosp_begin_parallel_for");
    void (*end)(uint64_t) = dlsym(tool, "kokkosp_end_parallel_for");
    void (*begin_reduce)(const char *, uint32_t, uint64_t *) = dlsym(tool, "kokkosp_begin_parallel_reduce");
    void (*end_reduce)(uint64_t) = dlsym(tool, "kokkosp_end_parallel_reduce");
    void (*push)(const char *) = dlsym(tool, "kokkosp_push_profile_region");
    void (*pop)(void) = dlsym(tool, "kokkosp_pop_profile_region");
    void (*copy)(struct space, const char *, const void *, struct space, const char *, const void *, uint64_t) =
        dlsym(tool, "kokkosp_begin_deep_copy");
    void (*copied)(void) = dlsym(tool, "kokkosp_end_deep_copy");
    void (*section)(const char *, uint32_t *) = dlsym(tool, "kokkosp_create_profile_section");
    void (*start)(uint32_t) = dlsym(tool, "kokkosp_start_profile_section");
    void (*stop)(uint32_t) = dlsym(tool, "kokkosp_stop_profile_section");
    uint64_t outer, inner;
    uint32_t number;
    push("setup");
    for (int i = 0; i < 2; i++) { begin("fill", 0, &outer); work(1); end(outer); }
    copy((struct space){"Host"}, "b", NULL, (struct space){"Cuda"}, "a", NULL, 800); work(1); copied();
    pop();
    begin_reduce("dot", 0, &outer); begin("nested", 0, &inner); work(1); end(inner); end_reduce(outer);
    begin("Z4mainEUliE_", 0, &inner); work(1); end(inner);
    section("section", &number); start(number); work(1); stop(number);
    pop();
}
"""


def test_kokkos(workshop: Workshop) -> None:
    measured = run(workshop, KOKKOS, KOKKOS_TOOLS_LIBS=str(LIBRARY))
    assert {path: count for path, count in visits(measured).items() if path.endswith("/work")} == {
        "main/setup/fill/work": 2,
        "main/setup/deep_copy a (Cuda) to b (Host)/work": 1,
        "main/dot/nested/work": 1,
        "main/Z4mainEUliE_/work": 1,
        "main/section/work": 1,
    }


NVTX = """
#include <dlfcn.h>
#include <wchar.h>
/* What the headers of NVTX do with the library of a tool. */
typedef void (*function)(void);
static function core[16], core2[16];
static function *core_table[17], *core2_table[17];
static int table_of(int module, function ***table, unsigned *size) {
    for (int i = 0; i < 16; i++) { core_table[i] = &core[i]; core2_table[i] = &core2[i]; }
    core_table[0] = core2_table[0] = NULL;
    *table = module == 1 ? core_table : core2_table;
    *size = module == 1 ? 16 : 16;
    return module == 1 || module == 5;
}
static struct { size_t size; int (*functions)(int, function ***, unsigned *); } callbacks = {16, table_of};
static const void *tables(uint32_t number) { return number == 1 ? &callbacks : NULL; }
struct event {
    uint16_t version, size; uint32_t a; int32_t b; uint32_t c; int32_t d, e; uint64_t f; int32_t type; const void *text;
};
int main(void) {
    void *tool = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
    int (*initialize)(const void *(*)(uint32_t)) = dlsym(tool, "InitializeInjectionNvtx2");
    printf("%d\\n", initialize(tables));
    int (*push)(const char *) = (int (*)(const char *))core[9], (*pop)(void) = (int (*)(void))core[11];
    int (*push_wide)(const wchar_t *) = (int (*)(const wchar_t *))core[10];
    int (*push_event)(const struct event *) = (int (*)(const struct event *))core[8];
    if (!push) return 0;
    int levels[4] = {push("outer"), push("inner")};
    work(1);
    levels[2] = pop();
    struct event event = {3, 48, 0, 0, 0, 0, 0, 0, 1, "event"};
    push_event(&event); work(1); pop();
    push_wide(L"wide"); work(1); pop();
    void *domain = ((void *(*)(const char *))core2[12])("domain");
    void *text = ((void *(*)(void *, const char *))core2[10])(domain, "registered");
    event.type = 3; event.text = text;
    ((int (*)(void *, const struct event *))core2[4])(domain, &event); work(1); ((int (*)(void *))core2[5])(domain);
    levels[3] = pop();
    printf("%d %d %d %d %d\\n", levels[0], levels[1], levels[2], levels[3], pop());
}
"""


def test_nvtx(workshop: Workshop) -> None:
    measured = run(workshop, NVTX, NVTX_INJECTION64_PATH=str(LIBRARY))
    assert measured.stdout.splitlines() == ["1", "0 1 1 0 -1"]
    assert {path: count for path, count in visits(measured).items() if path.endswith("/work")} == {
        f"main/outer/{name}/work": 1 for name in ("inner", "event", "wide", "registered")
    }


def test_another_tool_of_nvtx_goes_first(workshop: Workshop) -> None:
    (workshop.folder / "other.c").write_text(
        '#include <stdio.h>\nint InitializeInjectionNvtx2(void *tables) { puts("other"); return 1; }\n'
    )
    other = workshop.folder / "other.so"
    subprocess.run(["clang-19", "-shared", "-fPIC", workshop.folder / "other.c", "-o", other], check=True)
    program = NVTX.replace('dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY)', "NULL")
    measured = run(workshop, program, NVTX_INJECTION64_PATH=str(other))
    assert measured.stdout.splitlines() == ["other", "1"]
    assert set(visits(measured)) == {"main"}


def test_a_program_that_is_not_measured_is_as_before(workshop: Workshop) -> None:
    source = workshop.folder / "program.c"
    source.write_text(HEAD + ADIAK)
    program = workshop.build(source, "-O1", str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("QUIPU_")}
    done = subprocess.run([program], env=plain, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("setting", ["", "off"])
def test_the_launcher_sets_the_variables_of_the_tools(tmp_path: Path, setting: str) -> None:
    own = {"QUIPU_DIR": str(tmp_path), "QUIPU_ANNOTATIONS": setting, "KOKKOS_TOOLS_LIBS": "/of/the/user.so"}
    names = ("LD_PRELOAD", "KOKKOS_TOOLS_LIBS", "NVTX_INJECTION64_PATH")
    plain = {name: value for name, value in os.environ.items() if name not in names}
    command = [str(native_file("quipu-exec")), "env"]
    done = subprocess.run(command, env={**plain, **own}, capture_output=True, text=True, check=True)
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert found["KOKKOS_TOOLS_LIBS"] == "/of/the/user.so"
    expected = None if setting else LIBRARY.resolve()
    for name in ("LD_PRELOAD", "NVTX_INJECTION64_PATH"):
        assert (Path(found[name]).resolve() if name in found else None) == expected
