"""`quipu.open`: what was measured, from Python, and the example of docs/python-api.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import quipu
from quipu.agent.archive.run import RunArchive
from quipu.modeling.errors import FormatError, MeasurementError, UsageError
from quipu.modeling.experiment import Experiment

from .conftest import Quipu

_PAGE = Path(__file__).parents[2] / "docs/python-api.md"


def test_a_run_and_an_experiment(heat: Path) -> None:
    run = quipu.open(heat / "p=4,n=64.r1")
    assert isinstance(run, RunArchive) and run.values is not None
    assert set(run.values.rank.tolist()) == {0, 1, 2, 3}
    experiment = quipu.open(str(heat))
    assert isinstance(experiment, Experiment)
    assert experiment.parameters == ("p", "n")
    assert experiment.configurations == 25
    summed = quipu.open(heat, over_ranks="sum")
    assert isinstance(summed, Experiment)
    assert np.nansum(summed.values["blocks"]) > np.nansum(experiment.values["blocks"])


def test_a_file_of_another_tool(heat: Path, tmp_path: Path, quipu_here: Quipu) -> None:
    assert quipu_here("export", heat, "-o", "heat.jsonl").code == 0
    experiment = quipu.open(tmp_path / "heat.jsonl")
    assert isinstance(experiment, Experiment) and experiment.configurations == 25
    with pytest.raises(UsageError):
        quipu.open(tmp_path / "heat.jsonl", over_ranks="max")


def test_what_cannot_be_opened(tmp_path: Path, heat: Path, quipu_here: Quipu) -> None:
    with pytest.raises(FormatError, match="there is no such experiment"):
        quipu.open(tmp_path / "nothing")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(FormatError, match="in no format that Quipu reads"):
        quipu.open(tmp_path / "text")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MeasurementError, match="holds no run archive"):
        quipu.open(tmp_path / "empty")
    assert quipu_here("model", heat, "-o", "models.json").code == 0
    with pytest.raises(FormatError, match="holds models, not measurements"):
        quipu.open(tmp_path / "models.json")
    shutil.copytree(heat / "p=4,n=64.r1", tmp_path / "broken")
    (tmp_path / "broken/run.json").write_text("{")
    with pytest.raises(FormatError, match=r"run\.json"):
        quipu.open(tmp_path / "broken")


def test_the_example_of_the_page(heat: Path, tmp_path: Path) -> None:
    text = _PAGE.read_text(encoding="utf-8")
    program, printed = re.findall(r"```(?:python|text)\n(.*?)```", text, re.S)[:2]
    (tmp_path / "heat").symlink_to(heat)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == printed


def test_the_package_itself_imports_next_to_nothing() -> None:
    script = "import sys; before = set(sys.modules); import quipu; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    added = set(done.stdout.split())
    assert "quipu" in added and added.isdisjoint({"numpy", "pathlib", "psutil", "pyarrow", "rich", "typer"})
    assert not [name for name in added if name.startswith("quipu.")]
