# SPDX-License-Identifier: Apache-2.0
"""Print each note of the runs of a campaign once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.campaign import Here, run_campaign
from quipu.agent.campaign.file import read_campaign
from quipu.agent.campaign.repetition import LaunchOptions, RunFailed
from quipu.agent.campaign.task import Silent
from quipu.agent.launch.process import Ending

FILE = """
[experiment]
name = "heat"
command = "mpirun -n {p} ./heat"
[parameters]
p = [1, 2, 4]
"""


class Listener(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def failing(
    command: Sequence[str],
    parameters: Mapping[str, float],
    repetition: int | None,
    folder: Path | str,
    options: LaunchOptions,
) -> RunArchive:
    ranks = int(parameters["p"])
    options.say(f"computation without rates of its own: 2 call paths ({90.5 / ranks:.1f}% of it)")
    options.say(f"added a platform of {ranks} hosts")
    raise RunFailed("it ended with exit code 1", Ending(1, 1.0))


def test_notes_that_differ_in_a_share_are_said_once(tmp_path: Path) -> None:
    path, listener = tmp_path / "campaign.toml", Listener()
    path.write_text(FILE, encoding="utf-8")
    run_campaign(read_campaign(path), listener, execution=Here(failing))
    assert [note for note in listener.notes if note.startswith("computation")] == [
        "computation without rates of its own: 2 call paths (90.5% of it)"
    ]
    assert len([note for note in listener.notes if note.startswith("added")]) == 3
