# SPDX-License-Identifier: Apache-2.0
"""Waiting of ranks and threads, and the call paths and ranks that cause it, for every kind of output."""

from __future__ import annotations

from typing import Any

from quipu.modeling.experiment import CallTree
from quipu.modeling.root_causes import Cause, Charge, RootCauses

from .json_views import json_number
from .text import path_text, percent, quantity
from .views import steps

WORTH = 0.01  # least share of the elapsed time for waiting to be listed
_MATTERS = 0.1  # least share of the waiting for a cause to be named
_MOST_NAMED = 3  # largest number of causes in a line
NO_LATE_RANK = "(no rank in particular)"
"""Text for waiting without a single late rank: a pipeline, or an operation where the late rank changes."""
_WHY = {True: "more work", False: "slower", None: ""}


def waiting_rows(tree: CallTree, found: RootCauses, top: int) -> list[tuple[str, str, str, str, str, str]]:
    """Return a row for each operation with waiting, the longest waiting first, and below it one for each cause.

    Columns: call path, time, share of the elapsed time, rank, reason of the delay, source location.
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
    """Return the causes of waiting with at least the share `WORTH` of the time, the longest waiting first."""
    return [cause for cause in found.causes if cause.waiting >= WORTH * found.elapsed]


def named(cause: Cause) -> list[Charge]:
    """Return the main causes, the largest first."""
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
    """Return why the late rank is late compared with the waiting ranks, for example slower for the same work."""
    return "not running" if charge.not_running else _WHY[charge.more_work]


def place_of(tree: CallTree, path: int) -> str:
    """Return the file and the line of a call path; empty if unknown."""
    region = tree.region_of(path)
    return f"{region.file.rsplit('/', 1)[-1]}:{region.line}" if region.file else ""


def _size(seconds: float, found: RootCauses) -> tuple[str, str]:
    return quantity(seconds, "s"), percent(seconds / found.elapsed)
