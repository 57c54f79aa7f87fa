# SPDX-License-Identifier: Apache-2.0
"""The reference of messages: made of the catalogues of all parts."""

from __future__ import annotations

import posixpath

from commands import plain
from quipu.agent.cli.explain import entries

_HEAD = """# Messages

Messages that need an explanation end with a code, such as `[far-beyond]`. `quipu explain far-beyond` prints what the
message means and what to do, as this page does. `{words}` stand for values of your measurement. Scripts should decide
by the code: the words of a message may change with every version."""


def message_page() -> str:
    """Return the page."""
    parts = [_HEAD]
    for entry in entries():
        label = entry.page.partition("#")[0]
        parts.append(f"## {entry.code}")
        parts.append(f"> {plain(entry.pattern)}")
        parts.append(f"{plain(entry.meaning)} ([{label}]({posixpath.relpath(entry.page, 'reference')}))")
    return "\n\n".join(parts) + "\n"
