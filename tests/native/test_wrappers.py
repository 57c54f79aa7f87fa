# SPDX-License-Identifier: Apache-2.0
"""The compiler wrappers as a build system meets them."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE
from quipu.agent.installation import native_file
from quipu.agent.source.described import object_files
from quipu.agent.source.functions import static_functions

from .conftest import INSTALLED_LLVMS

ADD = "int add(int n) { int s = 0; for (int i = 0; i < n; i++) s += i; return s; }\n"
MAIN = '#include <stdio.h>\nint add(int);\nint main(void) { printf("%d\\n", add(5)); return 0; }\n'


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command; output captured, no check."""
    return subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def build(*command: object, cwd: Path | None = None, **environment: str) -> str:
    """Run a build step that must succeed and say nothing on stderr; return its stdout."""
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=cwd,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "add.c").write_text(ADD)
    (tmp_path / "main.c").write_text(MAIN)
    return tmp_path


@pytest.fixture
def cc() -> Path:
    return native_file("quipu-cc")


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3", "-Os"])
def test_compile_and_link_apart(sources: Path, cc: Path, level: str) -> None:
    build(cc, level, "-Wall", "-Werror", "-c", "add.c", "-o", "add.o", cwd=sources)
    build(cc, level, "-Wall", "-Werror", "-c", "main.c", "-o", "main.o", cwd=sources)
    build(cc, "-Wall", "-Werror", "main.o", "add.o", "-o", "program", cwd=sources)
    assert build(sources / "program") == "10\n"


def test_static_archive_and_shared_library(sources: Path, cc: Path) -> None:
    build(cc, "-c", "-fPIC", "add.c", cwd=sources)
    build("ar", "rcs", "libadd.a", "add.o", cwd=sources)
    build(cc, "main.c", "-L.", "-Wl,-Bstatic", "-ladd", "-Wl,-Bdynamic", "-o", "with_archive", cwd=sources)
    build(cc, "-shared", "-Wl,-z,defs", "add.o", "-o", "libshared.so", cwd=sources)
    build(cc, "main.c", "-L.", "-lshared", "-Wl,-rpath,$ORIGIN", "-o", "with_library", cwd=sources)
    for name in ("with_archive", "with_library"):
        raw = sources / f"raw-{name}"
        raw.mkdir()
        assert build(sources / name, QUIPU_DIR=str(raw)) == "10\n"
        assert b"add\x1f" in next(raw.iterdir()).read_bytes()


def test_static_linking(sources: Path, cc: Path) -> None:
    build(cc, "-static", "main.c", "add.c", "-o", "program", cwd=sources)
    raw = sources / "raw"
    raw.mkdir()
    assert build(sources / "program", QUIPU_DIR=str(raw)) == "10\n"
    assert len(list(raw.glob("profile-*.quipu"))) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["-dumpversion"],
        ["-print-file-name=libc.so"],
        ["-E", "main.c"],
        ["-M", "main.c"],
        ["-fsyntax-only", "main.c"],
        ["-S", "main.c", "-o", "-"],
        ["-c", "main.c", "-MD", "-MF", "main.d", "-o", "main.o"],
        ["-x", "c", "-c", "/dev/null", "-o", "empty.o"],
        ["-r", "-nostdlib", "prepared.o", "-o", "merged.o"],
        ["-Wl,--version"],
    ],
)
def test_calls_that_configure_scripts_make(sources: Path, cc: Path, arguments: list[str]) -> None:
    build(cc, "-c", "add.c", "-o", "prepared.o", cwd=sources)
    build(cc, *arguments, cwd=sources)


def test_reads_source_from_standard_input(sources: Path, cc: Path) -> None:
    done = subprocess.run(
        [cc, "-x", "c", "-", "-o", sources / "program"], input=ADD + MAIN, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert build(sources / "program") == "10\n"


def test_errors_of_the_compiler_pass_through(sources: Path, cc: Path) -> None:
    (sources / "wrong.c").write_text("int main(void) { return x; }\n")
    done = run(cc, sources / "wrong.c", "-o", sources / "wrong")
    assert done.returncode == 1
    assert "undeclared identifier 'x'" in done.stderr


def test_missing_compiler_is_one_clear_message(sources: Path, cc: Path) -> None:
    done = run(cc, sources / "main.c", QUIPU_CC="/nowhere/clang")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "quipu: error: cannot run /nowhere/clang: No such file or directory; install it, or name another compiler "
        "(see quipu doctor) [no-compiler]"
    ]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("gcc (Debian) 12.2.0", "is neither clang nor flang"),
        ("Debian clang version 9.0.1", "is of LLVM 9, and this Quipu works with the compilers of LLVM "),
    ],
)
def test_compilers_without_a_plugin_are_refused(sources: Path, cc: Path, answer: str, words: str) -> None:
    compiler = sources / "compiler"
    compiler.write_text(f"#!/bin/sh\necho '{answer}'\n")
    compiler.chmod(0o755)
    done = run(cc, "-c", sources / "add.c", QUIPU_CC=str(compiler))
    assert done.returncode == 1
    assert words in done.stderr and "QUIPU_CC" in done.stderr


def test_an_installation_without_any_pass_says_so(sources: Path, cc: Path) -> None:
    (sources / "bin").mkdir()
    copied = shutil.copy(cc, sources / "bin" / cc.name)  # as pip --target does it
    done = run(Path(copied), "-c", sources / "add.c")
    assert done.returncode == 1
    assert "has no pass for any compiler: install Quipu again" in done.stderr


@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
def test_the_plugin_that_fits_the_compiler(sources: Path, cc: Path, llvm: str) -> None:
    """The version is found from the compiler's name, the target of a link, or what the compiler prints."""
    (sources / "linked").symlink_to(str(shutil.which(f"clang-{llvm}")))
    (sources / "script").write_text(f'#!/bin/sh\nexec clang-{llvm} "$@"\n')
    (sources / "script").chmod(0o755)
    for compiler in (f"clang-{llvm}", sources / "linked", sources / "script"):
        assert f"QuipuPass-{llvm}.so" in build(cc, "--quipu-show", "-c", "add.c", QUIPU_CC=str(compiler))
        build(cc, "-O2", "-c", sources / "add.c", "-o", sources / "add.o", QUIPU_CC=str(compiler))


def test_filter_at_compile_time(sources: Path, cc: Path, workshop) -> None:
    selection = sources / "one.filter"
    selection.write_text("SCOREP_REGION_NAMES_BEGIN\nEXCLUDE *\nINCLUDE MANGLED\nmain\nSCOREP_REGION_NAMES_END\n")
    cases: list[tuple[str, list[str], dict[str, Any]]] = [
        ("option", [f"--quipu-filter={selection}"], {}),
        ("environment", [], {"QUIPU_FILTER": str(selection)}),
    ]
    for name, arguments, environment in cases:
        program = sources / name
        build(cc, "-O1", "-fno-inline", *arguments, sources / "main.c", sources / "add.c", "-o", program, **environment)
        measured = workshop.run(program)
        assert {path for path, values in measured.tree.items() if values["visits"]} == {("main",)}
        assert measured.tree[("main",)]["blocks"] == 1 + 3  # the loop of add has a closed form


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("SCOREP_REGION_NAMES_BEGIN\nEXCLUDE *\n", 2, "SCOREP_REGION_NAMES_END"),
        ("EXCLUDE *\n", 1, "expected SCOREP_FILE_NAMES_BEGIN or SCOREP_REGION_NAMES_BEGIN"),
        ("\n\nSCOREP_REGION_NAMES_BEGIN\nmain\nSCOREP_REGION_NAMES_END\n", 4, "before any INCLUDE or EXCLUDE"),
        ("SCOREP_REGION_NAMES_BEGIN\r\nEXCLUDE *\r\nSCOREP_REGION_NAMES_END\r\n", 1, "carriage return"),
    ],
)
def test_bad_filter_stops_the_compilation(sources: Path, cc: Path, text: str, line: int, words: str) -> None:
    selection = sources / "bad.filter"
    selection.write_bytes(text.encode())
    done = run(cc, f"--quipu-filter={selection}", "-c", sources / "add.c", "-o", sources / "add.o")
    assert done.returncode != 0
    assert f"{selection}:{line}: " in done.stderr
    assert words in done.stderr
    assert "PLEASE submit a bug report" not in done.stderr


def test_missing_filter_stops_the_compilation(sources: Path, cc: Path) -> None:
    done = run(cc, "--quipu-filter=absent.filter", "-c", sources / "add.c")
    assert done.returncode == 1
    assert "absent.filter: cannot read the filter file" in done.stderr


def test_cmake_with_parallel_make(tmp_path: Path) -> None:
    for i in range(12):
        (tmp_path / f"f{i}.cpp").write_text(f"int f{i}(int n) {{ return n < 1 ? 0 : 1 + f{i}(n - 1); }}\n")
    (tmp_path / "main.cpp").write_text(
        "#include <mpi.h>\n#include <cstdio>\n"
        + "".join(f"int f{i}(int);\n" for i in range(12))
        + "int main(int c, char **v) { MPI_Init(&c, &v); int s = 0;\n"
        + "".join(f"s += f{i}(c);\n" for i in range(12))
        + 'printf("%d\\n", s); MPI_Finalize(); }\n'
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(t CXX)\nfind_package(MPI REQUIRED)\n"
        + "add_library(parts STATIC "
        + " ".join(f"f{i}.cpp" for i in range(12))
        + ")\nadd_executable(t main.cpp)\ntarget_link_libraries(t parts MPI::MPI_CXX)\n"
    )
    wrapper = native_file("quipu-mpic++")
    done = run("cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_CXX_COMPILER={wrapper}")
    assert done.returncode == 0, done.stderr
    done = run("cmake", "--build", tmp_path / "b", "--parallel", "4")
    assert done.returncode == 0, done.stdout
    assert "warning" not in done.stdout + done.stderr
    names = {function.name for function in static_functions(tmp_path / "b" / "t")}
    assert names >= {f"_Z{len(str(i)) + 1}f{i}i" for i in range(12)}


@pytest.mark.parametrize(
    ("wrapper", "settings", "named"),
    [
        ("quipu-cc", {"QUIPU_CC": "quipu-cc"}, "QUIPU_CC=quipu-cc is a compiler wrapper of Quipu"),
        ("quipu-c++", {"QUIPU_CXX": "WRAPPERS/quipu-cc"}, "QUIPU_CXX=WRAPPERS/quipu-cc is a compiler wrapper"),
        ("quipu-mpicc", {"QUIPU_MPICC": "quipu-mpicc"}, "QUIPU_MPICC=quipu-mpicc is a compiler wrapper of Quipu"),
        ("quipu-cc", {"QUIPU_CC": "SOURCES/script"}, "QUIPU_CC=SOURCES/script leads back to quipu-cc"),
        ("quipu-mpicc", {"QUIPU_MPICC": "link"}, "link is a compiler wrapper of Quipu"),
    ],
)
def test_a_wrapper_that_is_told_to_call_itself(
    sources: Path, cc: Path, wrapper: str, settings: dict[str, str], named: str
) -> None:
    (sources / "script").write_text(f'#!/bin/sh\nexec {cc} "$@"\n')
    (sources / "script").chmod(0o755)
    (sources / "link").symlink_to(cc.with_name("quipu-mpicc"))

    def filled(text: str) -> str:
        return text.replace("WRAPPERS", str(cc.parent)).replace("SOURCES", str(sources))

    path = f"{sources}:{cc.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [cc.with_name(wrapper), "-c", "add.c", "-o", "add.o"],
        env={**os.environ, "PATH": path, **{name: filled(value) for name, value in settings.items()}},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=sources,
    )
    assert done.returncode != 0
    assert filled(named) in done.stderr
    assert not (sources / "add.o").exists()


def test_mpi_wrapper_says_what_it_calls(cc: Path) -> None:
    shown = run(native_file("quipu-mpicc"), "-show")
    assert shown.returncode == 0
    assert shown.stdout.startswith(str(cc))


def test_fortran(tmp_path: Path, workshop) -> None:
    source = tmp_path / "sum.f90"
    source.write_text(
        "program main_program\n  integer :: n\n  real :: total\n  read (*, *) n\n  call accumulate(n, total)\n"
        "  print *, total\nend program\n"
        "subroutine accumulate(n, total)\n  integer :: n, i\n  real :: total\n  total = 0\n"
        "  do i = 1, n\n    total = total + sqrt(real(i))\n  end do\nend subroutine\n"
    )
    build(native_file("quipu-fc"), "-O0", source, "-o", tmp_path / "sum")
    raw = tmp_path / "raw"
    raw.mkdir()
    done = subprocess.run(
        [tmp_path / "sum"],
        input="4\n",
        env={**os.environ, "QUIPU_DIR": str(raw)},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert b"accumulate" in next(raw.iterdir()).read_bytes()


INCLUDES_OPENMP = """subroutine locked(threads)
  use, intrinsic :: iso_fortran_env, only: int32
  include 'omp_lib.h'
  integer(int32) :: threads
  integer(omp_lock_kind) :: lock
  call omp_init_lock(lock)
  threads = omp_get_max_threads()
end subroutine
"""


@pytest.mark.parametrize("option", ["-fopenmp", "-fopenmp=libomp"])
def test_openmp_in_an_included_file(tmp_path: Path, option: str) -> None:
    """Flang searches its own folder for modules, but not for omp_lib.h."""
    source = tmp_path / "locked.f90"
    source.write_text(INCLUDES_OPENMP)
    build(native_file("quipu-fc"), option, "-c", source, "-o", tmp_path / "locked.o")
    (tmp_path / "omp_lib.h").write_text("      integer, parameter :: omp_lock_kind = 8\n")
    own = run(native_file("quipu-fc"), option, "-I", tmp_path, "-c", source, "-o", tmp_path / "own.o")
    assert (own.returncode, own.stderr) == (0, "")  # the program's own file comes first


def test_options_of_gfortran_are_left_out_or_translated(tmp_path: Path) -> None:
    """Only options that do not change the results of the program are left out."""
    source, program = tmp_path / "line.f90", tmp_path / "line"
    source.write_text("print *, " + "1 + " * 100 + "1\nend\n")
    options = ["-ffree-line-length-none", "-fallow-argument-mismatch", "-fbacktrace", "-fcheck=all", "-fno-range-check"]
    options += ["-ffpe-trap=invalid,zero", "-std=legacy", "-Wall", "-Wno-unused", "-Og", "-ggdb", "-mavx2", "-pipe"]
    options += [
        "-funroll-loops",
        "-ftree-vectorize",
        "-frecord-marker=4",
        "-fmax-stack-var-size=100",
        "-fimplicit-none",
    ]
    build(native_file("quipu-fc"), *options, "-Wl,--as-needed", source, "-o", program)
    assert run(program).stdout.split() == ["101"]
    for decides in ("-finit-real=zero", "-fsecond-underscore", "-ff2c"):
        refused = run(native_file("quipu-fc"), decides, source, "-o", tmp_path / "refused")
        assert refused.returncode != 0 and decides in refused.stderr


def test_module_mpi_of_another_compiler(tmp_path: Path) -> None:
    """Flang cannot read gfortran's modules. One of several parallel compilations builds the module, the others wait."""
    source, own = tmp_path / "solve.f90", tmp_path / "own"
    own.mkdir()
    compiler = tmp_path / "flang"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\nexec {shutil.which("flang-new-19")} "$@"\n')
    compiler.chmod(0o755)
    source.write_text(
        "subroutine solve(time)\n  use mpi, only: MPI_Barrier, MPI_COMM_WORLD, MPI_Wtime\n  implicit none\n"
        "  double precision :: time\n  integer :: error\n  call MPI_Barrier(MPI_COMM_WORLD, error)\n"
        "  time = MPI_Wtime()\nend subroutine\n"
    )
    cache: dict[str, Any] = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "QUIPU_FC": str(compiler)}
    compile_solve: list[str | Path] = [native_file("quipu-mpifort"), "-c", source, "-o", tmp_path / "solve.o"]
    with ThreadPoolExecutor() as pool:
        for compilation in [pool.submit(build, *compile_solve, **cache) for _ in range(3)]:
            compilation.result()
    (made,) = (tmp_path / "cache/quipu/fortran").iterdir()
    assert (made / "mpi.mod").exists()
    assert (tmp_path / "calls").read_text().count("-fsyntax-only") == 1
    # A module of the program's own comes first, as it does without the wrappers.
    (own / "mpi.f90").write_text("module mpi\nend module\n")
    build(native_file("quipu-mpifort"), "-c", "mpi.f90", cwd=own, **cache)
    assert "not found in module 'mpi'" in run(*compile_solve, f"-I{own}", **cache).stderr
    # Where nothing can be kept, a line says so; then flang shows the bytes that it cannot read.
    failed = subprocess.run(
        compile_solve, env={**os.environ, "XDG_CACHE_HOME": "/dev/null"}, capture_output=True, check=False
    )
    assert failed.returncode != 0
    assert b"no module mpi for flang" in failed.stderr.splitlines()[0]


def test_modules_that_cannot_be_made_are_said_where_they_are_used(tmp_path: Path) -> None:
    """The mpif.h is too small for mpi_f08: only programs that use the module get a message."""
    mpi = tmp_path / "mpi"
    mpi.mkdir()
    (mpi / "mpi.mod").write_bytes(gzip.compress(b"GFORTRAN module"))
    (mpi / "mpif.h").write_text("      integer MPI_COMM_WORLD\n      parameter (MPI_COMM_WORLD=0)\n")
    texts = {"old": "include 'mpif.h'", "module": "use mpi, only: MPI_COMM_WORLD", "new": "use MPI_F08"}
    for name, text in texts.items():
        (tmp_path / f"{name}.f90").write_text(f"subroutine {name}\n  {text}\nend subroutine\n")

    def compiled(name: str, cache: Path) -> tuple[int, str]:
        source = tmp_path / f"{name}.f90"
        done = run(native_file("quipu-fc"), f"-I{mpi}", "-c", source, "-o", tmp_path / "x.o", XDG_CACHE_HOME=str(cache))
        return done.returncode, done.stderr

    assert compiled("old", tmp_path / "cache") == compiled("module", tmp_path / "cache") == (0, "")
    for _ in range(2):
        code, text = compiled("new", tmp_path / "cache")
        assert code != 0 and text.startswith("quipu: no module mpi_f08 for flang")
    assert compiled("old", Path("/dev/null")) == (0, "")
    assert compiled("module", Path("/dev/null"))[1].startswith("quipu: no module mpi for flang")


def test_modules_that_another_compiler_is_making_are_not_linked(tmp_path: Path, cc: Path, sources: Path) -> None:
    """An unfinished folder is renamed when it is complete, maybe before this program is linked."""
    fortran = tmp_path / "cache/quipu/fortran"
    for folder in ("mpi-0123456789abcdef", "mpi-fedcba9876543210.vRMx5D"):
        (fortran / folder).mkdir(parents=True)
        run("ar", "rcs", fortran / folder / "libmpi_f08.a")
    link: list[object] = [cc, sources / "add.c", sources / "main.c", "-o", tmp_path / "program"]
    shown = build(*link, "--quipu-show", XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert "mpi-0123456789abcdef/libmpi_f08.a" in shown
    assert "vRMx5D" not in shown
    # Behind what needs them: the pass is no library of the program.
    assert shown.index("main.c") < shown.index("mpi-0123456789abcdef")


def test_function_versions_with_a_resolver(tmp_path: Path, cc: Path, workshop) -> None:
    """The resolver of target_clones runs before the program is relocated; it must not be instrumented."""
    source = tmp_path / "clones.c"
    source.write_text(
        "#include <stdio.h>\n"
        'int __attribute__((target_clones("default", "avx2"))) work(int n) {\n'
        "    int s = 0;\n    for (int i = 0; i < n; i++)\n        s ^= i * s + 1;\n    return s;\n}\n"
        'int main(int argc, char **argv) { printf("%d\\n", work(argc)); return 0; }\n'
    )
    run = workshop.run(workshop.build(source, "-O1"))
    assert (run.returncode, run.stdout) == (0, "1\n")
    assert sum(values["visits"] for path, values in run.tree.items() if path and path[-1].startswith("work")) == 1


def test_debug_information_is_what_was_asked_for(cc: Path, tmp_path: Path) -> None:
    """Regions always have line numbers; the program has debug sections only with -g."""
    (tmp_path / "main.c").write_text(
        "int work(int n) { return n > 3 ? n : 7; }\nint main(void) { return work(5) - 5; }\n"
    )
    for options, wanted in ((["-O2"], False), (["-O2", "-g"], True), (["-O0"], False)):
        done = run(cc, *options, tmp_path / "main.c", "-o", tmp_path / "main")
        assert done.returncode == 0, done.stderr
        sections = run("readelf", "-SW", tmp_path / "main").stdout
        assert (".debug_line" in sections) == wanted
        (main,) = (function for function in static_functions(tmp_path / "main") if function.name == "main")
        assert (Path(main.file).name, main.line) == ("main.c", 2)


@pytest.mark.parametrize(("option", "there"), [("on", True), ("off", False)])
def test_the_call_graph_can_be_left_out(cc: Path, tmp_path: Path, option: str, there: bool) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    done = run(cc, f"--quipu-callgraph={option}", tmp_path / "main.c", "-o", tmp_path / "main")
    assert done.returncode == 0, done.stderr
    sections = run("readelf", "-SW", tmp_path / "main").stdout
    assert ".quipu.facts" in sections
    assert bool(object_files(tmp_path / "main")) == there


def test_a_choice_of_call_graphs_that_is_none(cc: Path) -> None:
    done = run(cc, "--quipu-callgraph=maybe", "-c", "x.c")
    assert done.returncode == 1
    assert "give on or off" in done.stderr
