"""Write how the parts of the PMPI library are compiled, for clang-tidy: python .ci/native_commands.py FOLDER MPICC…

Each MPI that is installed gets FOLDER/<its mpicc> with the generated header that the hand-written files include,
and compile_commands.json: of all files for the first MPI, of those that say what another MPI compiles for the others.
The folder is printed.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from quipu.mpi_wrap.generate import AT_HAND, generate
from quipu.mpi_wrap.installation import describe_mpicc
from quipu.mpi_wrap.library import COMPILE, HAND_WRITTEN
from quipu.mpi_wrap.prototypes import read_prototypes

ROOT = Path(__file__).resolve().parents[1]
CLANG = "clang-19"
SPECIFIC = re.compile(r"\b(OPEN_MPI|SMPI_H|QUIPU_MPI_TABLES)\b")

for count, mpicc in enumerate(filter(shutil.which, sys.argv[2:])):
    folder = Path(sys.argv[1]).resolve() / mpicc
    folder.mkdir(parents=True, exist_ok=True)
    installation = describe_mpicc(mpicc, clang=CLANG)
    sources = generate(read_prototypes(CLANG, installation.compile_flags), {}, installation.family)
    (folder / AT_HAND).write_text(sources.files[AT_HAND], encoding="utf-8")
    include = (f"-I{folder}", f"-iquote{HAND_WRITTEN}", f"-I{ROOT / 'agent' / 'runtime'}")
    commands = [
        {
            "directory": str(folder),
            "file": str(path),
            "arguments": [CLANG, *COMPILE, *installation.compile_flags, *include, "-c", str(path)],
        }
        for path in sorted(HAND_WRITTEN.rglob("*.c"))
        if count == 0 or SPECIFIC.search(path.read_text(encoding="utf-8"))
    ]
    (folder / "compile_commands.json").write_text(json.dumps(commands, indent=1), encoding="utf-8")
    print(folder)
