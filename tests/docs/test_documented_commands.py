# SPDX-License-Identifier: Apache-2.0
"""Documented commands work: pages with programs are executed, all other commands are parsed."""

from __future__ import annotations

import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from quipu.agent.cli.main import application

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*/README.md")])
OUTPUTS = runpy.run_path(str(ROOT / ".ci" / "site" / "outputs.py"))
FENCE = OUTPUTS["FENCE"]
FOLLOWED = [
    page
    for page in PAGES
    if any(step.title or step.shown is not None for step in OUTPUTS["steps"](page.read_text(encoding="utf-8")))
]
"""Pages with files to write, or with outputs: their blocks of sh are run in order, in one folder."""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def commands_of(text: str) -> Iterator[str]:
    """Yield the lines that call `quipu`, in fences and in indented blocks, without prompt, continued lines joined."""
    indented = re.findall(r"(?:^ {4,}.*\n)+", FENCE.sub("", text), re.MULTILINE)
    for block in [*indented, *(body for language, _, body in FENCE.findall(text) if language in ("", "sh", "bash"))]:
        for line in block.replace("\\\n", " ").splitlines():
            if (line := line.strip().removeprefix("$ ")).startswith("quipu "):
                yield line


def words_of(line: str) -> Iterator[list[str]]:
    """Yield the words after `quipu` of every call in a line: up to a pipe, a redirection or another command."""
    lexer = shlex.shlex(re.sub(r"\b\d>", ">", line), posix=True, punctuation_chars="|&;>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word[0] not in "|&;>":
            words.append(word)
            continue
        if words[:1] == ["quipu"]:
            yield words[1:]
        words = []


DOCUMENTED = sorted({(name_of(page), line) for page in PAGES for line in commands_of(page.read_text(encoding="utf-8"))})


@pytest.fixture(scope="module")
def command_line() -> Any:
    return typer.main.get_command(application())


def understood(root: Any, words: list[str]) -> None:
    """Parse a command line as `quipu` does, without doing what it says. Raises what click raises."""
    context = root.context_class(root, info_name="quipu")
    while hasattr(root, "commands"):
        name, *words = words
        assert name in root.commands, f"there is no command {name}"
        root = root.commands[name]
        context = root.context_class(root, info_name=name, parent=context, **root.context_settings)
    root.parse_args(context, list(words))


@pytest.mark.parametrize(("page", "line"), DOCUMENTED)
def test_commands_are_understood(page: str, line: str, command_line: Any) -> None:
    for words in words_of(line):
        if not words[0].startswith("-"):
            understood(command_line, words)


def test_a_wrong_option_is_found(command_line: Any) -> None:
    with pytest.raises(Exception, match="--sturdy"):
        understood(command_line, ["show", "heat", "--sturdy"])


@pytest.mark.parametrize("page", FOLLOWED, ids=name_of)
def test_page_can_be_followed(page: Path, tmp_path: Path) -> None:
    for step, output in OUTPUTS["follow"](page.read_text(encoding="utf-8"), tmp_path):
        if step.shown is not None:
            assert OUTPUTS["missing"](step.shown, output) == [], f"{step.body}\n{output}"


def test_a_wrong_output_is_found() -> None:
    missing = OUTPUTS["missing"]
    assert missing("main  12.1 ms  n²\n", "main   9 µs  n²\n") == []
    assert missing("main  12.1 ms  n²\n…\n", "main   9 µs  n²\nother\n") == []
    assert missing("main  12.1 ms  n²\n", "main   9 µs  n³\n") == ["main # n²", "+ main # n³"]


def test_the_quality_of_a_measurement_may_differ() -> None:
    missing, head = OUTPUTS["missing"], "heat.runs\n"
    alone = "quality  2 ranks on 8 processors, others used 0.1, a processor for each rank\n"
    loaded = "quality  2 ranks on 2 processors, others used 1.4 at most,\n         0 of 2 runs alone\n"
    assert missing(head + alone, head + loaded) == missing(head + loaded, head + alone) == []
    assert missing(head + alone, head) == []  # a run of milliseconds has no such line
    assert missing(head, head + alone) == []


def test_a_sampled_function_with_little_time_may_be_missing() -> None:
    missing, head = OUTPUTS["missing"], "call path    time excl  share\n"
    assert missing(head, head + "├─ unknown in libc.so.6    1.00 ms   0.4%    1.00 ms\n") == []
    assert missing(head, head + "├─ unknown in libc.so.6     100 ms  40.4%     100 ms\n") != []


def test_outputs_are_written_where_they_belong() -> None:
    page = "```sh\necho a\n```\n\n```text\nb\n```\n\nText.\n\n```text\nc\n```\n"
    (step,) = OUTPUTS["steps"](page)
    assert (step.body, step.shown) == ("echo a\n", "b\n")
    assert OUTPUTS["as_shown"]("quipu: added X=1\na\nb\nc\n", "x\ny\n…\n") == "a\nb\n…\n"
    note = "a\nnote: slowest rank: 4 ms at\np=2\nnote: far\n\nb\n"
    assert OUTPUTS["printed"](note) == ["a", "note: far", "", "b"]
    note = "a\nnote: all runs of 1 of 16 points were\nmade beside others [loaded-machine]\n\nb\n"
    assert OUTPUTS["printed"](note) == ["a", "", "b"]
