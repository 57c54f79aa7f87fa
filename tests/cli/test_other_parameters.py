# SPDX-License-Identifier: Apache-2.0
"""`quipu run` warns if the runs of the experiment have other parameters."""

from __future__ import annotations

from pathlib import Path

from quipu.agent.campaign.before import other_parameters

from .runs import write_run


def test_a_run_with_other_parameters(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    assert other_parameters(folder, {"p": 2.0}) == ""
    write_run(folder, 2, 32)
    assert other_parameters(folder, {"n": 8.0, "p": 4.0}) == ""
    found = other_parameters(folder, {"p": 4.0})
    assert "p=2,n=32.r1 has n, p, this run has p" in found and found.endswith("[other-parameters]")


def test_a_folder_without_readable_runs(tmp_path: Path) -> None:
    (tmp_path / "runs" / "broken").mkdir(parents=True)
    (tmp_path / "runs" / "broken" / "run.json").write_text("{", encoding="utf-8")
    assert other_parameters(tmp_path / "runs", {"p": 2.0}) == ""
