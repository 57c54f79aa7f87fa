"""Write how the parts of the PMPI library are compiled, for clang-tidy: python .ci/native_commands.py FOLDER MPICC…

Each MPI that is installed gets FOLDER/<name of its mpicc> with compile_commands.json and the generated header that the
hand-written files include; that folder is printed.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from quipu.mpi_wrap.generate import AT_HAND, generate
from quipu.mpi_wrap.installation import describe_mpicc
from quipu.mpi_wrap.library import COMPILE, HAND_WRITTEN
from quipu.mpi_wrap.prototypes import read_prototypes

ROOT = Path(__file__).resolve().parents[1]
CLANG = "clang-19"

for mpicc in filter(shutil.which, sys.argv[2:]):
    folder = Path(sys.argv[1]).resolve() / mpicc
    folder.mkdir(parents=True, exist_ok=True)
    installation = describe_mpicc(mpicc, clang=CLANG)
    sources = generate(read_prototypes(CLANG, installation.compile_flags), {}, installation.family)
    (folder / AT_HAND).write_text(sources.files[AT_HAND], encoding="utf-8")
    flags = [*COMPILE, *installation.compile_flags, f"-I{folder}", f"-I{HAND_WRITTEN}", f"-I{ROOT / 'agent/runtime'}"]
    commands = [
        {"directory": str(folder), "file": str(path), "arguments": [CLANG, *flags, "-c", str(path)]}
        for path in sorted(HAND_WRITTEN.glob("*.c"))
    ]
    (folder / "compile_commands.json").write_text(json.dumps(commands, indent=1), encoding="utf-8")
    print(folder)
