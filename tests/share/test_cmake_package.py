# SPDX-License-Identifier: Apache-2.0
"""find_package(Quipu) in a project (docs/howto/cmake.md, which is followed elsewhere, has the plain case)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(sys.executable).parent
SOURCES = {
    "work.c": "int work(int n) { volatile int s = 0; for (int i = 0; i < n; i++) s += i; return s; }\n",
    "helper.c": "int helper(int n) { volatile int s = 1; for (int i = 0; i < n; i++) s ^= i; return s; }\n",
    "main.c": "int work(int), helper(int);\nint main(void) { return work(50) + helper(9) == -1; }\n",
    "only.f90": "program only\nprint *, 1\nend program\n",
    "some.filter": "SCOREP_REGION_NAMES_BEGIN\nEXCLUDE helper\nSCOREP_REGION_NAMES_END\n",
}


def cmake(folder: Path, lines: str, languages: str = "C", *options: str) -> subprocess.CompletedProcess[str]:
    """Configure and build a project with these lines."""
    for name, text in SOURCES.items():
        (folder / name).write_text(text, encoding="utf-8")
    head = (
        f"cmake_minimum_required(VERSION 3.21)\nproject(app LANGUAGES {languages})\nfind_package(Quipu 1.0 REQUIRED)\n"
    )
    (folder / "CMakeLists.txt").write_text(head + lines, encoding="utf-8")
    script = f"cmake -B build {' '.join(options)} && cmake --build build --verbose"
    path = f"{SCRIPTS}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", script], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )


def functions(program: Path) -> str:
    """Return what `quipu facts` prints of a program."""
    command = [str(SCRIPTS / "quipu"), "facts", str(program)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_only_named_targets_are_instrumented_and_others_link_with_them(tmp_path: Path) -> None:
    done = cmake(
        tmp_path,
        "add_library(work STATIC work.c)\nadd_executable(app main.c helper.c)\ntarget_link_libraries(app work)\n"
        "quipu_instrument(work)\n",
        "C",
        "-G Ninja",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "work" in functions(tmp_path / "build" / "app")
    assert "helper" not in functions(tmp_path / "build" / "app")
    assert subprocess.run([tmp_path / "build" / "app"], check=False).returncode == 0


def test_options_reach_the_wrapper_and_a_new_filter_compiles_anew(tmp_path: Path) -> None:
    lines = "add_executable(app main.c helper.c work.c)\nquipu_instrument(app FILTER some.filter ALL)\n"
    done = cmake(tmp_path, lines, "C", "-G 'Unix Makefiles'")
    assert done.returncode == 0, done.stdout + done.stderr
    for option in ("--quipu-all", f"--quipu-filter={tmp_path}/some.filter"):
        assert option in done.stdout
    again = ["cmake", "--build", "build", "--verbose"]
    assert " -c " not in subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    newer = (tmp_path / "build" / "app").stat().st_mtime + 2
    os.utime(tmp_path / "some.filter", (newer, newer))
    assert " -c " in subprocess.run(again, cwd=tmp_path, capture_output=True, text=True, check=True).stdout


def test_mistakes_are_errors_that_say_what_to_do(tmp_path: Path) -> None:
    cases = {
        "quipu_instrument(nothing)": "there is no target nothing",
        "quipu_instrument()": "name at least one target",
        "add_executable(app main.c)\nquipu_instrument(app FILTER missing.filter)": "there is no filter file",
        "add_library(api INTERFACE)\nquipu_instrument(api)": "api is not compiled here",
    }
    for number, (lines, message) in enumerate(cases.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = cmake(folder, f"{lines}\n")
        assert done.returncode != 0 and message in " ".join(done.stderr.split()), lines


def test_modules_of_gfortran_and_flang_are_not_mixed(tmp_path: Path) -> None:
    lines = "add_executable(only only.f90)\nquipu_instrument(only)\n"
    done = cmake(tmp_path, lines, "Fortran", "-DCMAKE_Fortran_COMPILER=gfortran")
    assert done.returncode != 0
    assert "QuipuToolchain.cmake in a new build folder" in " ".join(done.stderr.split())
