# SPDX-License-Identifier: Apache-2.0
"""Fuzz commands: run them on archives, raw folders, models and measurements with one change.

    make bench-fuzz_commands                                           # one minute
    make bench-fuzz_commands ARGS='--seconds 3600 --first 100000'      # an hour, other inputs

Each number is a reproducible input (tests/strangers/hostile.py). A command must succeed, or end with one error of one
line: no traceback, no control characters, at most 20 processor seconds and 512 MiB. The last line is one JSON object:
`inputs`, `commands`, `refused`, `seconds`, `failures` (bound: 0).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "agent"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))

from tests.strangers.commands import OF_EXPERIMENTS, check_case
from tests.strangers.hostile import experiment


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--first", type=int, default=1000, help="number of the first input")
    options = parser.parse_args()
    began, number, commands, refused, failures = time.monotonic(), options.first, 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="quipu-fuzz-") as folder:
        whole = experiment(Path(folder) / "whole")
        while time.monotonic() - began < options.seconds:
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                try:
                    codes = check_case(number, whole, Path(scratch), len(OF_EXPERIMENTS) // 2)
                    commands, refused = commands + len(codes), refused + sum(code != 0 for code in codes.values())
                except Exception:  # any exception is a failure of this input
                    failures += 1
                    print(f"input {number}:\n{traceback.format_exc()[-3000:]}", flush=True)
            number += 1
    result = {"inputs": number - options.first, "commands": commands, "refused": refused}
    print(json.dumps({**result, "seconds": round(time.monotonic() - began), "failures": failures}))
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
