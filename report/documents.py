# SPDX-License-Identifier: Apache-2.0
"""Read documents.toml, which describes the documents of `--json`; generate a JSON Schema from it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SIMPLE: Mapping[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "number": {"type": "number"},
    "count": {"type": "integer"},
    "flag": {"type": "boolean"},
    "any": {},
}


@dataclass(frozen=True)
class Key:
    """One key of a document or part.

    type: as in documents.toml, without the marks ? and !. text: description. nullable: whether the value may be null.
    required: whether the key is always present.
    """

    name: str
    type: str
    text: str
    nullable: bool
    required: bool


@dataclass(frozen=True)
class Document:
    """A document (version ≥ 1) or a part of documents (version 0). what: description of the document."""

    name: str
    keys: tuple[Key, ...]
    version: int = 0
    what: str = ""


@cache
def documents() -> tuple[Document, ...]:
    """Return all documents that commands print with `--json`."""
    return tuple(
        Document(name, tuple(_keys(content, ("what", "version"))), content["version"], content["what"])
        for name, content in _table()["documents"].items()
    )


@cache
def parts() -> tuple[Document, ...]:
    """Return the parts of documents. A part that extends another part also has the keys of the other part."""
    table = _table()["parts"]
    return tuple(Document(name, tuple(_part_keys(name, table))) for name in table)


def json_schema() -> dict[str, Any]:
    """Return a JSON Schema (draft 2020-12) against which every document of `--json` is valid."""
    names = [document.name for document in documents()]
    definitions = {part.name: _object(part.keys) for part in parts()}
    for document in documents():
        own = _object(document.keys)
        fixed = {"format": {"const": document.name}, "schema": {"const": document.version}}
        definitions[document.name] = {
            **own,
            "description": document.what,
            "properties": fixed | own["properties"],
            "required": [*fixed, *own["required"]],
        }
    chosen = [
        {
            "if": {"properties": {"format": {"const": name}}, "required": ["format"]},
            "then": {"$ref": f"#/$defs/{name}"},
        }
        for name in names
    ]
    return {
        "$schema": DIALECT,
        "title": "Documents of quipu --json",
        "type": "object",
        "required": ["format", "schema"],
        "properties": {"format": {"enum": names}},
        "allOf": chosen,
        "$defs": definitions,
    }


@cache
def _table() -> dict[str, Any]:
    with (Path(__file__).parent / "documents.toml").open("rb") as file:
        return tomllib.load(file)


def _part_keys(name: str, table: Mapping[str, Any]) -> Iterator[Key]:
    content = table[name]
    if "extends" in content:
        yield from _part_keys(content["extends"], table)
    yield from _keys(content, ("extends",))


def _keys(content: Mapping[str, Any], besides: tuple[str, ...]) -> Iterator[Key]:
    for name, line in content.items():
        if name not in besides:
            kind, _, text = line.partition(": ")
            bare = kind.rstrip("?!")
            yield Key(name, bare, text, "?" in kind[len(bare) :], "!" not in kind[len(bare) :])


def _object(keys: tuple[Key, ...]) -> dict[str, Any]:
    """Return the schema of an object with these keys; other keys are allowed."""
    return {
        "type": "object",
        "properties": {key.name: {**_of_type(key.type, key.nullable), "description": key.text} for key in keys},
        "required": [key.name for key in keys if key.required],
    }


def _of_type(kind: str, nullable: bool = False) -> dict[str, Any]:
    """Return the schema of a type as written in documents.toml."""
    if kind in _SIMPLE:
        schema = dict(_SIMPLE[kind])
    elif kind[0] == "[":
        schema = {"type": "array", "items": _of_type(kind[1:-1])}
    elif kind[0] == "{":
        schema = {"type": "object", "additionalProperties": _of_type(kind[1:-1])}
    else:
        schema = {"$ref": f"#/$defs/{kind}"}
    return {"anyOf": [schema, {"type": "null"}]} if nullable and schema else schema
