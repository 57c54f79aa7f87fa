# SPDX-License-Identifier: Apache-2.0
"""A runtime with sanitizers in it finds nothing (docs/design/sanitizers.md; all tests: make test-address …)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import ENDS_WITH, Measured, Workshop, effort
from .random_openmp import random_openmp_program

RUNTIME = Path(__file__).parents[2] / "agent" / "runtime"
PROGRAMS: dict[str, tuple[list[str], list[str]]] = {
    "control_flow.cpp": (["-O1"], ["37"]),
    "threads.cpp": (["-O1"], ["4"]),
    "pthreads.c": (["-O2"], ["4"]),
    "openmp.c": (["-O2", "-fopenmp"], ["20"]),
    "forks.c": (["-O2"], ["100"]),
}


@pytest.fixture(autouse=True)
def plain_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the normal runtime, because a program can have only one sanitizer."""
    monkeypatch.delenv("QUIPU_HOME", raising=False)


def sanitizer_library(name: str) -> str:
    return subprocess.run(
        ["clang-19", f"-print-file-name=libclang_rt.{name}-x86_64.so"], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(scope="module", params=["address,undefined", "thread"])
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which a program runs with a runtime that has sanitizers."""
    folder = tmp_path_factory.mktemp("sanitized")
    sources = sorted(RUNTIME.glob("*.cpp"))
    options = ["-fno-sanitize-recover=all", "-shared-libsan", "-ftls-model=initial-exec", "-fvisibility=hidden"]
    command = ["clang++-19", "-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-fno-exceptions", "-fno-rtti", *options]
    command.append('-DQUIPU_VERSION="tested"')
    subprocess.run(
        [*command, f"-fsanitize={request.param}", *sources, "-o", folder / "libquipu.so", "-Wl,-z,nodelete"], check=True
    )
    return {
        "LD_LIBRARY_PATH": str(folder),
        "LD_PRELOAD": sanitizer_library("tsan" if request.param == "thread" else "asan"),
        "ASAN_OPTIONS": "detect_leaks=1:exitcode=99",
        # Neither the program nor the OpenMP library is built with it: it does not see how they synchronize. The
        # library has threads that it never joins.
        "TSAN_OPTIONS": "ignore_noninstrumented_modules=1:report_thread_leaks=0:exitcode=99",
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_found(workshop: Workshop, watched: dict[str, str], name: str) -> None:
    options, arguments = PROGRAMS[name]
    program = workshop.build(name, *options)
    end = ENDS_WITH.get(name, 0)
    plain = workshop.run_all(program, *arguments, ends_with=end, OMP_NUM_THREADS="3")
    runs = workshop.run_all(program, *arguments, ends_with=end, **watched, OMP_NUM_THREADS="3")
    assert {(run.returncode, run.stdout, run.stderr) for run in runs} == {
        (run.returncode, run.stdout, run.stderr) for run in plain
    }
    assert in_order(runs) == in_order(plain)


@pytest.mark.parametrize("seed", [13, 24, 49, 51, 53, 60])
def test_nothing_is_found_in_random_openmp_programs(workshop: Workshop, watched: dict[str, str], seed: int) -> None:
    source = workshop.folder / "random.c"
    source.write_text(random_openmp_program(seed))
    program = workshop.build(source, "-O1", "-fopenmp")
    for threads in ("2", "3", "8"):
        run = workshop.run(program, ends_with=0, **watched, OMP_NUM_THREADS=threads)
        assert run.returncode == 0, run.stderr


def in_order(runs: list[Measured]) -> list[str]:
    """Effort by call path of each process, sorted to compare runs."""
    return sorted(str(sorted((path, sorted(values.items())) for path, values in effort(run).items())) for run in runs)
