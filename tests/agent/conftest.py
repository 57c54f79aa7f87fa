# SPDX-License-Identifier: Apache-2.0
"""Provide replacements of the native parts, and make the modules of this folder importable."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

MPIRUN = """#!/bin/sh
if [ "$1" = --version ]; then echo "mpirun (Open MPI) 4.1.4"; exit 0; fi
ranks=$2; shift 2; rank=0; result=0
while [ $rank -lt $ranks ]; do
    STAND_IN_RANK=$rank STAND_IN_RANKS=$ranks "$@" || result=$?
    rank=$((rank + 1))
done
exit $result
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with replacements of quipu-exec (QUIPU_HOME) and of mpirun (PATH)."""
    home = tmp_path / "home"
    shim = home / "bin" / "quipu-exec"
    shim.parent.mkdir(parents=True)
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name("stand_in.py")} "$@"\n')
    mpirun = tmp_path / "bin" / "mpirun"
    mpirun.parent.mkdir()
    mpirun.write_text(MPIRUN)
    for path in (shim, mpirun):
        path.chmod(0o755)
    monkeypatch.setenv("QUIPU_HOME", str(home))
    monkeypatch.setenv("PATH", f"{mpirun.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path
