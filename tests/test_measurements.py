# SPDX-License-Identifier: Apache-2.0
"""The page of measurements is what its command makes of the results that are kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, str(ROOT / "benchmarks" / "results_page.py")]


def test_page_is_up_to_date() -> None:
    program = "import sys; sys.path.insert(0, sys.argv[1]); import results_page; print(results_page.page(), end='')"
    command = [sys.executable, "-c", program, str(ROOT / "benchmarks")]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert made == (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")


def test_results_have_their_command() -> None:
    for path in (ROOT / "benchmarks" / "results").glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        assert {"command", "date", "machine", "result"} <= content.keys(), path.name
        assert path.with_suffix(".py").name in {file.name for file in (ROOT / "benchmarks").glob("*.py")}


def test_output_without_a_result_is_an_error(tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    output.write_text("interrupted\n", encoding="utf-8")
    done = subprocess.run(
        [*COMMAND, "--add", "modeling_speed", str(output)], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "no line with a JSON object" in done.stderr
