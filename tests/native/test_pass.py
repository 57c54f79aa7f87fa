"""The IR that the pass makes, checked by FileCheck (llvm_pass/tests)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from quipu.agent.installation import native_file

TESTS = Path(__file__).parents[2] / "llvm_pass" / "tests"


def test_instrumented_ir(tmp_path: Path, llvm_tools: Path) -> None:
    plugin = native_file("QuipuPass.so")
    lit = Path(sys.executable).with_name("lit")
    parameters = ["-D", f"plugin={plugin}", "-D", f"llvm={llvm_tools}", "-D", f"output={tmp_path}"]
    done = subprocess.run([lit, "-v", *parameters, TESTS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
