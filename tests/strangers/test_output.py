# SPDX-License-Identifier: Apache-2.0
"""What files say reaches neither a terminal nor a page as something that steers it, and no path outside of a folder."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from profile_writer import rank_profile
from quipu.agent.archive.checksums import NAME as SUMS
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run_json import from_json, read_json, to_json
from quipu.agent.cli.main import run_command_line
from quipu.agent.launch.raw_folder import LAUNCH_FILE
from quipu.agent.merge.run import merge_run
from quipu.modeling.errors import FormatError, MeasurementError
from quipu.modeling.printable import printable, printable_json

from .commands import OF_EXPERIMENTS, STEERING
from .hostile import STEERING as HOSTILE
from .hostile import raw_folder


@pytest.fixture
def steered(tmp_path: Path) -> Path:
    """An experiment with terminal control characters in all texts (metrics, regions, hosts, command, problems)."""
    name = HOSTILE.replace("/", "")
    for p in (2, 4, 8, 16, 32):
        profile = rank_profile(0, work=p * 100)
        profile.regions = {number: text.replace("solve", f"solve{name}") for number, text in profile.regions.items()}
        profile.attributes = {**profile.attributes, "host": name, "ranks": "1"}
        folder = tmp_path / f"raw-{p}"
        folder.mkdir()
        profile.write(folder)
        metadata = RunMetadata({"p": p}, command=("./app", name), problems=(name,), exit_code=0, started=name)
        metadata = RunMetadata(**{**metadata.__dict__, "environment_added": {name: name}, "launcher": {"family": name}})
        run = merge_run(folder, tmp_path / "experiment", metadata).path
        content = read_json(run / "run.json")
        content["nodes"] = [{"host": name, "cores": 1}]
        content["metrics"][0]["description"] = content["metrics"][2]["unit"] = name
        (run / "run.json").write_text(json.dumps(content), encoding="utf-8")
        (run / SUMS).unlink()
    return tmp_path / "experiment"


@pytest.mark.parametrize("words", [*OF_EXPERIMENTS, ("show", "--metric", HOSTILE), ("report", "-o", "{out}/no/x.html")])
def test_nothing_printed_or_written_steers_a_terminal(
    words: tuple[str, ...], steered: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    run_command_line([words[0], str(steered), *(word.replace("{out}", str(out)) for word in words[1:])])
    printed = capsys.readouterr()
    texts = [printed.out, printed.err, *(path.read_text(encoding="utf-8") for path in out.iterdir())]
    assert "".join(texts)
    for text in texts:
        assert STEERING.search(text) is None, re.findall(r".{20}" + STEERING.pattern, text)[:3]


def test_json_says_the_same_without_steering_characters() -> None:
    text = json.dumps({HOSTILE: [HOSTILE, "é\u2028\U000e0001"]}, ensure_ascii=False, indent=1)
    assert json.loads(printable_json(text)) == json.loads(text)
    assert STEERING.search(printable_json(text)) is None


def test_text_of_people_stays() -> None:
    text = "größe → naïve 中文 µs n³·log₂(p)\nnext"
    assert printable(text) == text


@pytest.mark.parametrize("name", ["x/../../escaped", "..", "/tmp/x", "", "a b", "p\0", "p\n", "-p", "1p"])
def test_no_parameter_leads_out_of_the_folder(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = raw_folder(tmp_path / "a" / "b" / ".raw-x", [rank_profile(0)])
    launch = read_json(raw / LAUNCH_FILE)
    launch["parameters"] = {name: 4}
    (raw / LAUNCH_FILE).write_text(json.dumps(launch), encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    assert run_command_line(["merge", "--force", str(raw), "-o", str(tmp_path / "a" / "out")]) == 1
    assert "is not a valid name: use letters, digits and _" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(MeasurementError, match="is not a valid name of a parameter"):
        merge_run(raw, tmp_path / "a" / "out", RunMetadata({name: 4}))
    assert sorted(path for path in tmp_path.rglob("*") if path.name != "out") == before


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("nodes", [{"ranks": 5}], r"nodes\[0\]\.ranks must be a list"),
        ("nodes", [{"cpus": "2", "ranks": []}], r"nodes\[0\]\.cpus must be a whole number"),
        ("nodes", [{"agent_seconds": 10**400}], "agent_seconds"),
        ("nodes", [5], r"nodes\[0\] must be an object"),
        ("launcher", {"family": 5}, "launcher.family must be text"),
        ("parameters", {"p": 10**400}, "parameters.p must be"),
        ("metrics", [5], r"metrics\[0\] must be an object"),
        ("metrics", 5, "metrics must be a list"),
        ("command", "x", "command must be a list"),
        ("seconds", 1e308, "seconds must be a finite number"),
    ],
)
def test_values_of_another_type_are_errors_of_the_key(key: str, value: object, words: str, tmp_path: Path) -> None:
    content = to_json(RunMetadata({"p": 2}))
    with pytest.raises(FormatError, match=words):
        from_json(tmp_path / "run.json", {**content, key: value})


@pytest.mark.parametrize("digits", ["9" * 5000, "0" * 5000, "0" * 30 + "1", "٣"])
def test_a_rank_of_many_digits_is_no_rank(digits: str, tmp_path: Path) -> None:
    profile = rank_profile(0)
    profile.attributes = {**profile.attributes, "rank": digits[:3000], "ranks": digits[:900]}
    folder = tmp_path / "raw"
    folder.mkdir()
    profile.write(folder)
    assert [record.rank for record in merge_run(folder, tmp_path / "out", RunMetadata({"p": 2})).ranks] == [0]


@pytest.mark.parametrize("number", [1e308, -1e308, float("nan"), float("inf"), 5e-324])
def test_reports_of_extreme_numbers(number: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = [number if p == 8 else float(p) for p in (2, 4, 8, 16, 32)]
    text = "PARAMETER p\nPOINTS 2 4 8 16 32\nMETRIC time\n"
    for region in ("main", "main->a", "main->b"):
        text += f"REGION {region}\n" + "".join(f"DATA {value!r} {value!r}\n" for value in values)
    path = tmp_path / "x.txt"
    path.write_text(text, encoding="utf-8")
    shutil.copy(path, tmp_path / "y.txt")
    for words in OF_EXPERIMENTS:
        code = run_command_line([words[0], str(path), *(word.replace("{out}", str(tmp_path)) for word in words[1:])])
        said = capsys.readouterr().err
        assert code == 0 or said.count("quipu: error: ") == 1, (words, said)
    assert np.isfinite(np.nan_to_num(number))


@pytest.mark.parametrize("name", ["run.json", "SHA256SUMS", "values.parquet", "statistics.parquet", "regions.parquet"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "loop", "large"])
def test_devices_and_pipes_are_not_read(
    name: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    rank_profile(0).write(raw)
    path = merge_run(raw, tmp_path, RunMetadata({"p": 2}, exit_code=0)).path / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(name)
    else:
        path.touch()
        os.truncate(path, 1 << 42)
    code = run_command_line(["show", str(path.parent), "--ranks"])
    said = capsys.readouterr().err
    assert (code, said.count("\n")) == (1, 1) or (name, kind) == ("SHA256SUMS", "loop"), said
