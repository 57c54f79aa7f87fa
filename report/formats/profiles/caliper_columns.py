# SPDX-License-Identifier: Apache-2.0
"""Interpret the names of columns in files of Caliper: metric, combination over ranks, inclusive or exclusive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from quipu.modeling.experiment import Metric
from quipu.modeling.metrics import METRICS

from ...views import Over

_NAMES = {
    "time.duration": ("time", 1.0),
    "time.duration.ns": ("time", 1e-9),
    "time.inclusive.duration": ("time", 1.0),
    "time.inclusive.duration.ns": ("time", 1e-9),
    "rc.count": ("visits", 1.0),
    "region.count": ("visits", 1.0),
}
_UNITS = {"sec": "s", "bytes": "B", "Byte": "B"}
_NUMBERS = ("int", "uint", "double")
_STRUCTURE = ("mpi.rank", "aggregate.slot", "loop.start_iteration", "loop.iterations")
_OVER = {"avg": "mean", "max": "max", "sum": "sum", "min": "min"}


@dataclass(frozen=True)
class Column:
    """A column of a file.

    attribute: its name in the file. over: how its values were combined over ranks ("mean", "max", "sum"); empty if they
    were not combined. inclusive: whether the values are inclusive. factor: converts its values to the unit of `metric`.
    """

    attribute: str
    metric: Metric
    over: str
    inclusive: bool
    factor: float


def column_of(attribute: Any) -> Column | None:
    """Return the column of an attribute of Caliper; None if its values are not sums of numbers.

    Example of a name: `avg#inclusive#sum#time.duration` is the mean over ranks of the inclusive time, summed over
    threads and visits.
    """
    name = attribute.name()
    *steps, base = name.split("#")
    structure = base in _STRUCTURE or base.startswith("timeseries.") or "highwatermark" in base
    if structure or not attribute.is_value() or attribute.attribute_type() not in _NUMBERS:
        return None
    inclusive = "inclusive" in steps or ".inclusive." in base
    steps = [step for step in steps if step not in ("inclusive", "scale", "iscale")]
    over = _OVER.get(steps[0], "?") if len(steps) == 2 else ""
    if len(steps) > 2 or steps[-1:] not in ([], ["sum"]) or over in ("?", "min"):
        return None
    known, factor = _NAMES.get(base, (base, 1.0))
    unit = str(attribute.get("attribute.unit") or "1")
    metric = METRICS.get(known) or Metric(known, _UNITS.get(unit, unit))
    return Column(name, metric, over, inclusive, factor)


def chosen(columns: Sequence[Column], over_ranks: Over) -> list[Column]:
    """Return one column per metric, combined by `over_ranks` or not combined over ranks.

    Columns with exclusive values have priority, then columns that are combined by `over_ranks`.
    """
    found: dict[str, Column] = {}
    for column in sorted(columns, key=lambda one: (one.inclusive, one.over != over_ranks)):
        if column.over in ("", over_ranks):
            found.setdefault(column.metric.name, column)
    return list(found.values())
