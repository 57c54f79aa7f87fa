# SPDX-License-Identifier: Apache-2.0
"""The reference of commands: a page for each, made of the command line itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer
from quipu.agent.cli.main import COMMANDS, application


def command_line() -> Any:
    """Return the command `quipu` with all that it can do, as click has it."""
    return typer.main.get_command(application())


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Yield (words after `quipu`, command, its context) of every command, those within commands too."""
    root = command_line()
    yield from _below(root, root.context_class(root, info_name="quipu"), "")


def _below(group: Any, context: Any, words: str) -> Iterator[tuple[str, Any, Any]]:
    for name, command in group.commands.items():
        inner = command.context_class(command, info_name=name, parent=context)
        yield f"{words} {name}".strip(), command, inner
        if hasattr(command, "commands"):
            yield from _below(command, inner, f"{words} {name}".strip())


def command_pages() -> dict[str, str]:
    """Return the pages by their path: one per command of `quipu`, and one that lists them."""
    parts: dict[str, list[str]] = {name: [] for name in COMMANDS}
    rows = ["| command | what it does |", "|---|---|"]
    for words, command, context in commands():
        name = words.split()[0]
        text = command.help or ""
        parts[name] += [f"{'#' * (words.count(' ') + 1)} quipu {words}", *_description(text)]
        parts[name] += _parameters(command, context)
        if words == name:
            rows.append(f"| [`quipu {name}`]({name}.md) | {plain(COMMANDS[name])} |")
    head = "# Commands\n\nMade of the command line itself: `quipu COMMAND --help` says the same.\n\n"
    pages = {f"reference/commands/{name}.md": "\n\n".join(texts) + "\n" for name, texts in parts.items()}
    return pages | {"reference/commands/index.md": head + "\n".join(rows) + "\n"}


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
