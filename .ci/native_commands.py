# SPDX-License-Identifier: Apache-2.0
"""Write how the native files are compiled, each once, for clang-tidy: python .ci/native_commands.py FOLDER BUILD MPICC…

BUILD is the build's folder with compile_commands.json: the pass is in it once per LLVM and the runtime once per kind of
library. Of the PMPI library each MPI that is installed gets FOLDER/<its mpicc> with the generated header that the
hand-written files include, and compile_commands.json: of all files for the first MPI, of those that say what another
MPI compiles for the others. The files of the pass are checked as one, FOLDER/build/pass/pass.cpp: nearly all time goes
into LLVM's headers, which are then read once. Printed is for each file a line with the folder of its
compile_commands.json and its path, those that take longest first.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from quipu.mpi_wrap.build import COMPILE, HAND_WRITTEN
from quipu.mpi_wrap.generate import AT_HAND, generate
from quipu.mpi_wrap.installation import describe_mpicc
from quipu.mpi_wrap.prototypes import read_prototypes

ROOT = Path(__file__).resolve().parents[1]
CLANG = "clang-19"
PASS = ROOT / "llvm_pass"
SPECIFIC = re.compile(r"\b(OPEN_MPI|SMPI_H|QUIPU_MPI_TABLES)\b")


def write(folder: Path, commands: list[dict[str, object]]) -> list[tuple[Path, Path]]:
    """Write the compile commands of a folder; return it with each of their files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(commands, indent=1), encoding="utf-8")
    return [(folder, Path(str(command["file"]))) for command in commands]


def built(folder: Path, build: Path) -> list[tuple[Path, Path]]:
    """Of the build: a file that several targets compile is checked as the first of them does."""
    commands: dict[str, dict[str, object]] = {}
    of_pass: dict[str, object] = {}
    for command in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        if "/Unity/" in command["file"]:
            of_pass = of_pass or command
        elif not Path(command["file"]).is_relative_to(HAND_WRITTEN):
            commands.setdefault(command["file"], command)
    return write(folder / "pass", [as_one(folder / "pass" / "pass.cpp", of_pass)]) + write(
        folder, list(commands.values())
    )


def as_one(path: Path, command: dict[str, object]) -> dict[str, object]:
    """Write the sources of the pass as one file, compiled as those that CMake joins."""
    texts = [f'#line 1 "{name}"\n{name.read_text(encoding="utf-8")}' for name in sorted(PASS.glob("*.cpp"))]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(texts), encoding="utf-8")
    words = str(command["command"]).replace(str(command["file"]), str(path))
    return {**command, "file": str(path), "command": words.replace(" -I", f" -I{PASS} -I", 1)}


def library(folder: Path, mpicc: str, whole: bool) -> list[tuple[Path, Path]]:
    """Of the PMPI library for one MPI; whole: also the files that are the same for each MPI."""
    folder.mkdir(parents=True, exist_ok=True)
    installation = describe_mpicc(mpicc, clang=CLANG)
    sources = generate(read_prototypes(CLANG, installation.compile_flags), {}, installation.family)
    (folder / AT_HAND).write_text(sources.files[AT_HAND], encoding="utf-8")
    include = (f"-I{folder}", f"-iquote{HAND_WRITTEN}", f"-I{ROOT / 'agent' / 'runtime'}")
    paths = [path for path in sorted(HAND_WRITTEN.rglob("*.c")) if whole or SPECIFIC.search(path.read_text("utf-8"))]
    return write(
        folder,
        [
            {
                "directory": str(folder),
                "file": str(path),
                "arguments": [CLANG, *COMPILE, *installation.compile_flags, *include, "-c", str(path)],
            }
            for path in paths
        ],
    )


def main() -> None:
    """Write all and print the files."""
    target, build, *compilers = sys.argv[1:]
    root = Path(target).resolve()
    checked = built(root / "build", Path(build))
    for count, mpicc in enumerate(filter(shutil.which, compilers)):
        checked += library(root / mpicc, mpicc, whole=count == 0)
    # LLVM's headers take longer than anything that the project's files hold.
    for folder, path in sorted(checked, key=lambda pair: (pair[1].name != "pass.cpp", -pair[1].stat().st_size)):
        print(folder, path)


main()
