# SPDX-License-Identifier: Apache-2.0
"""Remove the files that a process leaves if it is killed while it writes an archive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from profile_writer import rank_profile
from quipu.agent.archive.leftovers import WRITE_LOCK, writing
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.merge.run import merge_run

METADATA = RunMetadata({"p": 1}, exit_code=0)
KILLED = """
import os, sys
from pathlib import Path
from quipu.agent.archive import write
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.merge.run import merge_run
write.write_checksums = lambda folder: os.kill(os.getpid(), 9)
merge_run(Path(sys.argv[1]), Path(sys.argv[2]), RunMetadata({"p": 1}, exit_code=0))
"""


def raw_folder(tmp_path: Path) -> Path:
    raw = tmp_path / ".raw-x"
    raw.mkdir(exist_ok=True)
    rank_profile(0, 1).write(raw)
    return raw


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != WRITE_LOCK)


def test_the_next_merge_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    raw, experiment = raw_folder(tmp_path), tmp_path / "heat"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(raw), str(experiment)], check=False)
    assert killed.returncode == -9
    assert [name.startswith(".tmp-p=1-") for name in names(experiment)] == [True]
    (experiment / f".merged-{'0' * 32}").mkdir()
    merge_run(raw, experiment, METADATA)
    assert names(experiment) == ["p=1.r1"]


def test_what_a_process_is_writing_stays(tmp_path: Path) -> None:
    experiment = tmp_path / "heat"
    at_work = experiment / f".tmp-p=1-{'0' * 32}"
    at_work.mkdir(parents=True)
    held = "import sys; from pathlib import Path; from quipu.agent.archive.leftovers import writing\n"
    held += "with writing(Path(sys.argv[1])): print('ready', flush=True); sys.stdin.read()"
    at_work.rmdir()
    with subprocess.Popen(
        [sys.executable, "-c", held, str(experiment)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        at_work.mkdir()
        merge_run(raw_folder(tmp_path), experiment, METADATA)
        assert names(experiment) == [at_work.name, "p=1.r1"]
        other.communicate("")
    merge_run(raw_folder(tmp_path), experiment, METADATA)
    assert names(experiment) == ["p=1.r1", "p=1.r2"]


def test_only_folders_with_such_names_are_removed(tmp_path: Path) -> None:
    mine = [".tmp-notes", ".merged", f"tmp-p=1-{'0' * 32}"]
    for name in mine:
        (tmp_path / name).mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("")
    link = tmp_path / f".tmp-p=1-{'1' * 32}"
    link.symlink_to(elsewhere)
    with writing(tmp_path):
        assert names(tmp_path) == sorted([*mine, "elsewhere", link.name])
    assert names(elsewhere) == ["kept"]


def test_a_folder_where_no_lock_can_be_made(tmp_path: Path) -> None:
    left = tmp_path / f".tmp-p=1-{'0' * 32}"
    left.mkdir()
    (tmp_path / WRITE_LOCK).symlink_to(tmp_path / "nowhere")
    with writing(tmp_path):
        assert left.exists()


def test_a_name_that_has_room_is_written_whatever_its_length(tmp_path: Path) -> None:
    name = "y" * 240
    archive = merge_run(raw_folder(tmp_path), tmp_path / "heat", RunMetadata({name: 1}, exit_code=0))
    assert archive.path.name == f"{name}=1.r1"
    assert names(tmp_path / "heat") == [archive.path.name]
