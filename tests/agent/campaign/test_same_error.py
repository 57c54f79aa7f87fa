# SPDX-License-Identifier: Apache-2.0
"""Campaigns that end early: no run can succeed."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.campaign import CampaignResult, Here, run_campaign
from quipu.agent.campaign.file import read_campaign
from quipu.modeling.errors import FormatError, MeasurementError, UsageError

HEAT = """
[experiment]
name = "heat"
command = "./heat {p} {n}"
[parameters]
p = [1, 2]
n = [1, 2, 3, 4]
"""


def campaign(folder: Path, text: str, errors: Mapping[int, Sequence[str]], keep_going: bool = False) -> CampaignResult:
    """Run a campaign in which all runs fail. errors: the errors of successive runs, by p."""
    left = {p: list(several) for p, several in errors.items()}

    def launch(*given: Any) -> RunArchive:
        raise MeasurementError(left[int(given[1]["p"])].pop(0))

    file = folder / "heat.toml"
    file.write_text(text)
    return run_campaign(read_campaign(file), execution=Here(launch), keep_going=keep_going)


def test_runs_that_fail_alike_at_their_start_stop_the_campaign(tmp_path: Path) -> None:
    """The campaign stops after five runs, because the first five cover two values of each parameter.

    Errors count as the same although folders and numbers of ranks in them differ.
    """
    errors = {p: [f"heat crashed, {p} ranks; see /runs/p={p},n={n}.r1" for n in range(4)] for p in (1, 2)}
    result = campaign(tmp_path, HEAT, errors)
    assert (len(result.outcomes), result.not_started, result.exit_code) == (5, 3, 1)
    assert result.stopped.startswith("stopped: 5 runs in a row failed at their start with the same error (heat crashed")
    every = campaign(tmp_path, HEAT, errors, keep_going=True)
    assert (len(every.failed), every.not_started, every.stopped) == (8, 0, "")


@pytest.mark.parametrize(("first", "second"), [("too few ranks", "too little memory"), ("exit code 1", "exit code 2")])
def test_runs_that_fail_for_one_value_of_a_parameter_do_not(tmp_path: Path, first: str, second: str) -> None:
    result = campaign(tmp_path, HEAT, {1: [first] * 4, 2: [second] * 4})
    assert (len(result.failed), result.not_started, result.stopped) == (8, 0, "")


@pytest.mark.parametrize("keep_going", [False, True])
@pytest.mark.parametrize("reason", ["No space left on device", "Disk quota exceeded"])
def test_a_full_disk_stops_the_campaign_at_its_first_run(tmp_path: Path, reason: str, keep_going: bool) -> None:
    errors = {1: ["crashed", f"the run archive could not be written: {reason}", ""]}
    result = campaign(tmp_path, HEAT, errors, keep_going)
    assert (len(result.failed), result.not_started, result.exit_code) == (2, 6, 1)
    assert result.stopped.startswith(f"stopped: a disk is full ({reason}); free space and repeat the command")


def test_a_program_that_found_no_room_stops_the_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program may print any message, so the campaign checks the free space of the disk."""
    monkeypatch.setattr("os.statvfs", lambda folder: SimpleNamespace(f_blocks=9, f_bavail=0, f_flag=0))
    result = campaign(tmp_path, HEAT, {1: ["heat ended with exit code 1"]})
    assert (len(result.failed), result.not_started) == (1, 7)
    assert result.stopped.startswith(f"stopped: the disk of {tmp_path / 'heat'} is full; free space")


def test_a_read_only_file_system_is_not_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image of a container has no free blocks, whatever happens to the program."""
    monkeypatch.setattr("os.statvfs", lambda folder: SimpleNamespace(f_blocks=9, f_bavail=0, f_flag=os.ST_RDONLY))
    errors = {p: [f"heat ended with exit code {n}" for n in range(1, 5)] for p in (1, 2)}
    result = campaign(tmp_path, HEAT, errors)
    assert (len(result.failed), result.not_started, result.stopped) == (8, 0, "")


def test_a_disk_without_room_for_the_lock_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.pwrite", full)
    with pytest.raises(MeasurementError, match=r"heat/\.campaign\.lock: cannot be written: No space left on device"):
        campaign(tmp_path, HEAT, {})


def test_rates_are_read_before_the_first_run(tmp_path: Path) -> None:
    text = HEAT.replace("./heat {p}", "./heat").replace(
        "[parameters]", 'launcher = "smpi"\nranks = "{p}"\ncompute = "effort"\nrates = "m.rates"\n[parameters]'
    )
    with pytest.raises(FormatError, match=r"m\.rates: is missing"):
        campaign(tmp_path, text, {})


def test_a_filter_that_cannot_be_read_is_one_error_before_any_run(tmp_path: Path) -> None:
    """The build may write the filter, so the campaign checks it after the build."""
    text = HEAT.replace("[parameters]", 'filter = "heat.filter"\nbuild = "echo EXCLUDE > heat.filter"\n[parameters]')
    with pytest.raises(UsageError, match=r"heat\.filter: cannot read the filter file: No such file or directory"):
        campaign(tmp_path, text.replace("echo EXCLUDE >", "echo"), {})
    with pytest.raises(FormatError, match=r"heat\.filter:1: 'EXCLUDE' outside of a block"):
        campaign(tmp_path, text, {})
