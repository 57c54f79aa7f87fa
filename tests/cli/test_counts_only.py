# SPDX-License-Identifier: Apache-2.0
"""Count-only runs: models of effort use them, and times do not."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from quipu.agent.cli.main import run_command_line
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.document import from_document, to_document
from quipu.modeling.evaluation import evaluate
from quipu.modeling.models import of_time
from quipu.modeling.pmnf.model import Model

from .conftest import Quipu
from .runs import write_counts, write_run

SIZES = (32, 64, 96, 128)
AT = "p=64,n=256"


def measure(folder: Path, with_counts: bool) -> Path:
    """Write timed runs of 1 to 8 ranks; with_counts: also count-only runs of more, and one at a point with times."""
    for p in (1, 2, 4, 8):
        for n in SIZES:
            for repetition in (1, 2):
                write_run(folder, p, n, repetition)
    if with_counts:
        for p, n in ((16, 32), (32, 32), (64, 32), (64, 64)):
            write_counts(folder, p, n)
        write_counts(folder, 4, 64, 3)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Experiments of timed runs alone, and of the same and count-only runs."""
    timed, everything = (tmp_path_factory.mktemp(name) / "heat" for name in ("timed", "all"))
    return measure(timed, False), measure(everything, True)


@pytest.fixture(scope="module")
def analyses(folders: tuple[Path, Path]) -> tuple[Analysis, Analysis]:
    alone, both = map(load_experiment, folders)
    return analyze(alone), analyze(both)


def of_metric(analysis: Analysis, metric: str) -> dict[str, object]:
    """Return the models of a metric by call path."""
    models = to_document(analysis)["models"][metric]
    labels = [analysis.tree.label(path) for path in range(len(analysis.tree))]
    return dict(zip(labels, models, strict=True))


def test_timed_runs_are_an_experiment_within(folders: tuple[Path, Path]) -> None:
    alone, both = map(load_experiment, folders)
    assert alone.timed is None and both.timed is not None
    within = both.of_time
    for field in fields(alone):
        one, other = getattr(alone, field.name), getattr(within, field.name)
        if field.name in ("values", "excess"):
            assert one.keys() == other.keys()
            for name in one:
                np.testing.assert_array_equal(one[name], other[name])
        elif field.name not in ("tree", "rank_times") and field.compare:
            assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other, field.name
    assert [both.tree.label(path) for path in both.timed.paths.tolist()] == [
        alone.tree.label(path) for path in range(len(alone.tree))
    ]
    assert both.configurations == alone.configurations + 4
    assert np.isnan(both.values["time"][:, both.points[:, 0] > 8]).all()
    assert np.isfinite(both.values["blocks"]).any(axis=2).all()


def test_models_of_time_are_those_of_the_timed_runs(analyses: tuple[Analysis, Analysis]) -> None:
    alone, both = analyses
    expected, found = of_metric(alone, "time"), of_metric(both, "time")
    barrier = found.pop("main->MPI_Barrier")
    assert isinstance(barrier, dict) and "no_model" in barrier
    assert found == expected
    assert (both.run_scatter, both.quality, both.oversubscribed) == (alone.run_scatter, alone.quality, ())
    assert both.timed_ranges == alone.ranges == ((1, 8), (32, 128))
    assert both.ranges == ((1, 64), (32, 128))


def test_models_of_effort_use_all_runs(analyses: tuple[Analysis, Analysis]) -> None:
    both = analyses[1]
    for name in ("blocks", "visits", "bytes_sent", "comm_size"):
        ranges = {entry.model.ranges for entry in both.models(name) if isinstance(entry.model, Model)}
        assert ((1, 64), (32, 128)) in ranges
    point = {"p": 64, "n": 128}
    assert not evaluate(both, point, "blocks").extrapolates
    assert evaluate(both, point, "time").beyond == {"p": 8.0}


def test_a_file_of_models_keeps_both_ranges(analyses: tuple[Analysis, Analysis]) -> None:
    both = analyses[1]
    back = from_document(json.loads(json.dumps(to_document(both))))
    assert (back.ranges, back.timed_ranges) == (both.ranges, both.timed_ranges)


def test_models_over_the_call_paths_of_the_timed_runs(
    folders: tuple[Path, Path], analyses: tuple[Analysis, Analysis]
) -> None:
    experiment, analysis = of_time(load_experiment(folders[1]), analyses[1])
    assert len(analysis.tree) == len(experiment.tree) == len(analyses[0].tree)
    assert of_metric(analysis, "time") == of_metric(analyses[0], "time")


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", "--at", AT),
        ("suggest", "--budget", "300%", "--target", AT, "--values", "p=1,2,4,8,16"),
        ("kernels", "--at", AT, "--size", "n"),
        ("predict", "--at", AT),
    ],
    ids=lambda words: words[0],
)
def test_what_is_said_of_time_is_the_same(
    quipu_here: Quipu, folders: tuple[Path, Path], words: tuple[str, ...]
) -> None:
    alone, both = (quipu_here(words[0], folder, *words[1:], "--json") for folder in folders)
    assert (alone.code, both.code) == (0, 0), alone.err + both.err
    expected, found = json.loads(alone.out), json.loads(both.out)
    for document in (expected, found):
        document.pop("date", None)
    if words[0] == "predict":  # the call path that only count-only runs reach has no time
        assert found["ranking"] == expected["ranking"]
    else:
        assert found == expected


def test_a_filter_is_the_same(folders: tuple[Path, Path], tmp_path: Path) -> None:
    texts = []
    for number, folder in enumerate(folders):
        file = tmp_path / f"{number}.filter"
        assert run_command_line(["filter", str(folder), "--at", AT, "-o", str(file)]) == 0
        texts.append([line for line in file.read_text().splitlines() if not line.startswith("#")])
    assert texts[0] == texts[1]


def test_views_show_count_only_runs(quipu_here: Quipu, folders: tuple[Path, Path], tmp_path: Path) -> None:
    for p in (1, 2):
        write_run(tmp_path / "few", p, 32)
    write_counts(tmp_path / "few", 16, 32)
    shown = quipu_here("show", tmp_path / "few")
    assert shown.code == 0
    assert "p=2, n=32, 1 repetition" in shown.out  # the last with times
    assert len([line for line in shown.out.splitlines() if line.endswith("counts only")]) == 1
    of_counts = quipu_here("show", folders[1], "--at", "p=64,n=32")
    assert of_counts.code == 0 and "MPI_Barrier" in of_counts.out and "oversubscribed" not in of_counts.out
    assert quipu_here("report", folders[1], "-o", tmp_path / "report.html", "--at", AT).code == 0
    assert quipu_here("model", folders[1]).code == 0
    assert quipu_here("diff", *folders).code == 0
    assert quipu_here("export", folders[1], "-o", tmp_path / "out.jsonl").code == 0
