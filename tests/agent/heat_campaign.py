# SPDX-License-Identifier: Apache-2.0
"""A campaign of one program, as read from a campaign file."""

from __future__ import annotations

from pathlib import Path

from quipu.agent.campaign.file import Campaign, read_campaign

HEAT = """
[experiment]
name = "heat"
repetitions = 2
command = "mpirun -n {p} ./heat --size={n} '{p} {n}'"
timeout = 60
[parameters]
p = [2, 1]
n = [100, 50.5]
[environment]
OMP_NUM_THREADS = 1
"""


def declare(folder: Path, text: str = HEAT) -> Campaign:
    path = folder / "heat.toml"
    path.write_text(text)
    return read_campaign(path)
