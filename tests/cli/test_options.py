# SPDX-License-Identifier: Apache-2.0
"""Parameters on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from quipu.agent.cli.arguments import make_strict
from quipu.agent.cli.main import application
from quipu.agent.cli.options import over_ranks_of, parse_assignments, point_of, split_names
from quipu.modeling.errors import UsageError

from .conftest import Quipu


def test_assignments() -> None:
    values = parse_assignments("--param", ["p=4", "n=1e6, x = 0.5"])
    assert values == {"p": 4, "n": 1000000, "x": 0.5}
    assert [type(value) for value in values.values()] == [int, int, float]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["p"], "write NAME=NUMBER"),
        (["p="], "write NAME=NUMBER"),
        ([""], "write NAME=NUMBER"),
        (["=4"], "is not a name of letters, digits and _"),
        (["2p=4"], "is not a name of letters, digits and _"),
        (["p/q=4"], "is not a name of letters, digits and _"),
        (["p=four"], "'four' is not a finite number"),
        (["p=nan"], "is not a finite number"),
        (["p=1e999"], "is not a finite number"),
        (["p=4", "p=5"], "p is given twice"),
    ],
)
def test_bad_assignments_name_the_option(texts: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        parse_assignments("--param", texts)
    assert str(caught.value).startswith("--param '")


@given(st.text())
def test_any_text_is_a_value_or_one_error(text: str) -> None:
    try:
        parse_assignments("--at", [text])
    except UsageError as error:
        assert "--at" in str(error)


def test_points() -> None:
    assert point_of("--at", ["n=10,p=2"], ("p", "n")) == {"p": 2, "n": 10}
    for texts, words in (
        (["p=2"], "no value for n"),
        (["p=2,n=1,q=1"], "no parameter q in this experiment; it has: p, n"),
        (["p=0,n=1"], "p=0: the number must be above 0"),
    ):
        with pytest.raises(UsageError, match=words):
            point_of("--at", texts, ("p", "n"))


def test_choices_and_lists() -> None:
    assert over_ranks_of("max") == "max"
    with pytest.raises(UsageError, match="choose one of mean, max, sum"):
        over_ranks_of("median")
    assert split_names(["time,visits", "time", " blocks "]) == ("time", "visits", "blocks")


def test_help_names_each_command_of_tensor_in_one_whole_line(
    quipu_here: Quipu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    commands = quipu_here("tensor", "--help").out.split("Commands:\n")[1].splitlines()
    assert [line.split()[0] for line in commands] == ["fit", "predict", "tune", "explain"]
    assert all(line.endswith(".") and not line.endswith("...") for line in commands)


def test_help_writes_large_defaults_as_they_are_typed(quipu_here: Quipu) -> None:
    assert "300000000" not in quipu_here("generate", "--help").out


def _values(command: Any, kinds: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
    """Yield options and arguments of a command and those below it whose types have names that begin so."""
    for below in getattr(command, "commands", {}).values():
        yield from _values(below, kinds)
    yield from ((command, one) for one in command.params if one.type.name.startswith(kinds))


def test_numbers_of_all_commands_are_those_of_documents() -> None:
    command = typer.main.get_command(application())
    make_strict(command)
    numbers = list(_values(command, ("int", "float")))
    assert len(numbers) > 20
    for owner, option in numbers:
        context = owner.make_context("quipu", [], resilient_parsing=True)
        assert option.type.convert("3", option, context) == 3
        for text in ("1_0", "٣", "nan", "inf", "1e400", " 3", "3 ", "", "x", "--"):
            with pytest.raises(typer.BadParameter, match=r"is not a (whole|finite) number; write"):
                option.type.convert(text, option, context)


def test_no_command_takes_an_empty_path_for_the_working_folder(quipu_here: Quipu) -> None:
    command = typer.main.get_command(application())
    make_strict(command)
    paths = list(_values(command, ("path", "file", "directory")))
    assert len(paths) > 40
    for owner, option in paths:
        with pytest.raises(typer.BadParameter, match="'' is empty; give the name of a file or folder"):
            option.type.convert("", option, owner.make_context("quipu", [], resilient_parsing=True))
    answer = quipu_here("run", "-o", "", "--", "true")
    assert answer.code == 2 and "'--output' / '-o': ''" in answer.err and answer.err.count("\n") == 1
