# SPDX-License-Identifier: Apache-2.0
"""Campaigns with more ranks than processors print a warning with these points before the first run."""

from __future__ import annotations

from pathlib import Path

import pytest
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.campaign import Here, run_campaign
from quipu.agent.campaign.file import Campaign, read_campaign
from quipu.agent.campaign.oversubscription import oversubscription_warning
from quipu.agent.campaign.task import Silent, Task

HEAT = """
[experiment]
command = "mpirun -n {p} ./heat {n} {p}"
timeout = 60
[parameters]
p = [1, 2, 4]
n = [50, 100]
"""


def declare(folder: Path, text: str = HEAT) -> Campaign:
    path = folder / "heat.toml"
    path.write_text(text)
    return read_campaign(path)


@pytest.mark.parametrize(
    ("old", "new", "processors", "named"),
    [
        (
            "",
            "",
            2,
            "2 of 6 points have more ranks or threads than the 2 processors of this machine (p=4,n=50; p=4,n=100)",
        ),
        ("", "", 1, "4 of 6 points have more ranks or threads than the 1 processors"),
        ("", "", 4, ""),
        ("timeout = 60", 'clock = "none"', 1, ""),
        ("mpirun -n {p}", "mpirun -n {p} --host a,b", 1, ""),
        ("mpirun -n {p}", "smpirun -np {p} -platform c.xml", 1, ""),
        ("mpirun -n {p} ./heat", "./heat {p}", 1, ""),
    ],
)
def test_points_with_more_ranks_than_processors_are_named(
    tmp_path: Path, old: str, new: str, processors: int, named: str
) -> None:
    campaign = declare(tmp_path, HEAT.replace(old, new))
    program = tmp_path / "heat"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    versions = {"mpirun": "mpirun (Open MPI) 4.1.4", "smpirun": "SimGrid version 3.32"}
    warning = oversubscription_warning(
        campaign, campaign.points, processors, lambda path, _: versions[path.name.split(".")[0]]
    )
    assert named in warning and bool(named) == bool(warning)
    assert not named or 'launcher = "smpi"' in warning


def test_the_warning_comes_before_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []

    class Said(Silent):
        def note(self, text: str) -> None:
            lines.append(text)

        def started(self, task: Task) -> None:
            lines.append(task.name)

    monkeypatch.setattr("quipu.agent.campaign.campaign.oversubscription_warning", lambda *_: "warning: crowded")
    with pytest.raises(KeyboardInterrupt):
        run_campaign(declare(tmp_path), Said(), execution=Here(_interrupted))
    assert lines[:2] == ["warning: crowded", "p=1,n=50 (repetition 1)"]


def _interrupted(*_: object) -> RunArchive:
    raise KeyboardInterrupt
