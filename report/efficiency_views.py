# SPDX-License-Identifier: Apache-2.0
"""Views of the efficiencies of an experiment: of the program and of call paths, with the largest losses.

The efficiencies follow the POP methodology (Performance Optimisation and Productivity): a factor, such as load balance,
is a number between 0 and 1, and is the product of the factors below it in the hierarchy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quipu.modeling.efficiency import HIERARCHY, Factor, Factors, Losses, RunTimes
from quipu.modeling.experiment import CallTree
from quipu.modeling.printable import counted
from quipu.modeling.root_causes import RootCauses

from .catalogue import NO_CYCLES, NOT_SEPARATED, UNKNOWN_RANKS
from .formats.fnmatch import matches
from .json_views import document_json, json_number, path_json
from .text import point_text
from .views import steps
from .waiting_views import named, notable_causes, waiting_json

GOOD, POOR = 0.8, 0.6
"""An efficiency is good from the first number on (as in POP), and poor below the second number."""
_MOST_COLUMNS = 8  # largest number of columns in the report
_MOST_LOSSES = 4  # largest number of call paths with losses in the report
_WORTH = 0.01  # call paths that lose a smaller part of the elapsed time are not in the report
# In programs with MPI and OpenMP, these factors have another parent than in `HIERARCHY`.
_OF_HYBRID = {
    **dict.fromkeys(("serialization", "transfer"), "mpi_communication"),
    "work_balance": "mpi_load_balance",
}
# In such programs these factors are not shown: they are products of factors of MPI and factors of OpenMP.
_INSIDE_HYBRID = ("load_balance", "communication")


@dataclass(frozen=True, eq=False)
class EfficiencyColumn:
    """The efficiencies of one configuration, measured or predicted.

    threads: per rank. elapsed: seconds. scaling: how the configuration differs from the reference: "strong", "weak", or
    "none" if they cannot be compared. reference: the run to compare with, as text. run: the measured run; None if it is
    predicted.
    """

    point: Mapping[str, float]
    ranks: int
    threads: int
    elapsed: float
    factors: Factors
    scaling: str
    reference: str
    run: RunTimes | None = None

    @property
    def heading(self) -> str:
        """Return the configuration as a heading of a column."""
        return point_text(tuple(self.point), self.point.values())


@dataclass(frozen=True, eq=False)
class EfficiencyView:
    """The efficiencies of an experiment.

    columns: one for each measured configuration, then the predicted ones. repetitions: one column for each run. losses,
    waiting: losses of call paths and causes of waiting in the last measured configuration; None if the archive has
    no separate values for each rank.
    """

    title: str
    tree: CallTree
    columns: tuple[EfficiencyColumn, ...]
    repetitions: tuple[EfficiencyColumn, ...] = ()
    losses: Losses | None = None
    waiting: RootCauses | None = None
    quality: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def last(self) -> EfficiencyColumn:
        """Return the last measured configuration."""
        return [column for column in self.columns if column.run is not None][-1]


@dataclass(frozen=True)
class FactorRow:
    """One factor in a table.

    depth: level in the hierarchy, from 0. values: for each column the value, its lower and its upper bound. The
    bounds equal the value if the archive determines it; all are NaN if the value is unknown.
    """

    name: str
    title: str
    depth: int
    values: tuple[tuple[float, float, float], ...]


def factor_rows(columns: Sequence[EfficiencyColumn], scope: int = -1) -> list[FactorRow]:
    """Return a row for each factor that is known in some column; a factor is above the factors of which it consists.

    scope: index of the call path; -1: the program. Scalability is missing if the configurations cannot be compared.
    """
    hybrid = any("mpi_parallel" in column.factors.values for column in columns)
    moved = _OF_HYBRID if hybrid else {}
    below: dict[str | None, list[Factor]] = {}
    for factor in HIERARCHY:
        below.setdefault(moved.get(factor.name, factor.parent), []).append(factor)
    compared = any(column.scaling != "none" for column in columns)
    rows: list[FactorRow] = []

    def add(factor: Factor, depth: int) -> None:
        values = tuple(column.factors.of(factor.name, scope) for column in columns)
        known = any(not math.isnan(value) for value, _, _ in values)
        if known and not (hybrid and factor.name in _INSIDE_HYBRID):
            rows.append(FactorRow(factor.name, factor.title, depth, values))
        for part in below.get(factor.name, ()):
            add(part, depth + 1)

    for factor in below[None if compared else "global"]:
        if compared or factor.name != "computation":
            add(factor, 0)
    return rows


def matching_scopes(tree: CallTree, pattern: str) -> list[int]:
    """Return the indices of the call paths whose last region, or whose whole text, matches a pattern (fnmatch(3)).

    The start and the end of MPI are left out.
    """
    return [
        path
        for path in range(len(tree))
        if not tree.start_and_end[path] and (matches(pattern, tree.name(path)) or matches(pattern, tree.label(path)))
    ]


def efficiency_notes(columns: Sequence[EfficiencyColumn]) -> list[str]:
    """Return notes about factors that are not determined, and how to measure them."""
    notes = []
    if any(column.factors.missing for column in columns):
        notes.append(NOT_SEPARATED())
    if any("rate" in column.factors.values and column.scaling != "none" for column in columns):
        notes.append(NO_CYCLES())
    bounded = [column.run.name for column in columns if column.run is not None and column.run.slowest is None]
    if bounded:
        notes.append(UNKNOWN_RANKS(runs=bounded[0] if len(bounded) == 1 else f"{len(bounded)} runs"))
    return notes


def scaling_fact(columns: Sequence[EfficiencyColumn]) -> list[tuple[str, str]]:
    """Return a title and a text with the kind of scaling and the reference; empty if nothing can be compared."""
    found = [column for column in columns if column.scaling != "none"]
    if not found:
        return []
    kinds = " and ".join(dict.fromkeys(column.scaling for column in found))
    if len({column.reference for column in found}) > 1:
        return [("scaling", f"{kinds}, relative to the run on the fewest processors with the same other parameters")]
    return [("scaling", f"{kinds}, relative to {found[-1].reference}")]


def efficiency_json(view: EfficiencyView) -> dict[str, Any]:
    """Return the document of `quipu efficiency --json`."""
    paths = [path for path in range(len(view.tree)) if not view.tree.start_and_end[path]]
    losses = view.losses
    return document_json(
        "efficiency",
        view.title,
        quality=view.quality,
        notes=list(view.notes),
        configurations=[_column_json(column) for column in view.columns],
        waiting=waiting_json(view.tree, view.waiting),
        runs=[_column_json(column) for column in view.repetitions],
        call_paths=[
            {
                **path_json(view.tree, path),
                "configurations": [_factors_json(column.factors, path) for column in view.columns],
            }
            for path in paths
        ],
        losses=None
        if losses is None
        else {
            "configuration": view.columns.index(view.last),
            "slowest_rank": losses.rank,
            "elapsed": json_number(losses.elapsed),
            "rest": json_number(losses.rest),
            "call_paths": [
                {"id": path, "path": list(steps(view.tree, path)), **loss_parts(losses, path)}
                for path in losses.largest
            ],
        },
    )


def efficiency_data(view: EfficiencyView | None) -> dict[str, Any] | None:
    """Return the efficiencies for the report; None if there is no view, or all runs have one processor.

    - "headings", "rows": a table. Each row: "title", "depth", "values" (one for each heading, null if unknown).
    - "lost": the largest losses; null if the archive has no values of single ranks. "at" (the configuration), "share"
      (lost part of the elapsed time), "slowest" (the slowest rank; null for one rank), "paths" (each "path", "share",
      and "most": the factor with the largest loss).
    - "waits": causes of waiting, see `_waits`.
    """
    if view is None or all(column.ranks * column.threads == 1 for column in view.columns):
        return None
    columns = view.columns[-_MOST_COLUMNS:]
    found, lost = view.losses, None
    if found is not None and found.elapsed > 0.0:
        largest = [path for path in found.largest[:_MOST_LOSSES] if found.total[path] >= _WORTH * found.elapsed]
        parts = {
            path: {name: x or 0.0 for name, x in loss_parts(found, path).items() if name != "total"} for path in largest
        }
        lost = {
            "at": view.last.heading,
            "share": json_number(found.lost),
            "slowest": found.rank if view.last.ranks > 1 else None,
            "paths": [
                {
                    "path": path,
                    "share": json_number(float(found.total[path]) / found.elapsed),
                    "most": max(parts[path], key=lambda name: parts[path][name]),
                }
                for path in largest
            ],
        }
    return {
        "headings": [column.heading for column in columns],
        "rows": [
            {"title": row.title, "depth": row.depth, "values": [json_number(value) for value, _, _ in row.values]}
            for row in factor_rows(columns)
        ],
        "lost": lost,
        "waits": [] if view.waiting is None else _waits(view.waiting),
    }


def _waits(found: RootCauses) -> list[dict[str, Any]]:
    """Return the operations with most waiting, for the report: each "path", "seconds" of waiting, and "causes".

    Each cause: "path" and "rank" for which others waited, "share" of the seconds, and why this rank was late:
    "more_work" (true: more effort, false: slower, null: unknown), or "not_running" (see `Charge`).
    """
    return [
        {
            "path": cause.path,
            "seconds": json_number(cause.waiting),
            "causes": [
                {
                    "path": one.path,
                    "rank": one.rank,
                    "share": json_number(one.seconds / cause.waiting),
                    "more_work": one.more_work,
                    "not_running": one.not_running,
                }
                for one in named(cause)
            ],
        }
        for cause in notable_causes(found)[:_MOST_LOSSES]
    ]


def loss_parts(losses: Losses, path: int) -> dict[str, float | int | None]:
    """Return the seconds that a call path loses by each factor and in total; None for a value that is not finite."""
    parts = (losses.load_balance, losses.communication, losses.threads, losses.computation, losses.total)
    names = ("load_balance", "communication", "threads", "computation", "total")
    return {name: json_number(float(part[path])) for name, part in zip(names, parts, strict=True)}


def _column_json(column: EfficiencyColumn) -> dict[str, Any]:
    return {
        "point": {name: json_number(value) for name, value in column.point.items()},
        "run": None if column.run is None else column.run.name,
        "repetition": None if column.run is None else column.run.repetition,
        "ranks": column.ranks,
        "threads": column.threads,
        "elapsed": json_number(column.elapsed),
        "predicted": column.run is None,
        "scaling": column.scaling,
        "reference": column.reference,
        "factors": _factors_json(column.factors, -1),
        "missing": dict(column.factors.missing),
    }


def _factors_json(factors: Factors, scope: int) -> dict[str, Any]:
    found = {}
    for name in factors.values:
        value, low, high = factors.of(name, scope)
        if not math.isnan(value):
            found[name] = {"value": json_number(value), "low": json_number(low), "high": json_number(high)}
    return found


def reference_text(run: RunTimes) -> str:
    """Return a run as text: its configuration and its number of processors."""
    place = point_text(tuple(run.point), run.point.values())
    return f"{place} ({counted(run.processors, 'processor', 'processors')})"
