# SPDX-License-Identifier: Apache-2.0
"""`quipu explain`: print the meaning of a message, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import UsageError

from .output import layout, show_json

if TYPE_CHECKING:
    from quipu.modeling.message import Entry


def _codes(incomplete: str) -> list[str]:
    return [entry.code for entry in entries() if entry.code.startswith(incomplete)]


def command(
    *,
    code: str = typer.Argument(
        None,
        metavar="CODE",
        help="The code in brackets at the end of a message. [default: list all]",
        autocompletion=_codes,
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Explain a note, a warning or an error: its meaning, and what to do.

    \b
    Example: quipu explain far-beyond
    """
    from quipu.report.json_views import document_json
    from quipu.report.terminal.glyphs import wrapped

    chosen = entries() if code is None else (_entry(code.strip("[] ")),)
    if as_json:
        messages = [
            {"code": one.code, "text": one.pattern, "meaning": one.meaning, "page": f"docs/{one.page}"}
            for one in chosen
        ]
        show_json(document_json("messages", "messages", messages=messages))
        return
    width = layout().width
    if code is None:
        longest = max(len(one.code) for one in chosen)
        for one in chosen:
            first, *_ = wrapped(one.pattern, max(width - longest - 4, 30)).splitlines()
            print(f"{one.code:<{longest}}  {first}{'' if first == one.pattern else ' …'}")
        return
    (one,) = chosen
    print(f"{one.code}\n")
    print(wrapped(one.pattern, width) + "\n")
    print(wrapped(one.meaning, width) + "\n")
    print(f"More: docs/{one.page}")


def entries() -> tuple[Entry, ...]:
    """Return all messages, sorted by code."""
    from quipu.modeling import catalogue as modeling
    from quipu.report import catalogue as report

    from .. import catalogue as agent
    from .. import native_catalogue as native

    return tuple(
        sorted((*modeling.ENTRIES, *report.ENTRIES, *agent.ENTRIES, *native.ENTRIES), key=lambda entry: entry.code)
    )


def _entry(code: str) -> Entry:
    known = {entry.code: entry for entry in entries()}
    if code not in known:
        from difflib import get_close_matches

        near = [one for one in known if code and code in one] or get_close_matches(code, known, 3)
        hint = f"did you mean {' or '.join(near[:3])}?" if near else "run quipu explain for a list of all codes"
        raise UsageError(f"no message has the code {code[:40]!r}; {hint}")
    return known[code]
