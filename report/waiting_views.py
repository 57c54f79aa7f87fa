# SPDX-License-Identifier: Apache-2.0
"""What ranks and threads wait for, and which call path of which rank causes it, for every kind of output."""

from __future__ import annotations

from typing import Any

from quipu.modeling.experiment import CallTree
from quipu.modeling.root_causes import Cause, Charge, RootCauses

from .json_views import json_number
from .terminal.names import shorten
from .text import path_text, percent, quantity
from .views import steps

WORTH = 0.01  # parts of the elapsed time from which on waiting is worth a line
_MATTERS = 0.1  # parts of the waiting from which on a cause is named
_MOST_NAMED = 3  # causes in a line
_WIDTH = 60  # of the name of a call path
NO_LATE_RANK = "is for no rank in particular: ranks work in turn, as in a pipeline, or another one is late each time"
WHY = {True: ", more work than on the others", False: ", slower than on the others for the same work", None: ""}


def waiting_lines(tree: CallTree, found: RootCauses, top: int) -> list[str]:
    """Return a sentence for each operation that waits, the longest waiting first.

    Such as "main->MPI_Bcast waits 1.1 s, 20 % of the time; 98 % is caused by rank 0 in main->sort_keys (main.cpp:42)".
    """
    return [_line(tree, found, cause) for cause in worth_a_line(found)[:top]]


def worth_a_line(found: RootCauses) -> list[Cause]:
    """Return the causes of waiting that takes a part of the time, the longest waiting first."""
    return [cause for cause in found.causes if cause.waiting >= WORTH * found.elapsed]


def named(cause: Cause) -> list[Charge]:
    """Return the causes that are worth a name, the largest first."""
    return [charge for charge in cause.charges if charge.seconds >= _MATTERS * cause.waiting][:_MOST_NAMED]


def waiting_json(tree: CallTree, found: RootCauses | None) -> list[dict[str, Any]]:
    """Return what waits and why, for documents: all operations, the longest waiting first."""
    if found is None:
        return []
    return [
        {
            "id": cause.path,
            "path": list(steps(tree, cause.path)),
            "seconds": json_number(cause.waiting),
            "share": json_number(cause.waiting / found.elapsed),
            "unexplained": json_number(cause.unexplained),
            "causes": [
                {
                    "id": one.path,
                    "path": list(steps(tree, one.path)),
                    "rank": one.rank,
                    "thread": one.thread,
                    "seconds": json_number(one.seconds),
                    "more_work": one.more_work,
                }
                for one in cause.charges
            ],
        }
        for cause in found.causes
        if found.elapsed > 0.0
    ]


def place_of(tree: CallTree, path: int) -> str:
    """Return the file and the line of a call path; empty if they are not known."""
    region = tree.region_of(path)
    return f"{region.file.rsplit('/', 1)[-1]}:{region.line}" if region.file else ""


def _line(tree: CallTree, found: RootCauses, cause: Cause) -> str:
    text = f"{_name(tree, cause.path)} waits {quantity(cause.waiting, 's')}"
    text += f", {percent(cause.waiting / found.elapsed)} of the time"
    parts = []
    for charge in named(cause):
        place = place_of(tree, charge.path)
        thread = "" if charge.thread is None else f", thread {charge.thread}"
        parts.append(
            f"{percent(charge.seconds / cause.waiting, 0)} is caused by rank {charge.rank}{thread} in "
            f"{_name(tree, charge.path)}{f' ({place})' if place else ''}{WHY[charge.more_work]}"
        )
    if cause.unexplained >= _MATTERS * cause.waiting:
        parts.append(f"{percent(cause.unexplained / cause.waiting, 0)} {NO_LATE_RANK}")
    return "; ".join([text, *parts])


def _name(tree: CallTree, path: int) -> str:
    return shorten(path_text(steps(tree, path)), _WIDTH)
