# SPDX-License-Identifier: Apache-2.0
"""The examples build with other compilers, without optimization and with CMake, and give the same results."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from example_programs import COMPILED, Program, build, campaign_arguments, campaign_values, copy_sources, run

CLANG = {"OMPI_CC": "clang-19", "OMPI_CXX": "clang++-19", "MPICH_CC": "clang-19", "MPICH_CXX": "clang++-19"}


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize(("compiler", "level"), [("gcc", "-O0"), ("clang", "-O0"), ("clang", "-O2")])
def test_builds_agree(name: str, compiler: str, level: str, programs: dict[str, Program], tmp_path: Path) -> None:
    environment = CLANG if compiler == "clang" else {}
    other = build(name, tmp_path, f"CFLAGS={level}", f"CXXFLAGS={level}", environment=environment)
    arguments = campaign_arguments(name, campaign_values(name)["n"][0])
    assert other.result(3, *arguments) == programs[name].result(3, *arguments)


@pytest.mark.parametrize("name", COMPILED)
def test_cmake_build(name: str, programs: dict[str, Program], tmp_path: Path) -> None:
    folder = copy_sources(name, tmp_path)
    language, compiler = ("C", "mpicc") if name == "heat" else ("CXX", "mpicxx")
    configured = run(["cmake", "-B", "build", f"-DCMAKE_{language}_COMPILER={compiler}"], folder)
    assert configured.returncode == 0, configured.stdout + configured.stderr
    built = run(["cmake", "--build", "build"], folder)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "warning" not in built.stdout + built.stderr
    arguments = campaign_arguments(name, campaign_values(name)["n"][0])
    program = Program(name, folder, (f"build/{name}",))
    assert program.result(2, *arguments) == programs[name].result(2, *arguments)


@pytest.mark.parametrize("name", COMPILED)
def test_another_compiler_rebuilds_everything(name: str, programs: dict[str, Program], tmp_path: Path) -> None:
    folder = shutil.copytree(programs[name].folder, tmp_path / name)
    assert run(["make"], folder).stdout == "", "nothing changed, and yet something was built"
    compiler = shutil.which("mpicc" if name == "heat" else "mpicxx")
    again = run(["make", f"MPICC={compiler}", f"MPICXX={compiler}"], folder)
    assert again.returncode == 0
    sources = [path for path in folder.iterdir() if path.suffix in {".c", ".cpp"}]
    assert again.stdout.count(" -c ") == len(sources)
    assert run(["make", "clean"], folder).returncode == 0
    assert not [path for path in folder.iterdir() if path.suffix in {".o", ".d"} or path.name in {name, ".compiler"}]
