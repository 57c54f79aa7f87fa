# SPDX-License-Identifier: Apache-2.0
"""The reference of `--json`: made of report/documents.toml."""

from __future__ import annotations

import json
from collections.abc import Iterator

from commands import plain
from quipu.report.documents import Document, documents, json_schema, parts

_HEAD = """# JSON

Every command prints one JSON document on standard output with `--json`; messages stay on standard error. What a
measured program prints goes to standard error then (`run`, `campaign`, `refine`). All documents fulfil one
[JSON Schema](quipu.schema.json) (draft 2020-12).

Every document has `format` (its name) and `schema` (its version). Keys are added without a new version, and never
change their meaning within one. `callgraph` prints its document without an option.

    quipu run --json -p p=4 -o runs -- mpirun -n 4 ./heat 100 | jq '.runs[].path'
"""


def document_page() -> str:
    """Return the page."""
    lines = [_HEAD]
    for document in documents():
        what = f"{plain(document.what)}; schema {document.version}."
        lines += [f"## {document.name}", "", what, "", *_table(document)]
    lines += ["## Parts of documents", ""]
    for part in parts():
        lines += [f"### {part.name}", "", *_table(part)]
    return "\n".join(lines)


def schema_text() -> str:
    """Return the JSON Schema."""
    return json.dumps(json_schema(), indent=1) + "\n"


def _table(document: Document) -> Iterator[str]:
    yield from ("| key | type | what it is |", "|---|---|---|")
    for key in document.keys:
        marks = [*(["or null"] if key.nullable else []), *([] if key.required else ["may be missing"])]
        yield f"| `{key.name}` | {', '.join([f'`{key.type}`', *marks])} | {plain(key.text)} |"
    yield ""
