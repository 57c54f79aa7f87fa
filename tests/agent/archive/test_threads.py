# SPDX-License-Identifier: Apache-2.0
"""Archives are read by one thread: Arrow's threads hold parts of the file longer than the interpreter may live."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.merge.run import merge_run

_READ = """
import os, sys
from pathlib import Path
import pyarrow.parquet
from quipu.agent.archive.read import read_archive
from quipu.agent.cli.tensor.files import read_data

before = len(os.listdir("/proc/self/task"))
archive = read_archive(Path(sys.argv[1]))
read_data(Path(sys.argv[1]) / "values.parquet")
assert archive.values is not None
print(len(os.listdir("/proc/self/task")) - before)
"""


def test_reading_starts_no_thread(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for rank in (0, 1):
        rank_profile(rank).write(raw)
    archive = merge_run(raw, tmp_path, RunMetadata({"p": 2}, exit_code=0)).path
    command = [sys.executable, "-c", _READ, str(archive)]
    read = subprocess.run(command, check=True, capture_output=True, text=True)
    assert read.stdout == "0\n"
