"""Parameters on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
        (["=4"], "no name of a parameter"),
        (["2p=4"], "no name of a parameter"),
        (["p/q=4"], "no name of a parameter"),
        (["p=four"], "'four' is no finite number"),
        (["p=nan"], "no finite number"),
        (["p=1e999"], "no finite number"),
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
        (["p=0,n=1"], "p must be above 0"),
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
