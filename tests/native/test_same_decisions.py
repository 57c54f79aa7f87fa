# SPDX-License-Identifier: Apache-2.0
"""The optimizer inlines and vectorizes the same calls and loops with the wrappers as without, as its remarks say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from quipu.agent.installation import native_file
from quipu.mpi_wrap import describe_mpicc

from .conftest import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "benchmarks/programs", *(ROOT / "examples" / name for name in ("heat", "cg", "samplesort")))
SOURCES = sorted(
    [PROGRAMS / "kernels.c", PROGRAMS / "loops.c"]
    + [path for folder in FOLDERS for pattern in ("*.c", "*.cpp") for path in folder.glob(pattern)]
)
REMARK = re.compile(
    r"^(\S+:\d+:\d+): remark: (.*?)(?: with \(cost=.*| at callsite .*)? \[-Rpass=[\w-]+\]$", re.MULTILINE
)


def remarks(compiler: str | Path, source: Path, folder: Path, kind: str) -> set[tuple[str, str]]:
    """Return where an optimization was applied, and what the compiler says of it, without estimates."""
    standard = ["-std=c++17"] if source.suffix == ".cpp" else ["-std=gnu11"]
    command = [compiler, "-O2", "-w", *standard, "-DOMPI_SKIP_MPICXX", *describe_mpicc().compile_flags]
    done = subprocess.run(
        [*command, f"-Rpass={kind}", "-c", source, "-o", folder / "object.o"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(REMARK.findall(done.stderr))


def compilers(source: Path) -> tuple[str, Path]:
    is_cpp = source.suffix == ".cpp"
    return "clang++-19" if is_cpp else "clang-19", native_file("quipu-c++" if is_cpp else "quipu-cc")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_loops_are_vectorized_alike(tmp_path: Path, source: Path) -> None:
    plain, wrapper = compilers(source)
    assert remarks(wrapper, source, tmp_path, "loop-vectorize") == remarks(plain, source, tmp_path, "loop-vectorize")


@pytest.mark.parametrize("name", ["accessors.cpp", "ten_functions.c", "stream.c", "calls.c", "small_calls.cpp"])
def test_calls_are_inlined_alike(tmp_path: Path, name: str) -> None:
    source = ROOT / "benchmarks/programs" / name
    plain, wrapper = compilers(source)
    assert remarks(wrapper, source, tmp_path, "inline") == remarks(plain, source, tmp_path, "inline")
