# SPDX-License-Identifier: Apache-2.0
"""`quipu.open`: what was measured, from Python, and the example of docs/python-api.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import quipu
from peers import needs
from quipu.agent.archive.run import RunArchive
from quipu.modeling.errors import EnvironmentProblem, FormatError, MeasurementError, ModelingError, UsageError
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


_EXAMPLES = re.findall(r"```python\n(.*?)```.*?```text\n(.*?)```", _PAGE.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize(("program", "printed"), _EXAMPLES, ids=range(len(_EXAMPLES)))
def test_the_examples_of_the_page(program: str, printed: str, heat: Path, tmp_path: Path) -> None:
    (tmp_path / "heat").symlink_to(heat)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == printed


@needs("pandas")
def test_tables_of_pandas(heat: Path) -> None:
    experiment = quipu.open(heat)
    assert isinstance(experiment, Experiment)
    frame = experiment.frame("blocks")
    assert frame.index.names == ["callpath", "p", "n", "repetition"] and list(frame.columns) == ["blocks"]
    assert len(frame) == np.count_nonzero(~np.isnan(experiment.values["blocks"])) == 5 * 25 * 2
    assert frame.loc[("main->sweep", 4, 64, 1), "blocks"] == 30 * 64**3 // 4
    inclusive = experiment.frame("blocks", inclusive=True)
    assert inclusive.loc[("main", 4, 64, 2), "blocks"] == 12 + 30 * 64**3 // 4 + 40
    with pytest.raises(ModelingError, match="has no metric 'flops'"):
        experiment.frame("flops")
    gaps = replace(
        experiment, values={"blocks": np.where(experiment.points[:, :1] < 3, np.nan, experiment.values["blocks"])}
    )
    assert set(gaps.frame("blocks").index.get_level_values("p")) == {4, 8, 16}

    run = quipu.open(heat / "p=4,n=64.r1")
    assert isinstance(run, RunArchive) and run.values is not None
    frame = run.frame("blocks", "time")
    assert frame.index.names == ["callpath", "rank", "thread"] and list(frame.columns) == ["blocks", "time"]
    assert frame["time"].sum() == pytest.approx(run.values.metrics["time"].sum())
    assert list(run.frame().columns) == list(run.metrics)
    statistics = run.statistics_frame("blocks")
    assert statistics.loc["main->sweep", "sum"] == frame["blocks"].groupby("callpath").sum()["main->sweep"]
    with pytest.raises(ModelingError, match="has no metric 'flops'; it has: visits, time"):
        run.frame("flops")
    few = replace(run, values=None)
    with pytest.raises(ModelingError, match="statistics over ranks only"):
        few.frame("blocks")
    assert few.statistics_frame("blocks").equals(statistics)


def test_without_pandas_one_error_names_the_extra(heat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    experiment = quipu.open(heat)
    assert isinstance(experiment, Experiment)
    with pytest.raises(EnvironmentProblem, match=r"pip install 'quipu\[notebook\]'"):
        experiment.frame("time")


def test_what_a_notebook_shows(heat: Path) -> None:
    experiment, run = quipu.open(heat), quipu.open(heat / "p=4,n=64.r1")
    assert isinstance(experiment, Experiment) and isinstance(run, RunArchive)
    hostile = "</table><script>alert(1)</script>\u202e\x1b[31m"
    for shown in (
        experiment,
        run,
        replace(experiment, name=hostile, notes=(hostile,)),
        replace(run, path=Path(hostile)),
    ):
        page = shown._repr_html_()
        ElementTree.fromstring(page)
        assert "<td>blocks</td>" in page and "script>" not in page.replace("script&gt;", "")
        assert "\u202e" not in page and "\x1b" not in page
    assert "<th>n</th><td>32, 64, 96, 128, 160</td>" in experiment._repr_html_()
    assert "<td>mpirun -n 4 ./heat 64</td>" in run._repr_html_()


def test_the_package_itself_imports_next_to_nothing() -> None:
    script = "import sys; before = set(sys.modules); import quipu; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    added = set(done.stdout.split())
    assert "quipu" in added and added.isdisjoint({"numpy", "pathlib", "psutil", "pyarrow", "rich", "typer"})
    assert not [name for name in added if name.startswith("quipu.")]
