# SPDX-License-Identifier: Apache-2.0
"""Call paths as text: only arrows between regions separate."""

from __future__ import annotations

import pytest
from quipu.modeling.callpath_text import joined, steps_of

NAMES = (
    "main",
    "decltype(t->rows()) sum<Table>(Table*)",
    "std::function<auto (int) -> int>::operator()(int) const",
    "Handle<Node>::operator->() const",
    "operator->*(Node, int)",
    "bool operator< <int>(Pair<int>, Pair<int>)",
    "std::ostream& operator<< <char>(std::ostream&, char)",
    "operator<=>(Key, Key)",
    "solve(int)::{lambda(auto:1*)#1}::operator()<Row>(Row*) const::[with->x]",
    "<module>",
    "copy device->host",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_with_arrows_is_one_step_of_our_text(name: str) -> None:
    text = joined(["main", name, "MPI_Send"])
    assert text.split("->") == ["main", *text.split("->")[1:2], "MPI_Send"]
    assert steps_of(text) == ["main", name, "MPI_Send"]


@pytest.mark.parametrize("name", NAMES[:-1])
def test_arrows_in_names_of_c_plus_plus_do_not_separate(name: str) -> None:
    assert steps_of(f"main->{name}->f") == ["main", name, "f"]


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("main -> a", ["main", "a"]),
        ("a->", ["a", ""]),
        ("cut(here->b", ["cut(here", "b"]),
        ("if a<b->c", ["if a<b", "c"]),
        ("f(a<b)->g", ["f(a<b)", "g"]),
        ("myoperator->g", ["myoperator", "g"]),
        ("", [""]),
    ],
)
def test_other_texts(text: str, steps: list[str]) -> None:
    assert steps_of(text) == steps
