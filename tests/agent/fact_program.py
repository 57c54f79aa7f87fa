# SPDX-License-Identifier: Apache-2.0
"""Build programs whose object files contain given static facts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

COMPILER = next(name for name in ("clang-19", "cc", "gcc") if shutil.which(name))


def build(folder: Path, *units: str) -> Path:
    """Link object files whose sections hold these texts into one program; return it."""
    sources = []
    for number, text in enumerate(units):
        quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\0", "\\000")
        source = folder / f"unit{number}.s"
        body = f'.pushsection .quipu.facts,"",@progbits\n.ascii "{quoted}"\n.popsection\n'
        start = ".globl main\nmain:\n" if number == 0 else ""
        source.write_text(body + start + '.section .note.GNU-stack,"",@progbits\n')
        sources.append(str(source))
    program = folder / "program"
    subprocess.run([COMPILER, "-o", str(program), *sources], check=True)
    return program
