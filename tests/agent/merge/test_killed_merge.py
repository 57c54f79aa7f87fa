# SPDX-License-Identifier: Apache-2.0
"""A merge that is killed before any of its changes of files: merging again gives the run, once and whole."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest
from killed_command import killed_before
from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.launch.raw_folder import write_launch
from quipu.agent.merge.experiment import find_runs
from quipu.agent.merge.run import merge_run
from quipu.modeling.errors import MeasurementError

METADATA = RunMetadata({"p": 2}, command=("./app",), started="2026-01-01T00:00:00.000+00:00", exit_code=0, ranks=2)
MOST_CHANGES = 60


def merge(folder: Path, raw: Path, change: int) -> int:
    """Merge in a process that is killed before it changes files for this time; 0: it lives."""
    return killed_before(change, folder, "merge", str(raw), "-o", str(folder)).returncode


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


def test_two_merges_at_once_make_one_run(tmp_path: Path) -> None:
    raw = tmp_path / ".raw-p=2-1"
    raw.mkdir()
    rank_profile(0).write(raw)
    write_launch(raw, METADATA)
    descriptor = os.open(raw, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(MeasurementError, match="another process is merging this folder"):
        merge_run(raw, tmp_path)
    os.close(descriptor)
    merge_run(raw, tmp_path)
    assert len(find_runs(tmp_path)) == 1 and not raw.exists()
