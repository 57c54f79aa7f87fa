# SPDX-License-Identifier: Apache-2.0
"""Generate, compile and link libquipu_mpi.so for one MPI."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from quipu.modeling.errors import MeasurementError

from .generate import Sources, generate
from .installation import LIBRARY, MpiInstallation
from .prototypes import read_prototypes
from .table import load_table, operations_of

HAND_WRITTEN = Path(__file__).with_name("native")
COMPILE = (
    "-std=gnu11",
    "-O2",
    "-g",
    "-fPIC",
    "-fno-plt",
    "-fexceptions",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Wno-deprecated-declarations",
)

UNDEFINED = re.compile(r"undefined (?:reference to|symbol:?) [`']?P(MPI_\w+)")


def build(
    installation: MpiInstallation, folder: Path, *, runtime_include: Path, runtime_lib: Path, clang: str = "clang-19"
) -> Path:
    """Generate and build the library in this folder, with its sources and a build.json; return the path of the library.

    runtime_include: folder of quipu.h. runtime_lib: libquipu.so. Functions that mpi.h declares but the MPI library does
    not define get no wrapper: the linker reports them, and the next attempt omits them. Raises MeasurementError if
    building fails for another reason, and the errors of `read_prototypes`, `load_table` and `generate`.
    """
    functions = read_prototypes(clang, installation.compile_flags)
    operations = operations_of(load_table())
    absent: set[str] = set()
    while True:
        present = [function for function in functions if function.name not in absent]
        sources = generate(present, operations, installation.family)
        for name, text in sources.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        command = _command(installation, folder, sources, (runtime_include, runtime_lib), clang)
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode == 0:
            break
        missing = set(UNDEFINED.findall(result.stderr)) - absent
        if not missing:
            first = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr.strip())
            raise MeasurementError(f"cannot build the MPI wrappers for {installation} ({installation.mpicc}): {first}")
        absent |= missing
    record = {
        "mpi": str(installation),
        "mpicc": str(installation.mpicc),
        "functions": len(present),
        "counted": list(sources.counted),
        "absent": sorted(absent),
        "warnings": result.stderr.splitlines(),
        "command": command,
    }
    (folder / "build.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    return folder / LIBRARY


def _command(
    installation: MpiInstallation, folder: Path, sources: Sources, runtime_parts: tuple[Path, Path], clang: str
) -> list[str]:
    """Return the command that compiles and links the library in one step."""
    include, runtime = runtime_parts
    return [
        clang,
        *COMPILE,
        *installation.compile_flags,
        f"-I{folder}",
        f"-iquote{HAND_WRITTEN}",
        f"-I{include}",
        *(str(folder / name) for name in sources.files if name.endswith(".c")),
        *(str(path) for path in sorted(HAND_WRITTEN.rglob("*.c"))),
        "-shared",
        "-Wl,-z,defs",
        f"-Wl,-soname,{LIBRARY}",
        f"-Wl,-rpath,{runtime.parent}",
        "-o",
        str(folder / LIBRARY),
        str(runtime),
        *installation.link_flags,
    ]
