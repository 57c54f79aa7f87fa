# SPDX-License-Identifier: Apache-2.0
"""The IR that the pass makes, checked by FileCheck (llvm_pass/tests)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from quipu.agent.installation import native_file

from .conftest import INSTALLED_LLVMS

TESTS = Path(__file__).parents[2] / "llvm_pass" / "tests"


@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
def test_instrumented_ir(tmp_path: Path, llvm: str) -> None:
    plugin = native_file(f"QuipuPass-{llvm}.so")
    lit = Path(sys.executable).with_name("lit")
    parameters = ["-D", f"plugin={plugin}", "-D", f"llvm=/usr/lib/llvm-{llvm}/bin", "-D", f"output={tmp_path}"]
    done = subprocess.run([lit, "-v", *parameters, TESTS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
