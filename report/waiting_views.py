# SPDX-License-Identifier: Apache-2.0
"""Views of the waiting of ranks and threads, and of its causes (call paths and ranks), for every kind of output."""

from __future__ import annotations

from typing import Any

from quipu.modeling.experiment import CallTree
from quipu.modeling.root_causes import Cause, Charge, RootCauses

from .json_views import json_number
from .text import path_text, percent, quantity
from .views import steps

WORTH = 0.01  # waiting with a smaller share of the elapsed time is not listed
_MATTERS = 0.1  # a cause with a smaller share of the waiting is not named
_MOST_NAMED = 3  # largest number of causes in a line
NO_LATE_RANK = "(no rank in particular)"
"""Text for waiting that no single late rank causes, for example if ranks form a pipeline or the late rank changes."""
_WHY = {True: "more work", False: "slower", None: ""}


def waiting_rows(tree: CallTree, found: RootCauses, top: int) -> list[tuple[str, str, str, str, str, str]]:
    """Return a row for each of the `top` operations with most waiting, followed by a row for each of its causes.

    Columns (texts): call path, waiting time, share of the elapsed time, late rank, reason of the delay, source place.
    """
    rows = []
    for cause in notable_causes(found)[:top]:
        rows.append((path_text(steps(tree, cause.path)), *_size(cause.waiting, found), "", "", ""))
        for charge in named(cause):
            rank = str(charge.rank) if charge.thread is None else f"{charge.rank}, thread {charge.thread}"
            name = f"  {path_text(steps(tree, charge.path))}"
            rows.append((name, *_size(charge.seconds, found), rank, why(charge), place_of(tree, charge.path)))
        if cause.unexplained >= _MATTERS * cause.waiting:
            rows.append((f"  {NO_LATE_RANK}", *_size(cause.unexplained, found), "", "", ""))
    return rows


def notable_causes(found: RootCauses) -> list[Cause]:
    """Return the operations whose waiting is at least the share `WORTH` of the elapsed time, longest waiting first."""
    return [cause for cause in found.causes if cause.waiting >= WORTH * found.elapsed]


def named(cause: Cause) -> list[Charge]:
    """Return the main causes of the waiting in an operation, the largest first."""
    return [charge for charge in cause.charges if charge.seconds >= _MATTERS * cause.waiting][:_MOST_NAMED]


def waiting_json(tree: CallTree, found: RootCauses | None) -> list[dict[str, Any]]:
    """Return the operations with waiting and their causes for JSON documents, the longest waiting first."""
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
                    "not_running": one.not_running,
                }
                for one in cause.charges
            ],
        }
        for cause in found.causes
        if found.elapsed > 0.0
    ]


def why(charge: Charge) -> str:
    """Return why the late rank was late: "more work" than the waiting ranks, "slower" for the same work, "not running".

    The result is empty if unknown.
    """
    return "not running" if charge.not_running else _WHY[charge.more_work]


def place_of(tree: CallTree, path: int) -> str:
    """Return file and line of the region of a call path as `file:line`; empty if unknown."""
    region = tree.region_of(path)
    return f"{region.file.rsplit('/', 1)[-1]}:{region.line}" if region.file else ""


def _size(seconds: float, found: RootCauses) -> tuple[str, str]:
    return quantity(seconds, "s"), percent(seconds / found.elapsed)
