# SPDX-License-Identifier: Apache-2.0
"""The evaluation of priors, small: benchmarks/priors_evaluation.py --quick on generated programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from patience import PATIENCE

EVALUATION = Path(__file__).resolve().parents[3] / "benchmarks" / "priors_evaluation.py"


def test_quick_evaluation_finds_every_order_of_simulated_communication(tmp_path: Path) -> None:
    """Simulated times are the same on every machine; those of computation are not, so only their presence is asked."""
    options = ("--quick", "--no-extrap", "--no-cost", "--injections", "1", "--dnn-injections", "1")
    command = [sys.executable, str(EVALUATION), *options, "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for key in ("ed_zero_share", "re_computation", "re_communication", "re_computation_75", "re_communication_75"):
        assert {"quipu", "classic", "paper"} <= found[key].keys()
    communication = done.stdout[done.stdout.index("\ncommunication:") :]
    shares = re.findall(r"^ +\d+%? +quipu .* ([\d.]+)%$", communication, re.MULTILINE)
    assert len(shares) == 7  # six intensities of noise, one number of repetitions
    assert {*shares} == {"100.0"}
    assert found["re_communication"]["quipu"] < 25.0
