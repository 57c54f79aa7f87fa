# SPDX-License-Identifier: Apache-2.0
"""Models that one command keeps for the next."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from quipu.agent.load import kept_models
from quipu.agent.load.kept_models import analyze_once, models_folder
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.document import to_document
from quipu.modeling.experiment import CallTree, Experiment, Region
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf.options import Options
from quipu.modeling.slowest_rank import RankTimes

POINTS = np.array(list(product((1.0, 2.0, 4.0, 8.0), (10.0, 20.0, 40.0, 80.0))))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kept_models, "LEAST_SECONDS", 0.0)
    found = models_folder()
    assert found is not None
    return found


def program(name: str = "sort", seed: int = 1) -> Experiment:
    """Return a program whose time scatters, and whose models have notes, intervals and inexact forms."""
    p, n = POINTS.T
    chance = np.random.default_rng(seed)
    work = np.stack([p + n, np.floor(n * np.log2(n) * chance.uniform(0.9, 1.1, n.size)), n**2 / p * (p > 1)])
    visits = np.stack([p / p, n, (p > 1) * 1.0])
    values = {"visits": visits, "blocks": work, "time": work * chance.uniform(1.0, 1.2, work.shape) * 1e-9}
    tree = CallTree(tuple(Region(one, one) for one in ("main", name, "send")), np.arange(3), np.array([-1, 0, 0]))
    metrics = {metric: METRICS[metric] for metric in values}
    return Experiment("kept", ("p", "n"), POINTS, tree, metrics, {key: own[:, :, None] for key, own in values.items()})


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by the name of each experiment that is modelled from now on."""
    found: list[str] = []

    def model(experiment: Experiment, options: Options) -> Analysis:
        found.append(experiment.name)
        return analyze(experiment, options)

    monkeypatch.setattr(kept_models, "analyze", model)
    return found


def test_models_are_made_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = counted(monkeypatch)
    first, second = analyze_once(program()), analyze_once(program())
    assert made == ["kept"]
    assert to_document(first) == to_document(second)
    assert second.tree.label(1) == "main->sort"
    assert [one.suffix for one in folder.iterdir()] == [".json"]


def test_other_measurements_and_options_have_models_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = counted(monkeypatch)
    own = program()
    visits = own.values["visits"].copy()
    visits[1, 3, 0] += 1.0
    others = [
        (own, Options(aggregation="median")),
        (program("hash"), Options()),
        (program(seed=2), Options()),
        (replace(own, values={**own.values, "visits": visits}), Options()),
        (replace(own, oversubscribed=POINTS[:, 0] > 4), Options()),
        (replace(own, exact_times=True), Options()),
        (replace(own, rank_times=RankTimes(*np.ones((3, len(POINTS), 1)))), Options()),
    ]
    for experiment, options in (*others, (own, Options())):
        analyze_once(experiment, options)
    assert len(made) == len(others) + 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "quipu-models", "schema": 1}'])
def test_what_cannot_be_read_is_made_anew(folder: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = to_document(analyze_once(program()))
    (file,) = folder.iterdir()
    file.write_bytes(content)
    made = counted(monkeypatch)
    assert to_document(analyze_once(program())) == expected
    assert to_document(analyze_once(program())) == expected
    assert made == ["kept"]


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert len(analyze_once(program()).tree) == 3


def test_users_without_a_home_keep_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user has no name, so that ~ is undefined."""

    def nowhere(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "expanduser", nowhere)
    assert models_folder() is None
    assert len(analyze_once(program()).tree) == 3


def test_what_was_not_used_for_longest_makes_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analyze_once(program(seed=1))
    (first,) = folder.iterdir()
    analyze_once(program(seed=2))
    (second,) = set(folder.iterdir()) - {first}
    os.utime(second, (1.0, 1.0))
    monkeypatch.setattr(kept_models, "MOST_BYTES", int(2.5 * first.stat().st_size))
    analyze_once(program(seed=3))
    assert len(list(folder.iterdir())) == 2
    assert first.exists() and not second.exists()
