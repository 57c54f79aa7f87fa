# SPDX-License-Identifier: Apache-2.0
"""Unique names of the columns of a table of measurements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .printable import one_line

CALLPATH, REPETITION = "callpath", "repetition"


@dataclass(frozen=True)
class TableColumns:
    """The columns of parameters and metrics by their names; `callpath` and `repetition` are the other columns."""

    parameters: dict[str, str]
    metrics: dict[str, str]

    @property
    def renamed(self) -> list[str]:
        """Return the texts about the columns whose name differs from the name of their parameter or metric."""
        kinds = (("parameter", self.parameters), ("metric", self.metrics))
        return [
            f"the {kind} {one_line(name)} is the column {column!r}: another column has its name"
            for kind, names in kinds
            for name, column in names.items()
            if column != one_line(name)
        ]


def table_columns(parameters: Iterable[str], metrics: Iterable[str]) -> TableColumns:
    """Return the columns of a table with these parameters and metrics.

    A parameter with the name of a previous column becomes the column `parameter NAME`, a metric `metric NAME`. Names
    that differ only in upper and lower case count as equal, because many readers of tables do not distinguish them.
    """
    taken = {CALLPATH, REPETITION}
    return TableColumns(_unused("parameter", parameters, taken), _unused("metric", metrics, taken))


def _unused(kind: str, names: Iterable[str], taken: set[str]) -> dict[str, str]:
    found = {}
    for name in names:
        column = one_line(name)
        while column.casefold() in taken:
            column = f"{kind} {column}"
        taken.add(column.casefold())
        found[name] = column
    return found
