# SPDX-License-Identifier: Apache-2.0
"""The reference of Python: signatures and docstrings of what users import."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import quipu
from commands import plain

FUNCTIONS = ("run", "campaign", "open", "model", "predict")
"""What comes first on the page, in the order of work; the other names of `quipu.__all__` follow."""

MODULES = {
    "quipu": (*FUNCTIONS, *(name for name in quipu.__all__ if name not in FUNCTIONS)),
    "quipu.region": ("region", "phase", "parameter"),
    "quipu.modeling.analysis": ("analyze",),
    "quipu.modeling.evaluation": ("evaluate",),
    "quipu.modeling.pmnf": ("fit_models", "Options", "Library", "compare", "find_changes", "deviations"),
    "quipu.modeling.diagnosis": ("diagnose",),
    "quipu.modeling.tensor": ("TensorModel",),
    "quipu.report.model_plots": ("plot_models", "plot_models_interactive"),
}
"""Modules, and the names in them that are meant for programs of users."""


def api_page() -> str:
    """Return the page. Raises AttributeError for a name that is not there."""
    parts = ["# Python API", "How these work together: [Quipu from Python](../python-api.md)."]
    for module, names in MODULES.items():
        parts.append(f"## {module}")
        for name in names:
            parts += _entry(f"{module}.{name}", getattr(importlib.import_module(module), name))
    return "\n\n".join(parts) + "\n"


def _entry(name: str, found: Any) -> Iterator[str]:
    short = name.rpartition(".")[2]
    yield f"### {short}"
    if not inspect.isclass(found):
        yield f"```python\n{short}{_signature(found)}\n```"
        yield from _paragraphs(found)
        return
    if issubclass(found, Exception):
        yield from _paragraphs(found)
        return
    fields = dataclasses.fields(found) if dataclasses.is_dataclass(found) else ()
    yield f"```python\n{short}{_signature(found)}\n```"
    yield from _paragraphs(found)
    taken = {field.name for field in fields}
    for member, value in vars(found).items():
        documented = bool(inspect.getdoc(value)) and not isinstance(value, str | int | float)
        if member.startswith("_") or member in taken or not documented:
            continue
        called = getattr(value, "__func__", value)
        brackets = _signature(called) if inspect.isfunction(called) else ""
        yield f"`{short}.{member}{brackets}`"
        yield from (f":   {text}" if not number else f"    {text}" for number, text in enumerate(_paragraphs(value)))


_LONGEST = 40  # characters of a default value


class _Text:
    """An annotation that is printed as it was written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _signature(found: Any) -> str:
    """Return a signature as it is written, without `self` and without the modules of types."""
    signature = inspect.signature(found)
    given = [
        one.replace(default=_Text("…")) if len(repr(one.default)) > _LONGEST else one
        for one in signature.parameters.values()
    ]
    parameters = [
        one.replace(annotation=_Text(one.annotation)) if isinstance(one.annotation, str) else one
        for one in given
        if one.name not in ("self", "cls")
    ]
    answer = signature.return_annotation
    answer = _Text(answer) if isinstance(answer, str) else answer
    text = str(signature.replace(parameters=parameters, return_annotation=answer)).removesuffix(" -> None")
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z]\w)", "", re.sub(r"<[^<>]*>", "…", text))


def _paragraphs(found: Any) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", inspect.getdoc(found) or ""):
        yield plain(" ".join(paragraph.split()))
