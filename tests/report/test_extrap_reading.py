# SPDX-License-Identifier: Apache-2.0
"""Every format of Extra-P is read, and reads as Extra-P itself reads it."""

from __future__ import annotations

import gzip
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from quipu.modeling.errors import FormatError, UsageError
from quipu.modeling.experiment import Experiment, RegionKind
from quipu.modeling.metrics import METRICS
from quipu.report.formats.detect import format_of, read_experiment
from quipu.report.formats.extrap import parse_json, parse_json_lines, parse_talpas, parse_text

from . import extrap_samples, real_extrap

Row = tuple[str, str, tuple[float, ...]]


def rows_of(experiment: Experiment, labels: list[str] | None = None) -> dict[Row, tuple[float, float, float, int]]:
    """Return mean, minimum, maximum and number of repetitions of all that was measured."""
    found = {}
    names = labels or [experiment.tree.label(path) for path in range(len(experiment.tree))]
    for metric, values in experiment.values.items():
        for path in range(len(experiment.tree)):
            for where, point in enumerate(experiment.points):
                single = values[path, where][~np.isnan(values[path, where])]
                if single.size:
                    key = (names[path], metric, tuple(float(x) for x in point))
                    found[key] = (float(single.mean()), float(single.min()), float(single.max()), single.size)
    return found


def same(ours: Experiment, theirs: dict[str, object], labels: list[str] | None = None) -> None:
    """Check that Extra-P read the same numbers."""
    assert list(ours.parameters) == theirs["parameters"]
    rows = theirs["rows"]
    assert isinstance(rows, list)
    expected = {(row[0], row[1], tuple(map(float, row[2]))): tuple(row[3:]) for row in rows}
    found = rows_of(ours, labels)
    assert found.keys() == expected.keys()
    for key, numbers in expected.items():
        assert found[key] == pytest.approx(numbers, rel=1e-12), key


@pytest.mark.parametrize("kind", extrap_samples.ALL)
def test_each_format_reads_as_in_extrap(kind: str, tmp_path: Path) -> None:
    suffix, text, reader = extrap_samples.ALL[kind]
    path = tmp_path / f"heat{suffix}"
    path.write_text(text, encoding="utf-8")
    experiment = read_experiment(path)
    same(experiment, real_extrap.read(reader, path))
    assert experiment.name == "heat"
    assert experiment.points.tolist() == [[4, 10], [4, 20], [8, 10]]
    assert experiment.values["time"][1].tolist() == [[10, 11], [30, 31], [20, 21]]
    assert np.isnan(experiment.values["visits"][0]).all()
    assert experiment.metric("visits").is_effort
    assert not experiment.metric("time").is_effort


@pytest.mark.parametrize("keep", [True, False])
def test_experiments_that_extrap_saved(keep: bool, tmp_path: Path) -> None:
    path, saved = tmp_path / "heat.txt", tmp_path / "heat.extra-p"
    path.write_text(extrap_samples.TEXT, encoding="utf-8")
    theirs = real_extrap.read("text", path, saved, keep)
    experiment = read_experiment(saved)
    if keep:
        same(experiment, theirs)
        assert experiment.values["time"][1].tolist() == [[10, 11], [30, 31], [20, 21]]
    else:
        assert experiment.values["time"][1].tolist() == [[10.5], [30.5], [20.5]]
        assert "only means" in experiment.notes[0]


@pytest.mark.parametrize("kind", extrap_samples.ALL)
def test_content_tells_the_format_and_gzip_is_taken_away(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "measured.dat.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + extrap_samples.ALL[kind][1].replace("\n", "\r\n").encode()))
    experiment = read_experiment(path)
    assert experiment.name == "measured"
    assert experiment.values["time"][1].tolist() == [[10, 11], [30, 31], [20, 21]]


def test_formats_by_name_and_content() -> None:
    assert format_of("{\n") == "Extra-P JSON"
    assert format_of("{", "x.jsonl.gz") == "Extra-P JSON Lines"
    assert format_of("[1]", "x.json") == "Extra-P JSON"
    assert format_of("PARAMETERS") is None
    assert format_of("") is None
    assert format_of("# c\n DATA 1") == "Extra-P text"
    assert format_of(f'{{"a": "{"x" * 70000}"') == "Extra-P JSON"


def test_call_paths_become_a_tree() -> None:
    text = "".join(
        json.dumps({"params": {"p": 1}, "callpath": path, "value": 1.5}) + "\n"
        for path in ("main->a->MPI_Send", "main->b", "main -> a", "X::operator->->f", "!$omp parallel @x.c:3", "")
    )
    experiment = parse_json_lines(text, "file", "x")
    labels = [experiment.tree.label(node) for node in range(len(experiment.tree))]
    assert labels == [
        "main",
        "main->a",
        "main->a->MPI_Send",
        "main->b",
        "X::operator->",
        "X::operator->->f",
        "!$omp parallel @x.c:3",
        "<root>",
    ]
    kinds = [experiment.tree.region_of(node).kind for node in range(len(experiment.tree))]
    assert kinds[2] is RegionKind.MPI
    assert kinds[6] is RegionKind.OPENMP
    assert set(experiment.values) == {"<default>"}
    assert np.isnan(experiment.values["<default>"][[0, 4]]).all()


def test_numbers_that_are_not_measured_or_negative() -> None:
    entries = '[{"point":4,"values":[NaN,-1,null]},{"point":[8],"values":2}]'
    experiment = parse_json(f'{{"parameters":["my p"],"measurements":{{"f":{{"t":{entries}}}}}}}', "file", "x")
    assert experiment.parameters == ("my_p",)
    assert "parameter 'my p' is called my_p here" in experiment.notes
    values = experiment.values["t"][0]
    assert [math.isnan(value) for value in values[0]] == [True, False, True]
    assert values[0, 1] == -1
    assert values[1, 0] == 2


def test_values_per_rank_become_one_per_repetition() -> None:
    text = '{"params":{"p":4},"value":[[1,3],[5,7,9]]}'
    assert parse_json_lines(text, "file", "x").values["<default>"].tolist() == [[[2, 7]]]


def test_semicolons_in_names_of_talpas_stay() -> None:
    text = '{"parameters":{"p":4};"metric":"t;u";"callpath":"f\\";g";"value":1.0}'
    experiment = parse_talpas(text, "file", "x")
    assert experiment.tree.label(0) == 'f";g'
    assert list(experiment.values) == ["t;u"]


def test_a_file_has_no_ranks(tmp_path: Path) -> None:
    path = tmp_path / "heat.txt"
    path.write_text(extrap_samples.TEXT, encoding="utf-8")
    with pytest.raises(UsageError, match="--over-ranks max"):
        read_experiment(path, "max")


def test_known_metrics_are_those_of_the_runtime() -> None:
    table = (Path(__file__).parents[2] / "agent" / "runtime" / "metrics.def").read_text(encoding="utf-8")
    field = ', "(.*?)"'
    rows = re.findall(rf"^QUIPU_(?:WEIGHTED_)?METRIC\(\w+{5 * field}\)", table, re.MULTILINE)
    known = [(m.name, m.unit, m.kind, m.over_locations, m.description) for m in METRICS.values()]
    assert set(known) <= set(rows)
    assert {row[0] for row in rows if row[2] == "effort"} <= set(METRICS)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("POINTS 4", 1, "POINTS before any PARAMETER"),
        ("PARAMETER p\nDATA 1", 2, "DATA before POINTS"),
        ("PARAMETER p\nPOINTS 4 x", 2, "'x' is not a number"),
        ("PARAMETER p\nPOINTS 4 nan", 2, "is not a number"),
        ("PARAMETER p\nPOINTS 4 inf", 2, "infinite"),
        ("PARAMETER p p\nPOINTS ( 4 4 )", 2, "parameter p is named twice"),
        ("PARAMETER p n\nPOINTS 4 8", 2, "need parentheses"),
        ("PARAMETER p n\nPOINTS ( 4 8 ) 3", 2, "outside of parentheses"),
        ("PARAMETER p n\nPOINTS ( 4 8 3 )", 2, "has 3 numbers, there are 2 parameters"),
        ("PARAMETER p\nPOINTS 4\nDATA 1\nDATA 2", 4, "more DATA lines"),
        (
            "PARAMETER p\nPOINTS 4 8\nREGION f\nDATA 1\nREGION g",
            5,
            "metric <default> of region f has 1 DATA lines for 2 points",
        ),
        ("PARAMETER p\nPOINTS 4 8\nDATA 1", 3, "has 1 DATA lines for 2 points"),
        ("PARAMETER p\nPOINTS 4\nMETRIC", 3, "METRIC without anything"),
        ("PARAMETER p\nPOINTS 4\nPARAMETER n", 3, "PARAMETER after POINTS"),
        ("PARAMETER p\nPOINTS 4\n\nMETRICS t", 4, "'METRICS' is not a keyword"),
        ("PARAMETER p\nPOINTS 4", None, "contains no measurements"),
        ("PARAMETER p", None, "POINTS are missing"),
    ],
)
def test_mistakes_in_text(text: str, line: int | None, words: str) -> None:
    with pytest.raises(FormatError, match=re.escape(words)) as caught:
        parse_text(text, "file.txt", "x")
    assert (caught.value.source, caught.value.line) == ("file.txt", line)


def one_entry(text: str) -> str:
    return f'{{"parameters": ["p"], "measurements": {{"f": {{"t": [{text}]}}}}}}'


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"parameters": ["p"],\n "measurements": {]', 2, "is not JSON"),
        ("[1]", None, "is JSON, but not an object"),
        ('{"session": 1}', None, "is JSON, but not an Extra-P experiment. Extra-P JSON is"),
        ('{"data": [], "columns": [], "nodes": []}', None, "write it with output.format=cali"),
        ('{"measurements": {}}', None, '"parameters" is missing'),
        ('{"parameters": []}', None, "contains no parameter"),
        ('{"parameters": [1]}', None, "1 is not a name"),
        ('{"parameters": ["p"]}', None, '"measurements" is missing'),
        ('{"parameters": ["p"], "measurements": {}}', None, "contains no measurements"),
        ('{"parameters": ["p"], "measurements": {"f": [1]}}', None, "f: is not"),
        ('{"parameters": ["p"], "measurements": {"f": {"t": 1}}}', None, "f, t: is not a list"),
        (one_entry('{"point": [1]}'), None, "f, t, entry 1: is not"),
        (one_entry('{"point": [1], "values": ["2"]}'), None, "'2' is not a number"),
        (one_entry('{"point": [1], "values": [1e999]}'), None, "infinite"),
        (one_entry(f'{{"point": [1{"0" * 400}], "values": [1]}}'), None, "infinite"),
        (f'{{"parameters": [{"1" * 5000}]}}', None, "too many digits"),
        ("[" * 200000, None, "nested too deep"),
        ('{"callpaths": 1}', None, '"parameters" is missing or not a list of objects'),
        (extrap_samples.JSON_NUMBERED.replace('"metric_id": 2', '"metric_id": 3'), None, '"metric_id" is 3, but there'),
        (extrap_samples.JSON_NUMBERED.replace('"value": 7', '"value": "x"'), None, "'x' is not a number"),
    ],
)
def test_mistakes_in_json(text: str, line: int | None, words: str) -> None:
    with pytest.raises(FormatError, match=re.escape(words)) as caught:
        parse_json(text, "file.json", "x")
    assert (caught.value.source, caught.value.line) == ("file.json", line)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("3", "is not an object"),
        ('{"params": 4}', '"params" is missing or not an object'),
        ('{"params": {"p": 4}}', '"value" is missing'),
        ('{"params": {"n": 4}, "value": 1}', "the parameters are n, but p in the first line"),
        ('{"params": {"p": "4"}, "value": 1}', "'4' is not a number"),
        ('{"params": {"p": 4}, "value": true}', "True is not a number"),
        ('{"params": {"p": 4}, "callpath": 3, "value": 1}', '"callpath": 3 is not a name'),
    ],
)
def test_mistakes_in_lines(text: str, words: str) -> None:
    with pytest.raises(FormatError, match=re.escape(words)) as caught:
        parse_json_lines('{"params": {"p": 1}, "value": 1}\n\n' + text, "file.jsonl", "x")
    assert caught.value.line == 3


def test_configurations_without_any_value_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "heat.txt"
    path.write_text(
        "PARAMETER x\nPOINTS 4 8 16 64\nMETRIC time\nREGION a\nDATA 1 2\nDATA 3 4\nDATA 5 6\nDATA nan\n",
        encoding="utf-8",
    )
    experiment = read_experiment(path)
    assert experiment.points.tolist() == [[4], [8], [16]]
    assert experiment.values["time"].tolist() == [[[1, 2], [3, 4], [5, 6]]]
    assert experiment.notes[-1] == "configurations without any value are left out: x=64"


def test_a_file_that_is_something_else(tmp_path: Path) -> None:
    for name, content, words in [
        ("x.dat", b"hello", "has an unknown format"),
        ("x.txt", b"hello", "1: 'hello' is not a keyword"),
        ("x.txt", b"POINTS\n\xff", "2: is not UTF-8"),
        ("x.txt", b"\x7fELF\2\1\1\0\xff", "is a binary file of an unknown format. Quipu reads Extra-P text"),
        ("x.txt", "POINTS".encode("utf-16"), "is not UTF-8"),
        ("x", b"\1\0\x11\0\0\0EXTRAP_EXPERIMENT\3\0\0\x001.0", "experiment of Extra-P 3.*extrap --extra-p-3 "),
        ("x.extra-p", b"", "is not a ZIP file"),
        ("x.tar", bytes(257) + b"ustar", "is a tar archive: unpack it, or rename it to NAME.cubex"),
        ("x.gz", gzip.compress(b"DATA")[:-9], "ends early"),
        ("x.gz", b"\x1f\x8b" + b"x" * 40, "damaged gzip"),
        ("x.gz", gzip.compress(bytes(300 << 20), 9), "expands to more than"),
    ]:
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(FormatError, match=words):
            read_experiment(path)
    with pytest.raises(FormatError, match="none: is missing"):
        read_experiment(tmp_path / "none")
