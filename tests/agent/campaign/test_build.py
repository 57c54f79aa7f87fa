# SPDX-License-Identifier: Apache-2.0
"""The build line of a campaign is run by a shell."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from quipu.agent.campaign.build import build
from quipu.agent.campaign.campaign import CampaignResult
from quipu.agent.campaign.file import Campaign, read_campaign
from quipu.agent.campaign.refinement import Measuring
from quipu.agent.cli.main import run_command_line
from quipu.agent.launch.process import Ending
from quipu.modeling.errors import MeasurementError


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("'echo a > log; echo \"$KIND $QUIPU_OFF\" | tr a-z A-Z >> log && echo c >> log'", "a\nPLAIN 1\nc\n"),
        ("['sh', '-c', 'printf \"%s;\" \"$1\" > log', 'sh', 'a > b; c']", "a > b; c;"),
    ],
)
def test_a_build_line_means_what_it_means_in_a_shell(tmp_path: Path, line: str, written: str) -> None:
    """A list of words is one command without a shell."""
    path = tmp_path / "app.toml"
    path.write_text(f"[experiment]\ncommand = './app'\nbuild = {line}\n[environment]\nKIND = 'plain'\n")
    build(read_campaign(path), {"QUIPU_OFF": "1"})
    assert (tmp_path / "log").read_text() == written


def test_a_build_that_is_interrupted_says_so_by_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "heat.toml"
    path.write_text('[experiment]\ncommand = "./heat"\nbuild = "make heat"\n')
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        ending = Ending(-number, 1.0, stopped_by=number)
        monkeypatch.setattr("quipu.agent.campaign.build.run_process", lambda *_, ending=ending, **__: ending)
        with pytest.raises(MeasurementError, match=f"build: make heat: was stopped by {number.name}") as caught:
            build(read_campaign(path))
        assert caught.value.exit_code == code


def test_a_refinement_that_is_interrupted_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the program runs without instrumentation, and in the runs of an iteration."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "heat.toml"
    file.write_text('[experiment]\ncommand = "/bin/true {n}"\nbuild = "true"\n[parameters]\nn = [1, 2]\n[refine]\n')
    stopped = Ending(-signal.SIGINT, 1.0, stopped_by=signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr("quipu.agent.campaign.refinement.Measuring", lambda: Measuring(plain=lambda *_: stopped))
        assert run_command_line(["refine", str(file), "--quiet"]) == 130
    said = capsys.readouterr().err.splitlines()
    assert said == ["quipu: error: baseline n=1: true was stopped by SIGINT"]

    def interrupted(part: Campaign, *_: object, **__: object) -> CampaignResult:
        return CampaignResult(part.directory, 0, (), 1, True)

    monkeypatch.setattr("quipu.agent.campaign.refinement.run_campaign", interrupted)
    assert run_command_line(["refine", str(file), "--quiet"]) == 130
    said = capsys.readouterr().err.splitlines()
    folder = tmp_path / "heat" / "reference"
    assert said == [f"quipu: error: {folder}: interrupted; repeat the command to continue"]
