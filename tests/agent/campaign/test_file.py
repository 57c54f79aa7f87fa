# SPDX-License-Identifier: Apache-2.0
"""Read campaign files; every mistake is an error with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest
from heat_campaign import declare
from quipu.agent.campaign.file import read_campaign
from quipu.modeling.errors import FormatError

SIMULATED = """
[experiment]
command = "./heat {n}"
launcher = "smpi"
ranks = "{p}"
platform = "cluster.xml"
[parameters]
p = [16, 1024]
n = [100]
"""


def test_a_simulated_experiment(tmp_path: Path) -> None:
    campaign = declare(tmp_path, SIMULATED)
    command = campaign.command_at((1024, 100))
    assert command[:5] == ("smpirun", "-np", "1024", "-platform", "cluster.xml")
    assert command[-2:] == ("./heat", "100")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'launcher = "smpi"',
            'launcher = "mpirun"',
            r"heat.toml:4: launcher: launcher 'mpirun' is unknown; choose smpi",
        ),
        ('launcher = "smpi"', "", r"heat.toml:5: ranks: belongs to launcher"),
        ('ranks = "{p}"', 'ranks = "many"', r"heat.toml:5: ranks: should be a parameter like"),
        ('ranks = "{p}"', 'ranks = "{repetition}"', r"heat.toml:5: ranks: should be a parameter, not the number"),
        ('ranks = "{p}"', 'ranks = "{q}"', r"heat.toml:3: command: {q} is not a parameter"),
        ('ranks = "{p}"\nplatform = "cluster.xml"\n', "", r"heat.toml:4: launcher: needs ranks"),
    ],
)
def test_mistakes_in_a_simulated_experiment(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = SIMULATED.replace(old, new)
    if "ranks" not in text:
        text = text.replace("p = [16, 1024]\n", "")
    with pytest.raises(FormatError, match=message):
        declare(tmp_path, text)


def test_reading(tmp_path: Path) -> None:
    campaign = declare(tmp_path)
    assert campaign.points == ((1, 50.5), (1, 100), (2, 50.5), (2, 100))
    assert campaign.directory == tmp_path / "heat"
    assert campaign.command_at((2, 50.5)) == ("mpirun", "-n", "2", "./heat", "--size=50.5", "2 50.5")
    assert campaign.environment == {"OMP_NUM_THREADS": "1"}
    assert (campaign.repetitions, campaign.timeout) == (2, 60.0)


def test_python_functions_are_measured_if_the_file_says_so(tmp_path: Path) -> None:
    assert declare(tmp_path, "command = 'python3 a.py'\npython = true\n").python
    assert not declare(tmp_path, "command = 'python3 a.py'\n").python


def test_repetitions_differ_by_their_number(tmp_path: Path) -> None:
    """A parameter named repetition is a parameter."""
    text = "command = './sort {n} {repetition}'\n[parameters]\nn = [8]\n[environment]\nSEED = '7{repetition}'\n"
    campaign = declare(tmp_path, text)
    assert campaign.command_at((8,), 3) == ("./sort", "8", "3")
    assert campaign.environment_at((8,), 12) == {"SEED": "712"}
    campaign = declare(tmp_path, "command = './sort {repetition}'\n[parameters]\nrepetition = [8]\n")
    assert campaign.command_at((8,), 3) == ("./sort", "8")


def test_points_instead_of_a_grid(tmp_path: Path) -> None:
    text = 'parameters = ["p", "n"]\npoints = [[2, 20], [1, 10], [2, 20]]\ncommand = ["x", "{p}", "{n}{{}"]\n'
    campaign = declare(tmp_path, text)
    assert campaign.points == ((1, 10), (2, 20))
    assert campaign.command_at((1, 10)) == ("x", "1", "10{{}")
    assert campaign.name == "heat"


def test_no_parameters(tmp_path: Path) -> None:
    campaign = declare(tmp_path, 'command = "./app"')
    assert campaign.points == ((),)
    assert campaign.repetitions == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[experiment\n", r"heat\.toml:1: is not TOML"),
        ("[experiment]\nname = 'x'\n", r"heat\.toml:1: experiment: command is missing"),
        ("command = 'a {p}'\n[parameters]\np = []\n", r"heat\.toml:3: p: should be a list of numbers"),
        ("command = 'a {p}'\n[parameters]\np = [1, 'two']\n", r"heat\.toml:3: p: should be a list of numbers"),
        (
            "command = 'a {q}'\n[parameters]\np = [1]\n",
            r"heat\.toml:1: command: {q} is not a parameter here; the parameters are p",
        ),
        ("command = 'a'\n[parameters]\np = [1]\n", r"heat\.toml:1: command: must contain {p}"),
        ("command = 'a \"b'\n", r"heat\.toml:1: command: cannot be split"),
        ("command = 3\n", "command: should be a command"),
        ("command = 'a'\nrepetitions = 0\n", r"heat\.toml:2: repetitions: should be a whole number"),
        ("command = 'a'\nrepetition = 2\n", r"heat\.toml:2: repetition: is unknown"),
        ("[experiment]\ncommand = 'a'\nrepeat = 2\n", r"heat\.toml:3: repeat: is unknown"),
        ("command = 'a'\n[experiment]\ncommand = 'b'\n", "given twice"),
        ("command = 'a'\ntimeout = -1\n", r"heat\.toml:2: timeout"),
        ("command = 'a'\nclock = 'sun'\n", r"heat\.toml:2: clock"),
        ("command = 'a'\nname = '../x'\n", r"heat\.toml:2: name"),
        ("command = 'a {p}'\nparameters = ['p']\n", "needs points"),
        ("command = 'a {p}'\nparameters = ['p']\npoints = [[1, 2]]\n", r"heat\.toml:3: points"),
        ("command = 'a {p}'\npoints = [1]\n[parameters]\np = []\n", r"heat\.toml:2: points"),
        ("command = 'a'\nparameters = 3\n", r"heat\.toml:2: parameters"),
        ("command = 'a {p}'\n[parameters]\n'p-q' = [1]\n", r"heat\.toml:3: p-q: is not usable"),
        ("command = 'a'\n[environment]\nX = [1]\n", r"heat\.toml:3: X"),
        (
            "command = 'a {p}'\nparameters.p = [1]\n[environment]\nX = '{q}'\n",
            r"heat\.toml:4: X: {q} is not a parameter",
        ),
        ("command = 'a'\n[environment]\n'X=Y' = 1\n", "is not a valid name of an environment variable"),
        ("experiment = 3\n", "should be a table"),
        ("command = 'a'\nbuild = 1\n", r"heat\.toml:2: build"),
        ("command = 'a'\npython = 1\n", r"heat\.toml:2: python: should be true or false"),
    ],
)
def test_mistakes_name_file_line_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        declare(tmp_path, text)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="is missing"):
        read_campaign(tmp_path / "none.toml")
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(FormatError, match="not UTF-8"):
        read_campaign(tmp_path / "x.toml")
