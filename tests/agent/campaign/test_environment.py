# SPDX-License-Identifier: Apache-2.0
"""Parameters in the variables of the environment of a campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.campaign import Here, run_campaign
from quipu.agent.campaign.file import read_campaign
from quipu.agent.merge.run import merge_run

HEAT = """
[experiment]
name = "heat"
repetitions = 2
command = "mpirun -n {p} ./heat"
build = 'echo $KIND$SIZE$OMP_NUM_THREADS > log'
[parameters]
p = [2, 1]
n = [100, 50.5]
[environment]
SIZE = "{n}x{n}"
KIND = "plain"
OMP_NUM_THREADS = 1
"""


def test_parameters_in_the_environment(tmp_path: Path) -> None:
    """Variables use parameters; the build, which is for all points, only gets variables without parameters."""
    sizes = []

    def launch(*given: Any) -> RunArchive:
        _, parameters, _, directory, options = given
        sizes.append(options.environment["SIZE"])
        raw = tmp_path / "raw"
        raw.mkdir()
        rank_profile(0, 1).write(raw)
        return merge_run(raw, directory, RunMetadata(dict(parameters), exit_code=0))

    file = tmp_path / "heat.toml"
    file.write_text(HEAT)
    campaign = read_campaign(file)
    assert campaign.environment_at((1, 50.5)) == {"SIZE": "50.5x50.5", "KIND": "plain", "OMP_NUM_THREADS": "1"}
    assert run_campaign(campaign, execution=Here(launch)).exit_code == 0
    assert sizes[:4] == ["50.5x50.5", "100x100"] * 2
    assert (tmp_path / "log").read_text() == "plain1\n"
