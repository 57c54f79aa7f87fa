# SPDX-License-Identifier: Apache-2.0
"""Regions that a program marks with quipu/region.h: call paths, effort, wrong nesting, names, threads, forks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from peers import needs
from quipu.agent.installation import native_folders

from .conftest import Measured, Workshop

HEAD = """
#include <quipu/region.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static volatile double sink;
__attribute__((noinline)) static void work(int n) { for (int i = 0; i < n; i++) sink += i; }
"""
API = native_folders()[0] / "api"


@pytest.fixture(autouse=True, params=["tsc", "none"])
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With and without time stamps; without them, functions have no frames."""
    monkeypatch.setenv("QUIPU_CLOCK", request.param)
    return str(request.param)


def run(workshop: Workshop, body: str, *options: str, suffix: str = ".c", **environment: str) -> Measured:
    source = workshop.folder / f"program{suffix}"
    source.write_text(HEAD + body)
    return workshop.run(workshop.build(source, "-O1", *options), ends_with=0, **environment)


def visits(measured: Measured) -> dict[str, float]:
    """Number of visits of each visited call path."""
    return {"/".join(path): values["visits"] for path, values in measured.tree.items() if path and values["visits"]}


def problem(measured: Measured) -> str:
    return measured.profile.attributes.get("annotation_problem", "")


@pytest.mark.parametrize("options", [(), ("-static",), ("--quipu-naive",), ("-O0",)], ids=" ".join)
def test_regions_are_call_paths(workshop: Workshop, options: tuple[str, ...]) -> None:
    body = """
    int main(void) {
        for (int i = 0; i < 3; i++) {
            QUIPU_REGION_BEGIN("outer");
            work(10);
            QUIPU_REGION_BEGIN("inner");
            work(20);
            QUIPU_REGION_END("inner");
            QUIPU_REGION_END("outer");
        }
        work(1);
    }"""
    measured = run(workshop, body, "--quipu-all", *options)
    assert visits(measured) == {
        "main": 1,
        "main/outer": 3,
        "main/outer/work": 3,
        "main/outer/inner": 3,
        "main/outer/inner/work": 3,
        "main/work": 1,
    }
    assert not problem(measured)
    assert not measured.profile.problems


def test_loops_of_the_function_itself_count_for_the_region(workshop: Workshop) -> None:
    body = """
    int main(int argc, char **argv) {
        const int n = 1000 * argc;
        double *x = calloc(n, sizeof *x), sum = 0;
        QUIPU_REGION_BEGIN("fill");
        for (int i = 0; i < n; i++)
            x[i] = i * 0.5;
        QUIPU_REGION_END("fill");
        QUIPU_REGION_BEGIN("sum");
        for (int round = 0; round < 3; round++)
            for (int i = 0; i < n; i++)
                sum += x[i];
        QUIPU_REGION_END("sum");
        printf("%g\\n", sum);
    }"""
    tree = run(workshop, body).tree
    assert tree["main", "sum"]["flops"] == pytest.approx(3000, abs=10)
    assert tree["main", "sum"]["loads"] == pytest.approx(3000, abs=10)
    assert tree["main", "fill"]["stores"] == pytest.approx(1000, abs=10)
    assert sum(values["flops"] for values in tree.values()) == pytest.approx(4000, abs=10)
    assert all(value >= 0 for values in tree.values() for value in values.values())


def test_nothing_is_lost_or_counted_twice(workshop: Workshop) -> None:
    body = """
    __attribute__((noinline)) static void branches(int n) {
        BEGIN("a");
        for (int i = 0; i < n; i++) {
            if (i % 3 == 0) { BEGIN("b"); work(i); END("b"); }
            else if (i % 5 == 0) sink *= 1.5;
            if (i == n / 2) { END("a"); BEGIN("a"); }
        }
        END("a");
    }
    int main(void) { for (int i = 0; i < 7; i++) branches(31 + i); }"""
    macros = "#define BEGIN QUIPU_REGION_BEGIN\n#define END QUIPU_REGION_END\n"
    with_regions = run(workshop, macros + body, "-Dx")
    names = {metric.name for metric in with_regions.profile.metrics if metric.is_effort} - {"visits"}
    # the branch on the address of the runtime's function is there, too, so the same program is run without the library
    naive = run(workshop, macros + body, "--quipu-naive")
    for name in names:
        assert sum(values[name] for values in with_regions.tree.values()) == sum(
            values[name] for values in naive.tree.values()
        )
    assert all(value >= 0 for values in with_regions.tree.values() for value in values.values())


def test_a_function_may_begin_and_another_end_a_region(workshop: Workshop) -> None:
    body = """
    __attribute__((noinline)) static void start(const char *name) { work(1); QUIPU_REGION_BEGIN(name); work(1); }
    __attribute__((noinline)) static void stop(const char *name) { work(1); QUIPU_REGION_END(name); work(1); }
    int main(void) {
        for (int i = 0; i < 1000; i++) {
            start("solve");
            work(2);
            start("inner");
            work(2);
            stop("inner");
            stop("solve");
        }
        work(3);
    }"""
    measured = run(workshop, body, "--quipu-all")
    found = visits(measured)
    assert found["main/solve"] == found["main/solve/work"] == found["main/solve/inner/work"] == 1000
    assert found["main/solve/inner"] == 1000
    assert found["main/work"] == 1
    assert not problem(measured)
    assert measured.profile.lost == 0


def test_an_end_without_a_begin_is_one_message(workshop: Workshop) -> None:
    body = """
    int main(void) {
        QUIPU_REGION_END("never");
        QUIPU_REGION_END("never");
        QUIPU_REGION_BEGIN("a");
        work(1);
        QUIPU_REGION_END("a");
        QUIPU_REGION_END("a");
    }"""
    measured = run(workshop, body, "--quipu-all")
    assert visits(measured) == {"main": 1, "main/a": 1, "main/a/work": 1}
    assert problem(measured) == "region 'never' was ended although it was not open: the end was ignored (and 2 more)"
    assert problem(measured) in measured.profile.problems
    assert not measured.profile.damaged


def test_the_wrong_order_ends_both(workshop: Workshop) -> None:
    body = """
    int main(void) {
        QUIPU_REGION_BEGIN("a");
        QUIPU_REGION_BEGIN("b");
        QUIPU_REGION_END("a");
        work(1);
    }"""
    measured = run(workshop, body, "--quipu-all")
    assert visits(measured) == {"main": 1, "main/a": 1, "main/a/b": 1, "main/work": 1}
    assert problem(measured) == "region 'b' was ended while 'a', which began later, was open: both ended there" or (
        problem(measured) == "region 'a' was ended while 'b', which began later, was open: both ended there"
    )


def test_a_region_that_is_never_ended_has_its_time(workshop: Workshop, clock: str) -> None:
    measured = run(workshop, 'int main(void) { QUIPU_REGION_BEGIN("open"); work(100000); }', "--quipu-all")
    assert visits(measured) == {"main": 1, "main/open": 1, "main/open/work": 1}
    assert clock == "none" or measured.tree["main", "open", "work"]["time"] > 0


def test_names_may_be_odd(workshop: Workshop) -> None:
    body = """
    int main(void) {
        char longer[5000];
        memset(longer, 'x', sizeof longer - 1);
        longer[sizeof longer - 1] = 0;
        const char *names[] = {"", "a b/c;d\\"e\\\\",
             "gr\\303\\274n", "line\\nbreak\\037end", longer, NULL, "\\xff\\xfe"};
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
            QUIPU_REGION_BEGIN(names[i]);
            QUIPU_REGION_END(names[i]);
        }
    }"""
    measured = run(workshop, body)
    names = {path[-1]: values["visits"] for path, values in measured.tree.items() if len(path) == 2}
    assert names.pop("(no name)") == 2
    assert sorted(names.values()) == [1] * 5
    assert 'a b/c;d"e\\' in names
    assert "grün" in names
    assert "line break end" in names
    assert max(map(len, names)) == 1023


@pytest.mark.parametrize("before", [1020, 1021, 1022])
def test_a_long_name_ends_with_a_whole_character(workshop: Workshop, before: int) -> None:
    body = """
    int main(void) {
        char name[2000];
        memset(name, 'x', sizeof name);
        strcpy(name + BEFORE, "\\360\\237\\230\\200 and more");
        QUIPU_REGION_BEGIN(name);
        QUIPU_REGION_END(name);
    }"""
    measured = run(workshop, body.replace("BEFORE", str(before)))
    assert ("main", before * "x") in measured.tree


def test_ten_thousand_names(workshop: Workshop) -> None:
    body = """
    int main(void) {
        char name[32];
        for (int round = 0; round < 2; round++)
            for (int i = 0; i < 10000; i++) {
                snprintf(name, sizeof name, "region %d", i);
                QUIPU_REGION_BEGIN(name);
                QUIPU_REGION_END(name);
            }
    }"""
    found = visits(run(workshop, body))
    assert len(found) == 10001
    assert {count for path, count in found.items() if "/" in path} == {2}


def test_deep_nesting_and_recursion(workshop: Workshop) -> None:
    body = """
    __attribute__((noinline)) static void down(int n) {
        QUIPU_REGION_BEGIN("level");
        if (n > 0) down(n - 1);
        QUIPU_REGION_END("level");
    }
    int main(void) {
        down(5000);
        for (int i = 0; i < 70000; i++) QUIPU_REGION_BEGIN("deep");
        for (int i = 0; i < 70000; i++) QUIPU_REGION_END("deep");
        QUIPU_REGION_BEGIN("after"); QUIPU_REGION_END("after");
    }"""
    found = visits(run(workshop, body, "--quipu-all"))
    assert found["main/down"] == 5001
    assert found["main/down/level"] == 5001
    assert found["main/deep"] == 65536
    assert found["main/after"] == 1


CPP = """
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static void scoped(int n) { quipu::Region region("scoped"); work(n); if (n > 5) throw std::runtime_error("n"); }
int main() {
    for (int i = 0; i < 3; i++) {
        quipu::Phase phase("step", i);
        try { scoped(5 * i); } catch (const std::exception &) { work(1); }
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([] { for (int i = 0; i < 100; i++) { quipu::Region region("in thread"); work(1); } });
    for (auto &thread : threads) thread.join();
    { quipu::Region region(std::string("of a temporary").c_str()); work(1); }
    QUIPU_REGION_BEGIN("around");
    try { QUIPU_REGION_BEGIN("left"); throw 1; } catch (int) { work(1); }
    QUIPU_REGION_END("around");
    work(1);
}
"""


def test_objects_of_cpp_exceptions_and_threads(workshop: Workshop) -> None:
    measured = run(workshop, CPP, "--quipu-all", suffix=".cpp")
    ends = {path: count for path, count in visits(measured).items() if "std::" not in path.rpartition("/")[2]}
    assert ends["main/step"] == 3
    assert ends["main/step/work(int)"] == 1
    assert sum(count for path, count in ends.items() if path.endswith("/scoped/work(int)")) == 3
    assert sum(count for path, count in ends.items() if path.endswith("/in thread/work(int)")) == 400
    assert ends["main/of a temporary/work(int)"] == 1
    assert ends["main/around/left/work(int)"] == 1
    assert ends["main/work(int)"] == 1
    assert "left" in problem(measured)


def test_longjmp_leaves_regions_open_until_an_outer_one_ends(workshop: Workshop) -> None:
    body = """
    #include <setjmp.h>
    static jmp_buf back;
    __attribute__((noinline)) static void jumper(void) { QUIPU_REGION_BEGIN("cut"); work(1); longjmp(back, 1); }
    int main(void) {
        QUIPU_REGION_BEGIN("around");
        if (setjmp(back) == 0) jumper();
        else work(2);
        QUIPU_REGION_END("around");
        work(3);
    }"""
    measured = run(workshop, body, "--quipu-all")
    found = visits(measured)
    assert found["main/around"] == 1
    assert found["main/work"] == 1
    assert "'cut'" in problem(measured)


def test_children_of_fork_go_on_in_their_region(workshop: Workshop) -> None:
    body = """
    #include <sys/wait.h>
    #include <unistd.h>
    int main(void) {
        QUIPU_PHASE_BEGIN("step", 7);
        QUIPU_REGION_BEGIN("both");
        pid_t child = fork();
        work(child ? 1 : 2);
        QUIPU_REGION_END("both");
        QUIPU_PHASE_END("step");
        work(3);
        if (child) waitpid(child, NULL, 0);
        return 0;
    }"""
    source = workshop.folder / "program.c"
    source.write_text(HEAD + body)
    runs = workshop.run_all(workshop.build(source, "-O1", "--quipu-all"))
    assert len(runs) == 2
    for measured in runs:
        assert visits(measured)["main/step/both/work"] == 1
        assert visits(measured)["main/work"] == 1
        assert not problem(measured)


def test_openmp_threads_have_regions(workshop: Workshop) -> None:
    body = """
    int main(void) {
        QUIPU_REGION_BEGIN("parallel");
        #pragma omp parallel num_threads(3)
        {
            QUIPU_REGION_BEGIN("each");
            work(10);
            QUIPU_REGION_END("each");
        }
        QUIPU_REGION_END("parallel");
    }"""
    found = visits(run(workshop, body, "-fopenmp", "--quipu-all"))
    assert sum(count for path, count in found.items() if path.endswith("/each")) == 3
    assert sum(count for path, count in found.items() if path.endswith("/each/work")) == 3
    assert all("main/parallel/" in path for path in found if path.endswith("/each"))


def test_filters_leave_regions_out(workshop: Workshop) -> None:
    filter_file = workshop.folder / "filter"
    filter_file.write_text("SCOREP_REGION_NAMES_BEGIN\nEXCLUDE inner\nSCOREP_REGION_NAMES_END\n")
    body = """
    int main(void) {
        QUIPU_REGION_BEGIN("outer"); QUIPU_REGION_BEGIN("inner"); work(1);
        QUIPU_REGION_END("inner"); QUIPU_REGION_END("outer"); work(1);
    }"""
    measured = run(workshop, body, "--quipu-all", QUIPU_FILTER=str(filter_file))
    assert visits(measured) == {"main": 1, "main/outer": 1, "main/outer/work": 1, "main/work": 1}


def test_parameters_are_attributes(workshop: Workshop) -> None:
    body = """
    #include <locale.h>
    int main(void) {
        setlocale(LC_ALL, "de_DE.UTF-8");
        QUIPU_PARAMETER("n", 100); QUIPU_PARAMETER("n", 100); QUIPU_PARAMETER("x-y z", 0.1);
        QUIPU_PARAMETER("2d", 1e300); QUIPU_PARAMETER("", 3); work(1);
        QUIPU_PARAMETER("n", 200);
    }"""
    measured = run(workshop, body)
    named = {key: text for key, text in measured.profile.attributes.items() if key.startswith("parameter:")}
    assert named == {
        "parameter:n": "100",
        "parameter:x_y_z": "0.10000000000000001",
        "parameter:_2d": "1.0000000000000001e+300",
    }
    assert problem(measured) == "parameter n got a second value: the first value is kept"
    none = run(workshop, body, QUIPU_PARAMETERS="off").profile.attributes
    assert not [key for key in none if key.startswith("parameter:")]
    one = run(workshop, body, QUIPU_PARAMETERS="m,n").profile.attributes
    assert [key for key in one if key.startswith("parameter:")] == ["parameter:n"]


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
@pytest.mark.parametrize("options", [(), ("-no-pie", "-fno-pie"), ("-static",), ("-DQUIPU_NO_REGIONS",)], ids=" ".join)
def test_programs_need_no_library(workshop: Workshop, compiler: str, options: tuple[str, ...]) -> None:
    source = workshop.folder / "program.c"
    source.write_text(
        HEAD + 'int main(void) { QUIPU_PARAMETER("n", 1); QUIPU_PHASE_BEGIN("p", 1); QUIPU_REGION_BEGIN("r"); work(1);'
        ' QUIPU_REGION_END("r"); QUIPU_PHASE_END("p"); puts("end"); }'
    )
    program = workshop.folder / "plain"
    command = [compiler, "-Wall", "-Werror", "-O2", *options, f"-I{API}", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout == "end\n"


FORTRAN = """include 'quipu/region.f90'
program main
  use quipu_region
  integer :: i, n = 1000
  real(8) :: x
  x = 0
  call quipu_parameter('n', n)
  call quipu_region_end('never ')
  do i = 1, 3
    call quipu_phase_begin('step', i)
    call quipu_region_begin('inner ')
    x = x + sqrt(real(i, 8))
    call quipu_region_end('inner')
    call quipu_phase_end('step')
  end do
  print '(f6.3)', x
end program
"""


def test_fortran(workshop: Workshop) -> None:
    source = workshop.folder / "program.f90"
    source.write_text(FORTRAN)
    measured = workshop.run(workshop.build(source, "-O2", wrapper="quipu-fc"))
    assert measured.stdout.split() == ["4.146"]
    ends = {path[-2:]: values["visits"] for path, values in measured.tree.items() if values["visits"]}
    assert ends["step", "inner"] == 3
    assert measured.profile.attributes["parameter:n"] == "1000"
    assert "'never'" in problem(measured)
    assert not any("quipu_region" in name for path in ends for name in path)


@needs("gfortran")
def test_fortran_needs_no_library(tmp_path: Path) -> None:
    source = tmp_path / "program.f90"
    source.write_text(FORTRAN)
    subprocess.run(["gfortran", "-O2", f"-I{API}", source, "-o", tmp_path / "plain"], check=True, cwd=tmp_path)
    assert subprocess.run([tmp_path / "plain"], capture_output=True, text=True, check=True).stdout.split() == ["4.146"]
