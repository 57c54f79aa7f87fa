# SPDX-License-Identifier: Apache-2.0
"""The benchmark of layouts, small: benchmarks/modeling_layouts.py --quick."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "modeling_layouts.py"


def test_quick_layouts() -> None:
    done = subprocess.run([sys.executable, str(BENCHMARK), "--quick"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {"coverage", "within5", "shapes", "constants", "constants_off"} <= found.keys()
    assert found["within5"]["grid m=2 0%"]["quipu"] >= 95.0
