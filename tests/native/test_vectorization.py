# SPDX-License-Identifier: Apache-2.0
"""Counting leaves hot loops as vectorized as they are without it: in the IR, and in the code of the processor."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from quipu.agent.installation import native_file

from .conftest import PROGRAMS

KERNELS = ("daxpy", "dot", "stencil", "triangle", "csr", "branchy")
# What clang vectorizes for a processor: gathers and masked stores come with AVX2.
VECTORIZED = {"x86-64": KERNELS[:4], "x86-64-v3": KERNELS}

# Arithmetic of the user's program on vectors: operation and number of elements.
IR_OPERATION = re.compile(r"= (?:tail )?(fadd|fsub|fmul|fcmp|call)\b.*?<(\d+) x double>")
# Packed arithmetic in double precision with the widest register that it names.
MACHINE_OPERATION = re.compile(r"\s(v?(?:add|sub|mul|div|f[nm]\w*|cmp\w*)pd)\s.*?%([xyz])mm")


@dataclass(frozen=True)
class Vectors:
    """Vector operations of one function."""

    in_ir: Counter[tuple[str, int]]  # in the bodies of vectorized loops: (operation, width)
    in_code: Counter[str]  # packed instructions by register, x, y or z

    @property
    def widths(self) -> set[int]:
        return {width for _, width in self.in_ir}


def functions_of(ir: str) -> dict[str, str]:
    return {m[1]: m[2] for m in re.finditer(r"^define .*?@(\w+)\(.*?\{\n(.*?)^\}", ir, re.MULTILINE | re.DOTALL)}


def vectors(compiler: Path | str, folder: Path, options: Sequence[str]) -> dict[str, Vectors]:
    """Compile the kernels and count the vector operations of each."""
    ir, code = folder / "kernels.ll", folder / "kernels.o"
    command = [compiler, *options, "-fno-discard-value-names", PROGRAMS / "kernels.c", "-o"]
    subprocess.run([*command, ir, "-S", "-emit-llvm"], check=True)
    subprocess.run([*command, code, "-c"], check=True)
    functions = functions_of(ir.read_text())
    result = {}
    for kernel in KERNELS:
        # A label, the body of a vectorized loop, and the next label or the end.
        bodies = re.findall(r"^vector\.body[\w.]*:(.*?)(?=^\S+:|\Z)", functions[kernel], re.MULTILINE | re.DOTALL)
        operations = Counter((op, int(width)) for body in bodies for op, width in IR_OPERATION.findall(body))
        listing = subprocess.run(
            ["objdump", "-d", f"--disassemble={kernel}", code], check=True, capture_output=True, text=True
        ).stdout
        result[kernel] = Vectors(operations, Counter(register for _, register in MACHINE_OPERATION.findall(listing)))
    return result


@pytest.mark.parametrize("level", ["-O2", "-O3"])
@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3"])
@pytest.mark.parametrize("math", [[], ["-ffast-math"]], ids=["exact", "fast"])
def test_hot_loops_stay_vectorized(tmp_path: Path, level: str, march: str, math: list[str]) -> None:
    options = [level, f"-march={march}", *math]
    plain = vectors("clang-19", tmp_path, options)
    counted = vectors(native_file("quipu-cc"), tmp_path, options)
    for kernel in VECTORIZED[march]:
        assert plain[kernel].widths and plain[kernel].in_code, kernel
    for kernel in KERNELS:
        assert counted[kernel].widths == plain[kernel].widths, kernel
        assert set(counted[kernel].in_code) == set(plain[kernel].in_code), kernel
