# SPDX-License-Identifier: Apache-2.0
"""Static facts in the section .quipu.facts of object files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fact_program import build
from hypothesis import given, settings
from hypothesis import strategies as st
from quipu.agent.source.functions import StaticFunction, static_functions
from quipu.modeling.errors import FormatError


def entry(name: str, **changes: object) -> str:
    content: dict[str, object] = {
        "name": name,
        "display": f"{name}()",
        "file": "a.c",
        "line": 7,
        "blocks": 3,
        "instructions": 20,
        "hook": True,
        "calls": ["MPI_Send", "inner"],
        "indirect_calls": 1,
    }
    return json.dumps({**content, **changes})


def test_functions_of_all_object_files(tmp_path: Path) -> None:
    program = build(tmp_path, entry("main") + "\n" + entry("tiny", hook=False) + "\n\0\0", entry("main") + "\n")
    functions = static_functions(program)
    assert [function.name for function in functions] == ["main", "tiny"]
    assert functions[0] == StaticFunction("main", "main()", "a.c", 7, 3, 20, ("MPI_Send", "inner"), 1, True)
    assert not functions[1].hook


@pytest.mark.parametrize(
    "line",
    ["{", "[1]", entry(""), entry("f", blocks=-1), entry("f", calls="g"), entry("f", hook=1), entry("f", file=None)],
)
def test_damaged_entries_name_their_number(tmp_path: Path, line: str) -> None:
    program = build(tmp_path, entry("main") + "\n" + line + "\n")
    with pytest.raises(FormatError, match=r"section \.quipu\.facts, entry 2, is damaged"):
        static_functions(program)


def test_files_without_facts(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be read"):
        static_functions(tmp_path / "none")
    (tmp_path / "text").write_text("#!/bin/sh\n")
    with pytest.raises(FormatError, match="not a program or object file"):
        static_functions(tmp_path / "text")
    with pytest.raises(FormatError, match="build it with the compiler wrappers"):
        static_functions(Path(shutil.which("true") or "/bin/true"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return build(tmp_path_factory.mktemp("facts"), entry("main") + "\n").read_bytes()


@settings(max_examples=300)
@given(data=st.data())
def test_mutated_programs_give_facts_or_a_format_error(tmp_path: Path, whole: bytes, data: st.DataObject) -> None:
    content = bytearray(whole)
    table = int.from_bytes(whole[0x28:0x30], "little")  # e_shoff: where damage matters most
    places = st.one_of(st.integers(0, 63), st.integers(table, len(whole) - 1), st.integers(0, len(whole) - 1))
    for position, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=6)):
        content[position] = value
    path = tmp_path / "mutated"
    path.write_bytes(content[: data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))))])
    try:
        functions = static_functions(path)
    except FormatError:
        return
    assert all(function.name for function in functions)
