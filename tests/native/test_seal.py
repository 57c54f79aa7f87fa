# SPDX-License-Identifier: Apache-2.0
"""The checksums that a profile gets when its process ends."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from patience import PATIENCE
from quipu.agent.profile.reader import ProfileState, read_profile

from .conftest import ENDS_WITH


def sealed_profile(workshop, source: str, **environment: str) -> Path:
    program = workshop.build(source, "-O1", "--quipu-all")
    workshop.run(program, ends_with=ENDS_WITH.get(source, 0), **environment)
    (path,) = workshop.folder.glob("raw-*/profile-*.quipu")
    return path


def test_the_runtime_and_the_reader_agree_and_damage_is_told(workshop) -> None:
    path = sealed_profile(workshop, "control_flow.cpp")
    profile = read_profile(path)
    assert profile.state == ProfileState.ENDED
    assert profile.problems == ()
    assert 1e-4 <= profile.setup_seconds < PATIENCE
    content = path.read_bytes()
    assert content[4064:4068] != bytes(4)
    for position in (3000, 4096 + 70, 4096 + 16):
        changed = bytearray(content)
        changed[position] ^= 4
        path.write_bytes(changed)
        damaged = read_profile(path)
        assert damaged.damaged
        assert any("checksum" in problem for problem in damaged.problems)


def test_threads_that_outlive_the_end_do_not_spoil_the_checksums(workshop) -> None:
    program = workshop.build("late_threads.c", "-O1", "--quipu-all")
    for number in range(10):
        raw = workshop.folder / f"raw-{number}"
        raw.mkdir()
        subprocess.run([program], env={**os.environ, "QUIPU_DIR": str(raw)}, check=True, timeout=PATIENCE)
        (path,) = raw.glob("profile-*.quipu")
        profile = read_profile(path)
        assert profile.state == ProfileState.ENDED
        assert path.read_bytes()[4064:4068] != bytes(4)
        assert profile.problems == ()
