# SPDX-License-Identifier: Apache-2.0
"""The count classes of all runs of an experiment: measured programs of the corpus."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from programs_corpus import programs, unpack
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.class_vectors import ClassVectors
from quipu.modeling.counts.predictions import count_models
from quipu.modeling.experiment import Experiment


@pytest.fixture(scope="module")
def stencil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (program,) = programs(["prk_Stencil"])
    return unpack(program, tmp_path_factory.mktemp("corpus"))


def classes_of(experiment: Experiment) -> ClassVectors:
    assert experiment.classes is not None
    found = experiment.classes.vectors
    assert found is not None
    return found


def test_effort_is_the_sum_over_classes(stencil: Path) -> None:
    experiment = load_experiment(stencil / "runs")
    classes = classes_of(experiment)
    assert set(classes.effort) > {"blocks", "instructions", "flops", "bytes_loaded"}
    assert classes.ranks.tolist() == experiment.points[:, experiment.parameters.index("p")].tolist()
    for name, each in classes.effort.items():
        sums = np.zeros((len(experiment.tree), experiment.configurations))
        np.add.at(sums, classes.callpath, classes.counts * each[:, None])
        assert sums == pytest.approx(experiment.values[name][:, :, 0] * classes.ranks)


def test_a_class_is_within_another_of_its_call_path(stencil: Path) -> None:
    classes = classes_of(load_experiment(stencil / "runs"))
    inner = np.flatnonzero(classes.within >= 0)
    assert inner.size
    assert np.array_equal(classes.callpath[inner], classes.callpath[classes.within[inner]])
    assert {place.function for place in classes.places} >= {"main"}


def test_loops_predict_what_more_ranks_do_at_a_larger_size(stencil: Path) -> None:
    shutil.copytree(stencil / "counts", stencil / "all")
    shutil.copytree(stencil / "runs", stencil / "all", dirs_exist_ok=True)
    models = count_models(load_experiment(stencil / "all"))
    target = load_experiment(stencil / "target")
    assert models is not None
    point = dict(zip(target.parameters, target.points[0].tolist(), strict=True))
    main = next(path for path in range(len(target.tree)) if target.tree.label(path) == "main")
    for name in ("instructions", "flops", "bytes_loaded"):
        found = models.predict(point, name)[0]
        assert found.value == pytest.approx(float(target.values[name][main, 0, 0]), rel=1e-3)
        assert models.is_exact(name, 0)


def test_a_run_without_classes_has_none_of_them(stencil: Path, tmp_path: Path) -> None:
    shutil.copytree(stencil / "runs", tmp_path / "runs")
    first = sorted((tmp_path / "runs").iterdir())[0]
    for name in ("classes.parquet", "places.parquet"):
        (first / name).unlink()
    sums = first / "SHA256SUMS"
    kept = [
        line for line in sums.read_text().splitlines(keepends=True) if "classes." not in line and "places." not in line
    ]
    sums.write_text("".join(kept))
    experiment = load_experiment(tmp_path / "runs")
    assert experiment.classes is not None
    assert experiment.classes.vectors is None
    assert count_models(experiment) is not None


def test_classes_of_other_points_are_not_used(stencil: Path) -> None:
    """Classes of the whole experiment are not used for a part of its points."""
    whole = load_experiment(stencil / "runs").only({"visits", "blocks"})
    few = {name: values[:, 2:] for name, values in whole.values.items()}
    part = replace(
        whole, points=whole.points[2:], values=few, excess={}, rank_times=None, loaded=None, oversubscribed=None
    )
    models = count_models(part)
    assert models is not None
    assert len(models.models["blocks"]) == len(whole.tree)
