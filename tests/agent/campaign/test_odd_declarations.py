# SPDX-License-Identifier: Apache-2.0
"""Unusual values of campaign keys: either one error that names the file, or the declared meaning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from quipu.agent.campaign.file import Campaign, read_campaign
from quipu.modeling.errors import FormatError

HUGE = "1" + "0" * 400
ODD = ["-1", '""', '" "', '"x"', "nan", "1e308", HUGE, "[]", f"[{HUGE}]", "{}", '"\u0663"', '"\\u0000"', '"{q}"']
ODD += ["{from = -1e300, to = 1e300, step = 1e300}", f"{{from = 1, to = {HUGE}, factor = 2}}"]
WHOLE: dict[str, dict[str, str]] = {
    "experiment": {
        "name": '"heat"',
        "repetitions": "2",
        "command": '"./heat {n}"',
        "directory": '"runs"',
        "build": '"make"',
        "timeout": "60",
        "clock": '"tsc"',
        "filter": '"heat.filter"',
        "launcher": '"smpi"',
        "ranks": '"{p}"',
        "platform": '"cluster.xml"',
        "compute": '"effort"',
        "rates": '"heat.rates"',
        "points": "[[1, 4], [2, 8]]",
    },
    "parameters": {"p": "[1, 2]", "n": "[1, 2]"},
    "environment": {"OMP_NUM_THREADS": '"{n}"'},
    "grid": {"parameter": '"p"', "dimensions": "2", "rule": '"balanced"'},
    "search": {
        "target": "{p = 64, n = 9}",
        "budget": '"10%"',
        "strategy": '"cpf"',
        "batch": "4",
        "constraints": '["p > 1"]',
        "ranks": '"p"',
        "patience": "3",
    },
    "refine": {
        "at": "{p = 64, n = 9}",
        "overhead": "0.05",
        "strategy": '"budget"',
        "iterations": "3",
        "threshold": "0.001",
        "filtering": '"compile"',
        "program": '"heat"',
        "statements": '"median"',
        "seconds": "0.1",
    },
    "scheduler": {
        "name": '"slurm"',
        "minutes": "3",
        "ranks": '"{p}"',
        "ranks_per_node": "4",
        "cores_per_rank": "1",
        "queue": '"standard"',
        "account": '"project"',
        "reservation": '"days"',
        "exclusive": "true",
        "at_once": "8",
        "poll": "15",
        "options": '{constraint = "haswell"}',
    },
}
KEYS = [(table, key) for table, keys in WHOLE.items() for key in keys]


def declared(folder: Path, content: Mapping[str, Mapping[str, str]]) -> Campaign:
    """Return what a file of these tables declares, and fill in its points as a run does."""
    path = folder / "heat.toml"
    tables = ([f"[{name}]", *(f"{key} = {value}" for key, value in table.items())] for name, table in content.items())
    path.write_text("\n".join(line for table in tables for line in table) + "\n", encoding="utf-8")
    campaign = read_campaign(path)
    for point in campaign.points:
        campaign.command_at(point), campaign.environment_at(point)
    return campaign


def test_the_file_that_is_made_odd_is_a_good_one(tmp_path: Path) -> None:
    assert len(declared(tmp_path, WHOLE).points) == 2


@pytest.mark.parametrize(("table", "key"), KEYS, ids=[".".join(one) for one in KEYS])
def test_odd_values_are_errors_that_name_the_file(tmp_path: Path, table: str, key: str) -> None:
    for value in ODD:
        content = {name: dict(keys) for name, keys in WHOLE.items()}
        content[table][key] = value
        if table == "parameters":
            del content["experiment"]["points"]
        try:
            declared(tmp_path, content)
        except FormatError as error:
            assert str(error).startswith(str(tmp_path / "heat.toml")) and len(str(error)) < 800, value


@pytest.mark.parametrize(
    ("table", "key", "value", "message"),
    [
        ("experiment", "timeout", HUGE, "timeout: should be a number of seconds above 0"),
        (
            "experiment",
            "timeout",
            "1e300",
            "scheduler.minutes is missing: give it, because the timeout of a run is longer",
        ),
        ("experiment", "points", "[[1e305, 1]]", "points: [1e+305, 1] should hold one number for each of: p, n"),
        ("experiment", "ranks", '""', "platform"),
        ("experiment", "ranks", '""', 'launcher: needs ranks = "{p}" or a platform'),
        ("experiment", "name", '" "', "name: should be text"),
        ("experiment", "directory", '""', "directory: should be text, not empty"),
        ("grid", "rule", '["balanced"]', "rule: should be one of: 'balanced'"),
        ("grid", "parameter", '"n"', "parameter: n = 0.5 is not a number of ranks: a whole number from 1"),
        ("search", "budget", '"\u0663"', "budget '\u0663': write core hours such as 2.5"),
        ("search", "target", "{p = -1, n = 9}", "search.target.p must be a finite number > 0.0"),
        ("scheduler", "minutes", "1e9", "scheduler.minutes must be a finite number <= 1000000.0"),
        ("refine", "overhead", "2", "refine.overhead must be a finite number <= 1.0"),
        ("refine", "program", '"\\u0000"', "is not the name of a file"),
    ],
)
def test_what_is_no_number_or_name(tmp_path: Path, table: str, key: str, value: str, message: str) -> None:
    content = {name: dict(keys) for name, keys in WHOLE.items()}
    content["experiment"] |= {"points": "[[1, 0.5], [2, 8]]"} if table == "grid" else {}
    content[table][key] = value
    if key == "ranks":
        del content["experiment"]["platform"]
    if value == "1e300":
        del content["scheduler"]["minutes"]
    with pytest.raises(FormatError) as caught:
        declared(tmp_path, content)
    assert message in str(caught.value)
