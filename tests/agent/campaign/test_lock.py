# SPDX-License-Identifier: Apache-2.0
"""Who holds the lock of an experiment folder."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from quipu.agent.campaign.campaign import LOCK_FILE, locked
from quipu.modeling.errors import MeasurementError


@pytest.mark.parametrize("known", [True, False])
def test_a_lock_whose_file_names_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    (tmp_path / "heat").mkdir()
    if not known:  # as where the lock is held on another machine
        monkeypatch.setattr(Path, "read_text", lambda *_, **__: "")
    with locked(tmp_path / "heat"):
        os.truncate(tmp_path / "heat" / LOCK_FILE, 0)
        expected = f"running here .process {os.getpid()} on" if known else f"cannot be seen from here.*{LOCK_FILE}"
        with pytest.raises(MeasurementError, match=expected), locked(tmp_path / "heat"):
            pass


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "heat").mkdir()
    script = (
        "import os, sys; from pathlib import Path; from quipu.agent.campaign.campaign import locked\n"
        "with locked(Path(sys.argv[1])): os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "heat")], check=False)
    assert "process" in (tmp_path / "heat" / LOCK_FILE).read_text()
    with locked(tmp_path / "heat"):
        assert f"process {os.getpid()} on" in (tmp_path / "heat" / LOCK_FILE).read_text()


def test_a_killed_campaign_leaves_its_lock_to_a_child_for_a_moment_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    folder = tmp_path / "heat"
    folder.mkdir()
    child = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT)
    fcntl.flock(child, fcntl.LOCK_EX)
    os.write(child, f"process {ended.pid} on {socket.gethostname()}\n".encode())
    monkeypatch.setattr("quipu.agent.campaign.campaign.time.sleep", lambda _: os.close(child))
    with locked(folder):
        assert f"process {os.getpid()} on" in (folder / LOCK_FILE).read_text()
