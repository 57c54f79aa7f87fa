# SPDX-License-Identifier: Apache-2.0
"""The functions of `import quipu`, and the examples of docs/python-api.md that need no program."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import quipu
from peers import needs
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.campaign import CampaignResult
from quipu.agent.campaign.task import Outcome, Task
from quipu.modeling.errors import EnvironmentProblem, FormatError, MeasurementError, ModelingError, UsageError
from quipu.modeling.experiment import CallTree, Experiment, Region

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
    with pytest.raises(FormatError, match="the experiment does not exist"):
        quipu.open(tmp_path / "nothing")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(FormatError, match="has an unknown format"):
        quipu.open(tmp_path / "text")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MeasurementError, match="contains no run archive"):
        quipu.open(tmp_path / "empty")
    assert quipu_here("model", heat, "-o", "models.json").code == 0
    with pytest.raises(FormatError, match="contains models, not measurements"):
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
    with pytest.raises(ModelingError, match="has no metric 'flops'; choose one of: visits, time"):
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
    models = quipu.model(experiment)
    prediction = quipu.predict(models, {"p": 64, "n": 320}, "blocks")
    failed = Outcome(Task((4.0,), {"p": 4}, 1), 1.0, error="exit code 1")
    hostile = "</table><script>alert(1)</script>\u202e\x1b[31m"
    for shown in (
        experiment,
        run,
        replace(experiment, name=hostile, notes=(hostile,)),
        replace(run, path=Path(hostile)),
        models,
        replace(models, name=hostile, notes=(hostile,)),
        prediction,
        CampaignResult(Path(hostile), 1, (failed,)),
    ):
        page = shown._repr_html_()
        ElementTree.fromstring(page)
        assert len(repr(shown).splitlines()) == 1 and len(repr(shown)) < 300
        assert "script>" not in page.replace("script&gt;", "")
        assert "\u202e" not in page and "\x1b" not in page
    assert "<th>n</th><td>32, 64, 96, 128, 160</td>" in experiment._repr_html_()
    assert "<td>mpirun -n 4 ./heat 64</td>" in run._repr_html_()
    assert "<td>blocks</td>" in experiment._repr_html_() and "<td>blocks</td>" in run._repr_html_()
    assert "<td>main-&gt;sweep</td><td>blocks</td><td>30·n³/p</td>" in models._repr_html_()
    assert "<td>main-&gt;sweep</td><td>1.536e+07</td>" in prediction._repr_html_()


def test_a_notebook_shows_the_largest_call_paths_with_short_names(heat: Path) -> None:
    models = quipu.model(heat)
    sweep = next(path for path in range(len(models.tree)) if models.tree.name(path) == "sweep")
    many = 60
    argument = "fe::Matrix<double, fe::Layout<fe::RowMajor, 64>>&"
    regions = tuple(Region(f"f{at}", f"void fe::Solver<{at}>::sweep({argument}, {argument})") for at in range(many))
    tree = CallTree(regions, np.arange(many), np.full(many, -1))
    entries = {metric: (own[sweep],) * many for metric, own in models.exclusive.items()}
    models = replace(models, tree=tree, exclusive=entries, counts=None, times=None)
    page = models._repr_html_()
    assert "<td>fe::Solver&lt;0&gt;::sweep(…)</td>" in page and "RowMajor" not in page
    assert page.count("<td>blocks</td>") == 50 and "the 50 of 60 call paths" in page
    assert repr(tree) == "<CallTree: 60 call paths, 60 regions>"
    assert isinstance(entries["blocks"][0].model, quipu.Model)
    assert entries["blocks"][0].model._repr_latex_().startswith("$30")


def names_after(script: str) -> set[str]:
    """Return the modules that a script imports, in an interpreter of its own."""
    script = f"import sys; before = set(sys.modules)\n{script}\nprint(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_itself_imports_next_to_nothing() -> None:
    added = names_after("import quipu")
    assert "quipu" in added and added.isdisjoint({"numpy", "pathlib", "psutil", "pyarrow", "rich", "typer"})
    assert not [name for name in added if name.startswith("quipu.")]


def test_nothing_of_the_interface_imports_the_command_line(heat: Path) -> None:
    script = f"""import quipu
for name in quipu.__all__:
    getattr(quipu, name)
models = quipu.model({str(heat)!r})
quipu.predict(models, {{"p": 32, "n": 64}}, "blocks")
try:
    quipu.run("there-is-no-such-program")
except quipu.MeasurementError:
    pass
try:
    quipu.campaign("there-is-no-such-file")
except quipu.FormatError:
    pass
"""
    added = names_after(script)
    assert "quipu.agent.campaign.repetition" in added and "quipu.agent.campaign.declared_run" in added
    assert [name for name in added if name.startswith(("quipu.agent.cli", "typer", "click"))] == []


def test_the_interface_is_complete() -> None:
    assert sorted(quipu.__all__) == quipu.__all__ and set(quipu.__all__) <= set(dir(quipu))
    assert sorted(name for names in quipu._PLACES.values() for name in names) == quipu.__all__
    functions: list[Any] = [quipu.open, quipu.run, quipu.campaign, quipu.model, quipu.predict]
    for function in functions:
        answer = inspect.get_annotations(function)["return"]
        assert set(re.findall(r"\w+", answer)) <= set(quipu.__all__), answer
    family = [getattr(quipu, name) for name in quipu.__all__ if isinstance(getattr(quipu, name), type)]
    errors = {one for one in family if issubclass(one, Exception)}
    assert {quipu.RunFailed, quipu.UsageError} < errors and all(issubclass(one, quipu.QuipuError) for one in errors)
    with pytest.raises(AttributeError, match="no attribute 'mesure'"):
        quipu.mesure  # type: ignore[attr-defined]  # noqa: B018


def test_models_and_predictions_from_python(heat: Path, tmp_path: Path, quipu_here: Quipu) -> None:
    experiment = quipu.open(heat)
    assert isinstance(experiment, Experiment)
    assert quipu_here("model", heat, "-o", "models.json").code == 0
    point: dict[str, Any] = {"p": np.int64(64), "n": np.float64(320)}
    for source in (heat, str(heat), experiment, quipu.model(experiment), tmp_path / "models.json"):
        prediction = quipu.predict(source, point, "blocks")
        assert prediction.point == {"p": 64, "n": 320}
        assert prediction.ranking()[0].value == pytest.approx(30 * 320**3 / 64)
    assert quipu.model(heat, "sum").over_ranks == "sum"
    assert "blocks 1.536e+07 (90 % interval" in repr(quipu.predict(experiment, point, "blocks"))


@pytest.mark.parametrize(
    ("point", "metric", "message"),
    [
        ({"p": 4}, "time", "at: no value for n; write at p=NUMBER,n=NUMBER"),
        ({"p": 4, "n": 2, "q": 1}, "time", "at: no parameter q in this experiment; it has: p, n"),
        ({"p": 4, "n": 0}, "time", "at: n=0: the number must be above 0"),
        ({"p": 4.5, "n": 2}, "time", "at: p is the number of ranks and must be a whole number, not 4.5"),
        ({"p": "4", "n": 2}, "time", "parameter p: '4' is not a finite number"),
        ({"p": 4, "n": float("nan")}, "time", "parameter n: nan is not a finite number"),
        ({"p": 4, "n": 2}, "flops", "no models of metric 'flops'"),
    ],
)
def test_points_that_do_not_fit(point: dict[str, float], metric: str, message: str, heat: Path) -> None:
    with pytest.raises(quipu.QuipuError, match=re.escape(message)):
        quipu.predict(heat, point, metric)


def test_calls_that_do_not_fit(heat: Path, tmp_path: Path) -> None:
    run = quipu.open(heat / "p=4,n=64.r1")
    with pytest.raises(UsageError, match="a RunArchive cannot be modeled"):
        quipu.model(run)  # type: ignore[arg-type]
    experiment = quipu.open(heat)
    assert isinstance(experiment, Experiment)
    with pytest.raises(UsageError, match="over_ranks: these values are combined already"):
        quipu.model(experiment, "max")
    with pytest.raises(UsageError, match="command: is empty"):
        quipu.run("", output=tmp_path)
    with pytest.raises(UsageError, match="No closing quotation"):
        quipu.run("'", output=tmp_path)
    with pytest.raises(UsageError, match="counts: such a run reads no clock"):
        quipu.run("true", output=tmp_path, counts=True, functions=True)
    with pytest.raises(UsageError, match="is not a valid name of a parameter"):
        quipu.run("true", {"a b": 1}, output=tmp_path)
    with pytest.raises(quipu.RunFailed, match="ended with exit code 1"):
        quipu.run(["false"], output=tmp_path)
    with pytest.raises(UsageError, match="stop_on_error and keep_going"):
        quipu.campaign("heat.toml", stop_on_error=True, keep_going=True)


@needs("pandas")
def test_tables_of_models_and_predictions(heat: Path) -> None:
    models = quipu.model(heat)
    frame = models.frame("blocks")
    assert list(frame.columns) == ["model", "error", "basis", "note"]
    assert frame.loc["main->sweep", "model"] == "30·n³/p" and frame.loc["main->sweep", "error"] < 1e-6
    ranking = quipu.predict(models, {"p": 64, "n": 320}, "blocks").frame()
    assert list(ranking.columns) == ["value", "lower", "upper", "share", "model", "basis", "note"]
    assert ranking.index[0] == "main->sweep" and ranking["share"].sum() == pytest.approx(1)
