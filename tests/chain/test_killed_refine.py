# SPDX-License-Identifier: Apache-2.0
"""`quipu refine` that is killed again and again: the repeated command goes on, and keeps all complete runs."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from killed_command import killed_before
from killed_refine import declare, lost_in, runs_in
from patience import until
from quipu.agent.campaign.left_behind import AT_WORK
from quipu.agent.campaign.refinement import BASELINE, STATE, read_refinement
from quipu.agent.merge.experiment import find_runs

MOST_KILLS = 60
FEWEST, MOST = 20, 90  # changes of files between two kills: a run makes about 40


@pytest.mark.parametrize("seed", [1, 2])
def test_a_refinement_killed_again_and_again_keeps_all_complete_runs(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    file, folder = declare(tmp_path), tmp_path / "cycle"
    kept: dict[str, int] = {}
    kills = 0
    while kills < MOST_KILLS:
        ended = killed_before(chance.randint(FEWEST, MOST), folder, "refine", str(file))
        found = runs_in(folder)
        assert kept.items() <= found.items()
        kept = found
        if ended.returncode != -signal.SIGKILL:
            assert ended.returncode == 0, ended.stderr
            break
        kills += 1
    assert 2 < kills < MOST_KILLS
    iterations, _ = read_refinement(folder)
    for iteration in iterations:
        assert len(find_runs(folder / f"iteration-{iteration.number}")) == 2
    assert len(find_runs(folder / "reference")) == 2
    files = {path.name for path in folder.iterdir() if path.is_file()}
    assert {BASELINE, STATE} <= files and AT_WORK not in files
    assert not [name for name in files if name.startswith(f".{STATE}.") or name.startswith(f".{BASELINE}.")]
    assert not lost_in(folder)


def test_a_build_that_a_killed_refinement_left_is_ended(tmp_path: Path) -> None:
    """Two simultaneous builds would damage the program."""
    script = "echo $$ >> builds; if [ ! -e once ]; then touch once; sleep 1000; fi; exit 3"
    file = declare(tmp_path, script)
    command = [sys.executable, "-c", "from quipu.agent.cli.main import main; main()", "refine", str(file)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        until((tmp_path / "once").exists, "the build")
        process.kill()
    left = int((tmp_path / "builds").read_text().split()[0])
    assert psutil.pid_exists(left)
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (
        again.returncode == 1
        and f"ending processes that a killed command left running here: process {left}" in again.stderr
    )
    assert not psutil.pid_exists(left) or psutil.Process(left).status() == psutil.STATUS_ZOMBIE
    assert not (tmp_path / "cycle" / AT_WORK).exists()
