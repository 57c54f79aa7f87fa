# SPDX-License-Identifier: Apache-2.0
"""Restrict numbers and paths on the command line: accept only plain decimal numbers, and no empty paths."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any


def make_strict(command: Any) -> None:
    """Change a command and its subcommands, so that they refuse empty paths and numbers in unusual forms.

    int() and float() accept forms that JSON and TOML do not (see `number_of`). An empty path would mean the working
    folder. The refusal is a usage error.
    """
    for below in getattr(command, "commands", {}).values():
        make_strict(below)
    for parameter in command.params:
        kind = copy.copy(parameter.type)  # all integer parameters share one object
        if kind.name.startswith("int"):  # integer, integer range
            kind.convert = _reading(kind, _is_whole_number, "is not a whole number; write digits only, such as 4")
        elif kind.name.startswith("float"):
            kind.convert = _reading(kind, _is_number, "is not a finite number; write 4, 0.5 or 1e6")
        elif kind.name in ("path", "file", "directory"):
            kind.convert = _reading(kind, bool, "is empty; give the name of a file or folder")
        parameter.type = kind


def _reading(kind: Any, is_good: Callable[[str], bool], fault: str) -> Callable[[Any, Any, Any], Any]:
    """Return the conversion of the type `kind`, with an additional usage error for texts that `is_good` rejects."""
    usual = kind.convert

    def convert(value: Any, parameter: Any, context: Any) -> Any:
        if isinstance(value, str) and not is_good(value):
            kind.fail(f"{value!r} {fault}", parameter, context)
        return usual(value, parameter, context)

    return convert


def _is_number(text: str) -> bool:
    from quipu.modeling.documents import number_of

    return number_of(text) is not None


def _is_whole_number(text: str) -> bool:
    return text.lstrip("+-").isdecimal() and _is_number(text)
