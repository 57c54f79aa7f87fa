# SPDX-License-Identifier: Apache-2.0
"""Requests of build systems to a compiler other than objects and programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from quipu.agent.installation import native_file

from .conftest import INSTALLED_LLVMS, Workshop

CC, CXX = native_file("quipu-cc"), native_file("quipu-c++")

WORK = "int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += i % 3; return s; }\n"


def build(folder: Path, *command: object) -> str:
    """Run a build step that must succeed and say nothing on stderr; return its stdout."""
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("compiler", "options"),
    [
        (CC, ["a.h"]),
        (CC, ["-x", "c-header", "a.h"]),
        (CC, ["-Xclang", "-emit-pch", "--language=c-header", "a.h"]),
        (CXX, ["-xc++-header", "a.h"]),
        (CXX, ["b.hpp"]),
    ],
)
def test_precompiled_headers(tmp_path: Path, compiler: Path, options: list[str]) -> None:
    for header in ("a.h", "b.hpp"):
        (tmp_path / header).write_text(f"static {WORK}")
    build(tmp_path, compiler, *options, "-o", "all.pch")
    source = tmp_path / "main.c"
    source.write_text("int main(void) { return work(4) - 3; }\n")
    language = "c" if compiler == CC else "c++"
    build(tmp_path, compiler, "-include-pch", "all.pch", "-x", language, source, "-o", "program")
    build(tmp_path, tmp_path / "program")


def test_modules(tmp_path: Path, workshop: Workshop) -> None:
    """Functions of modules and header units are counted, for modules compiled in one step and in two."""
    (tmp_path / "part.cppm").write_text(f"export module part;\nexport {WORK}")
    (tmp_path / "plain.hpp").write_text(f"inline {WORK}".replace("work", "other"))
    (tmp_path / "main.cpp").write_text('import part;\nimport "plain.hpp";\nint main() { return work(4) - other(4); }\n')
    standard = "-std=c++20"
    build(tmp_path, CXX, standard, "-fmodule-header=user", "plain.hpp", "-o", "plain.pcm")
    build(tmp_path, CXX, standard, "--precompile", "part.cppm", "-o", "part.pcm")
    build(tmp_path, CXX, standard, "part.pcm", "-c", "-o", "part.o")
    build(tmp_path, CXX, standard, "-fmodule-output=again.pcm", "-c", "part.cppm", "-o", "again.o")
    use = (standard, "-fmodule-file=part=part.pcm", "-fmodule-file=plain.pcm", "-Wno-experimental-header-units")
    for part in ("part.o", "again.o"):
        build(tmp_path, CXX, *use, "main.cpp", part, "-o", f"with_{part}")
        tree = workshop.run(tmp_path / f"with_{part}").tree
        assert tree["main", "work@part(int)"]["visits"] == tree["main", "other(int)"]["visits"] == 1


IPO = """cmake_minimum_required(VERSION 3.20)
project(t CXX)
include(CheckIPOSupported)
check_ipo_supported()
set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
add_library(part STATIC part.cpp)
add_executable(t main.cpp)
target_link_libraries(t part)
"""


def test_interprocedural_optimization_of_cmake(tmp_path: Path, workshop: Workshop) -> None:
    """CMake finds llvm-ar by the compiler's name; archives of bitcode need that of the same LLVM version."""
    (tmp_path / "CMakeLists.txt").write_text(IPO)
    (tmp_path / "part.cpp").write_text(WORK)
    (tmp_path / "main.cpp").write_text("int work(int);\nint main() { return work(4) - 3; }\n")
    build(tmp_path, "cmake", "-B", "b", f"-DCMAKE_CXX_COMPILER={CXX}", "-DCMAKE_BUILD_TYPE=Release")
    build(tmp_path, "cmake", "--build", "b")
    assert workshop.run(tmp_path / "b/t").tree["main", "work(int)"]["visits"] == 1


@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
@pytest.mark.parametrize("tool", ["llvm-ar", "llvm-ranlib"])
def test_tools_are_those_of_the_compiler(workshop: Workshop, llvm: str, tool: str) -> None:
    # CMake hands on the flags of a project.
    command: list[str | Path] = [CC.with_name(f"quipu-{tool}"), "--version", "--quipu-all"]
    done = subprocess.run(command, env=workshop.environment, capture_output=True, text=True, check=True)
    assert f"LLVM version {llvm}." in done.stdout


@pytest.mark.parametrize("without", ["-nodefaultlibs", "-nostdlib"])
def test_libraries_of_the_system_by_name(tmp_path: Path, without: str) -> None:
    """Libtool links C++ libraries with such options; the Quipu runtime must still be linked."""
    (tmp_path / "work.c").write_text(WORK)
    build(tmp_path, CC, "-fPIC", "-shared", without, "work.c", "-lc", "-Wl,-z,defs", "-o", "libwork.so")
    assert "libquipu" in build(tmp_path, "readelf", "-d", "libwork.so")
    build(tmp_path, CC, "-r", without, "work.c", "-o", "merged.o")
