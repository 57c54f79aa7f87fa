# SPDX-License-Identifier: Apache-2.0
"""A merge that is killed before any of its changes of files: merging again gives the run, once and whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.launch.raw_folder import write_launch
from quipu.agent.merge.experiment import find_runs
from quipu.agent.merge.run import merge_run

KILLED = """
import os, signal, sys
left, inside = int(sys.argv.pop(1)), sys.argv.pop(1)

def changes(event, arguments):
    if event == "open":
        return isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    return event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree", "os.link")

def hook(event, arguments):
    global left
    if changes(event, arguments) and inside in str(arguments):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(hook)
from quipu.agent.cli.main import main
main()
"""
METADATA = RunMetadata({"p": 2}, command=("./app",), started="2026-01-01T00:00:00.000+00:00", exit_code=0, ranks=2)
MOST_CHANGES = 60


def merge(folder: Path, raw: Path, changes: int) -> int:
    """Merge in a process that is killed before it changes files for this time; 0: it lives."""
    command = [sys.executable, "-c", KILLED, str(changes), str(folder), "merge", str(raw), "-o", str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


def test_a_merge_killed_at_any_moment_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    kept = tmp_path / "kept" / ".raw-p=2-1"
    kept.mkdir(parents=True)
    for rank in range(2):
        rank_profile(rank).write(kept)
    write_launch(kept, METADATA)
    expected = merge_run(kept, tmp_path / "expected", keep_raw=True)
    assert expected.metadata.complete
    for changes in range(1, MOST_CHANGES):
        folder = tmp_path / "runs"
        raw = folder / kept.name
        shutil.copytree(kept, raw)
        code = merge(folder, raw, changes)
        assert code in (0, -9)
        if raw.exists():
            assert merge(folder, raw, 0) == 0
        (run,) = find_runs(folder)
        found = read_archive(run.path)
        assert found.metadata.complete
        assert found.statistics["visits"].sum.tolist() == expected.statistics["visits"].sum.tolist()
        assert not raw.exists()
        shutil.rmtree(folder)
        if code == 0:
            assert changes > 10  # it was killed before each of these
            return
    raise AssertionError("the merge changes more files than expected")
