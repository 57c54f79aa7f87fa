# SPDX-License-Identifier: Apache-2.0
"""Choose unique names for the columns of a table of measurements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .printable import one_line

CALLPATH, REPETITION = "callpath", "repetition"


@dataclass(frozen=True)
class TableColumns:
    """The names of columns, by the names of their parameters or metrics.

    The other columns of a table are `callpath` and `repetition`.
    """

    parameters: dict[str, str]
    metrics: dict[str, str]

    @property
    def renamed(self) -> list[str]:
        """Return a text for each column whose name differs from the name of its parameter or metric."""
        kinds = (("parameter", self.parameters), ("metric", self.metrics))
        return [
            f"the {kind} {one_line(name)} is the column {column!r}: another column has its name"
            for kind, names in kinds
            for name, column in names.items()
            if column != one_line(name)
        ]


def table_columns(parameters: Iterable[str], metrics: Iterable[str]) -> TableColumns:
    """Return names of columns for these parameters and metrics.

    If a previous column already has the name, the name is `parameter NAME` or `metric NAME`. Names that differ only in
    upper and lower case count as equal, because many readers of tables do not distinguish upper and lower case.
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
