# SPDX-License-Identifier: Apache-2.0
"""The reference of commands: one page, made of the command line itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from quipu.agent.cli.main import GROUPS, application

WIDTH = 100  # columns of usage lines, whatever the terminal is
_HEAD = """# Commands

Every command with its arguments and options. `quipu COMMAND --help` prints the same. The options of the compiler
wrappers (`quipu-cc` and the others) are in
[environment and wrapper options](../environment.md#of-the-compiler-wrappers)."""


def command_line() -> Any:
    """Return the command `quipu` with all that it can do, as click has it."""
    return typer.main.get_command(application())


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Yield (words after `quipu`, command, its context) of every command, those within commands too."""
    root = command_line()
    yield from _below(root, root.context_class(root, info_name="quipu", terminal_width=WIDTH), "")


def _below(group: Any, context: Any, words: str) -> Iterator[tuple[str, Any, Any]]:
    for name, command in group.commands.items():
        inner = command.context_class(command, info_name=name, parent=context)
        yield f"{words} {name}".strip(), command, inner
        if hasattr(command, "commands"):
            yield from _below(command, inner, f"{words} {name}".strip())


def command_page() -> str:
    """Return the page: a table of the commands by group, then each command with its arguments and options."""
    texts: list[str] = []
    for words, command, context in commands():
        texts += [f"{'#' * (words.count(' ') + 2)} quipu {words}", *_description(command.help or "")]
        texts += _parameters(command, context)
    return "\n\n".join([_HEAD, "\n".join(_table()), *texts]) + "\n"


def _table() -> Iterator[str]:
    yield from ("| group | command | what it does |", "|---|---|---|")
    for group, members in GROUPS.items():
        for name, summary in members.items():
            yield f"| {group} | [`quipu {name}`](#quipu-{name}) | {plain(summary)} |"


def _description(text: str) -> Iterator[str]:
    """Yield paragraphs; those that the command line does not wrap are examples, or lists with a column of names."""
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.lstrip().startswith("\b"):
            lines = paragraph.lstrip().removeprefix("\b").strip("\n")
            yield f"```text\n{lines}\n```"
        else:
            yield plain(" ".join(paragraph.split()))


def _parameters(command: Any, context: Any) -> Iterator[str]:
    yield f"```text\n{command.get_usage(context)}\n```"
    rows = []
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        names = [*parameter.opts, *parameter.secondary_opts]
        option = parameter.param_type_name == "option"
        metavar = parameter.metavar or ("" if getattr(parameter, "is_flag", False) else parameter.make_metavar(context))
        label = f"{', '.join(names)} {metavar}".strip() if option else metavar
        default = parameter.default if option else None
        note = "" if default in (None, False, True, [], ()) or callable(default) else f" Default: `{default}`."
        rows.append(f"| `{label.replace('|', '/')}` | {plain(getattr(parameter, 'help', '') or '')}{note} |")
    yield "\n".join(["| argument or option | meaning |", "|---|---|", *rows])


def plain(text: str) -> str:
    """Return a text in which Markdown sees nothing but text, and what is between backticks stays code."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([\\*_{}\[\]<>|#])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)
