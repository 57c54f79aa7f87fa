# SPDX-License-Identifier: Apache-2.0
"""What is written for Extra-P, Extra-P opens, with the same numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import CallTree, Experiment, Metric, Region
from quipu.report.formats.extrap import Written, format_json, format_json_lines, parse_json, parse_json_lines

from . import real_extrap
from .planted import planted
from .test_extrap_reading import rows_of, same

Parse = Callable[[str, object, str], Experiment]
FORMATS = [("x.json", format_json, parse_json), ("x.jsonl", format_json_lines, parse_json_lines)]


def small(values: np.ndarray, metric: str = "time") -> Experiment:
    """Return an experiment over p with main -> f, main -> g and values of (paths, configurations, repetitions)."""
    regions = (Region("main", "main"), Region("f", "f"), Region("g", "g"))
    tree = CallTree(regions, np.array([0, 1, 2]), np.array([-1, 0, 0]))
    points = np.arange(1.0, values.shape[1] + 1).reshape(-1, 1) * 2
    return Experiment("small", ("p",), points, tree, {metric: Metric(metric, "s")}, {metric: values})


@pytest.mark.parametrize(("name", "write", "parse"), FORMATS)
def test_extrap_opens_what_is_written(name: str, write: Callable[..., Written], parse: Parse, tmp_path: Path) -> None:
    experiment, _ = planted()
    path = tmp_path / name
    written = write(experiment)
    path.write_text(written.text, encoding="utf-8")
    theirs = real_extrap.read("json", path)
    same(experiment, theirs, list(experiment.tree.unique_labels))
    assert written.left_out == ()
    assert rows_of(parse(written.text, path, "heat")) == rows_of(experiment, list(experiment.tree.unique_labels))


@pytest.mark.parametrize("write", [format_json, format_json_lines])
def test_extrap_opens_inclusive_values_and_gaps(write: Callable[..., Written], tmp_path: Path) -> None:
    values = np.arange(24, dtype=float).reshape(3, 4, 2) + 1
    values[0] = np.nan  # main itself was not measured
    values[2, 1] = np.nan  # g was not at p=4
    values[:, 3] = np.nan  # nothing was at p=8
    values[1, 0, 1] = np.nan  # one repetition less at p=2
    exclusive, inclusive = write(small(values)), write(small(values), True)
    path = tmp_path / "x.json"
    path.write_text(exclusive.text, encoding="utf-8")
    theirs = real_extrap.read("json", path)
    assert [row[:3] + row[6:] for row in theirs["rows"]] == [
        ["main->f", "time", [2], 1],
        ["main->f", "time", [4], 2],
        ["main->f", "time", [6], 2],
    ]
    assert exclusive.left_out == ("1 point where nothing was measured", "time of main->g: not measured at every point")
    path.write_text(inclusive.text, encoding="utf-8")
    assert {row[0] for row in real_extrap.read("json", path)["rows"]} == {"main", "main->f"}


@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.just(3), st.integers(1, 4), st.integers(1, 3)),
        elements=st.floats(allow_infinity=False),
    )
)
def test_what_is_written_reads_back(values: np.ndarray) -> None:
    experiment = small(values)
    complete = ~np.isnan(values).all(axis=2)
    complete = complete[:, complete.any(axis=0)]
    if not complete.size or not complete.all(axis=1).any():
        with pytest.raises(ModelingError, match="Extra-P needs a call path that was measured at every point"):
            format_json(experiment)
        return
    for _, write, parse in FORMATS:
        back = parse(write(experiment).text, "x", "x")
        for node in range(len(back.tree)):
            label = back.tree.label(node)
            ours = values[["main", "main->f", "main->g"].index(label)]
            for point, single in zip(back.points, back.values["time"][node], strict=True):
                expected = ours[int(point[0]) // 2 - 1]
                known = single[~np.isnan(single)]
                assert known.size == 0 or known.tolist() == expected[~np.isnan(expected)].tolist()


def test_regions_that_look_alike_get_their_linker_names() -> None:
    regions = (Region("main", "main"), Region("_Z1fi", "f"), Region("_Z1fd", "f"))
    tree = CallTree(regions, np.array([0, 1, 2, 1]), np.array([-1, 0, 0, 1]))
    assert list(tree.unique_labels) == ["main", "main->f [_Z1fi]", "main->f [_Z1fd]", "main->f [_Z1fi]->f"]


def test_numbers_keep_all_digits_and_whole_points_are_whole() -> None:
    values = np.full((3, 1, 1), 0.1 + 0.2)
    content = json.loads(format_json(small(values)).text)
    assert content["measurements"]["main"]["time"] == [{"point": [2], "values": [0.30000000000000004]}]


def test_an_experiment_without_parameters_or_values() -> None:
    tree = CallTree((Region("main", "main"),), np.array([0]), np.array([-1]))
    empty = Experiment("x", (), np.zeros((1, 0)), tree, {}, {})
    with pytest.raises(ModelingError, match="no parameters"):
        format_json(empty)
    with pytest.raises(ModelingError, match="at every point"):
        format_json_lines(small(np.full((3, 2, 1), np.nan)))


@pytest.mark.parametrize(("name", "write", "parse"), FORMATS)
def test_arrows_in_names_separate_for_nobody(
    name: str, write: Callable[..., Written], parse: Parse, tmp_path: Path
) -> None:
    names = ("main", "decltype(box->size()) area<Box>(Box*)", "Iterator::operator->() const")
    regions = tuple(Region(one, one) for one in names)
    tree = CallTree(regions, np.array([0, 1, 2]), np.array([-1, 0, 1]))
    values = np.arange(24.0).reshape(3, 4, 2)
    metrics = {"time": Metric("time", "s")}
    experiment = Experiment("x", ("p",), np.array([[2.0], [4.0], [8.0], [16.0]]), tree, metrics, {"time": values})
    path = tmp_path / name
    path.write_text(write(experiment).text, encoding="utf-8")
    again = parse(path.read_text(encoding="utf-8"), path, "x")
    assert [again.tree.key(node) for node in range(len(again.tree))] == [names[:1], names[:2], names]
    assert again.values["time"].tolist() == values.tolist()
    theirs = real_extrap.read("json", path)
    same(experiment, theirs, list(tree.unique_labels))
    assert max(label.count("->") for label in tree.unique_labels) == 2
