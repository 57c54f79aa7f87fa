# SPDX-License-Identifier: Apache-2.0
"""Views of the kernels of a program at a point: rows and facts for the terminal, the report and JSON.

A kernel is a group of call paths whose time is modeled together, from computation and memory accesses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quipu.modeling.kernels.limits import limit_of_group, limit_of_kernel, typical_cpi
from quipu.modeling.kernels.model import ProgramModel, ProgramPrediction
from quipu.modeling.kernels.roofline import Roofline
from quipu.modeling.pmnf.model import Prediction

from .json_views import json_number
from .model_views import beyond_notes
from .roofline_views import DrawnRoofline, drawn, roofline_json
from .text import percent, point_text, quantity

SCHEMA = 1
_LEAST = 5e-4  # kernels with a smaller share of the program are not shown in the terminal


@dataclass(frozen=True)
class KernelRow:
    """One kernel, or a group of MPI operations that are modeled together.

    total, compute, memory, communication: predicted seconds of a rank. share: of the program. cpi: cycles per
    instruction. blocking: part of the time of memory accesses that is not hidden by computation. formula: the model as
    text. cause, advice: the limit of the kernel, and what to do. residual: error of the fit. cpi and blocking are NaN
    for MPI operations.
    """

    name: str
    kind: str
    total: Prediction
    share: float
    compute: float
    memory: float
    communication: float
    cpi: float
    blocking: float
    formula: str
    cause: str
    advice: str
    residual: float


@dataclass(frozen=True)
class KernelPanel:
    """The kernels at a point for the report. place: the point as text. roofline: None without a roofline."""

    place: str
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    rows: tuple[KernelRow, ...]
    roofline: DrawnRoofline | None = None


def kernel_panel(model: ProgramModel, prediction: ProgramPrediction, found: Roofline | None = None) -> KernelPanel:
    """Return the kernels at a point for the report. found: their roofline at this point; None if unknown."""
    facts = kernel_facts(model, prediction)
    rows = shown(kernel_rows(model, prediction), False)
    notes, picture = kernel_notes(model, prediction.point), None if found is None else drawn(found)
    return KernelPanel(facts[0][1], tuple(facts[1:]), tuple(notes), tuple(rows), picture)


def kernel_rows(model: ProgramModel, prediction: ProgramPrediction) -> list[KernelRow]:
    """Return a row for each kernel and each group of MPI operations, the longest predicted time first."""
    whole = prediction.total.value
    rows = []
    for kernel in prediction.kernels:
        limit = limit_of_kernel(model, kernel, prediction.point)
        rows.append(
            KernelRow(
                kernel.kernel.name,
                kernel.kernel.kind.value,
                kernel.total,
                kernel.total.value / whole if whole > 0 else 0.0,
                kernel.compute.value,
                kernel.memory.value,
                0.0,
                typical_cpi(kernel.model),
                kernel.model.blocking,
                model.text(kernel.kernel.paths, prediction.point),
                limit.cause,
                limit.advice,
                kernel.model.residual,
            )
        )
    for group in prediction.groups:
        limit = limit_of_group(group, prediction.point)
        rows.append(
            KernelRow(
                group.model.group.name,
                group.model.group.kind.value,
                group.total,
                group.total.value / whole if whole > 0 else 0.0,
                0.0,
                0.0,
                group.total.value,
                float("nan"),
                float("nan"),
                model.text(group.model.group.paths, prediction.point),
                limit.cause,
                limit.advice,
                group.model.residual,
            )
        )
    return sorted(rows, key=lambda row: -row.total.value)


def kernel_facts(model: ProgramModel, prediction: ProgramPrediction) -> list[tuple[str, str]]:
    """Return (label, text) pairs for the head of the view."""
    total = prediction.total
    parts = {name: getattr(prediction, name).value for name in ("compute", "memory", "communication", "other")}
    whole = total.value or 1.0
    if (unknown := prediction.unexplained.value) >= _LEAST * whole:
        known = {name: value for name, value in parts.items() if value}
        parts = known | {"not known (times without counts)": unknown}
    facts = [
        ("point", point_text(model.parameters, [prediction.point[name] for name in model.parameters])),
        (
            "program",
            f"{quantity(total.value, 's')}, {quantity(total.lower, 's')} .. {quantity(total.upper, 's')} (90 %), "
            "the sum of the kernels below",
        ),
        ("of it", ", ".join(f"{name} {percent(value / whole)}" for name, value in parts.items())),
    ]
    if prediction.others.value > 0:
        facts.append(("start and end of MPI", f"{quantity(prediction.others.value, 's')}, not part of the program"))
    if model.blocking is not None:
        facts.append(("BF_comm", f"{model.blocking:.3g} of the time of the messages in the network"))
    clock = model.clock_at(prediction.point)
    facts.append(("clock", f"{clock / 1e9:.4g} GHz" if clock is not None else "not known: a cycle is 1 ns"))
    return facts


def kernel_notes(model: ProgramModel, point: Mapping[str, float]) -> list[str]:
    """Return notes: how far the point is beyond the measured range, and notes of the model."""
    return [*beyond_notes(model.parameters, point, model.ranges), *model.notes]


def shown(rows: list[KernelRow], everything: bool) -> list[KernelRow]:
    """Return the rows to show: all if `everything`, otherwise those with a notable share of the program."""
    return [row for row in rows if everything or row.share >= _LEAST]


def kernels_json(model: ProgramModel, prediction: ProgramPrediction, found: Roofline | None = None) -> dict[str, Any]:
    """Return the kernels at a point as a JSON document. Times are seconds of a rank, null if unknown.

    found: roofline of the kernels; None if unknown.
    """
    return {
        "format": "quipu-kernels",
        "schema": SCHEMA,
        "title": model.name,
        "point": dict(prediction.point),
        "method": "quipu",
        "clock_hz": model.clock_at(prediction.point),
        "blocking_communication": model.blocking,
        "total": _span(prediction.total),
        "compute": _span(prediction.compute),
        "memory": _span(prediction.memory),
        "communication": _span(prediction.communication),
        "other": _span(prediction.other),
        "unexplained": _span(prediction.unexplained),
        "start_and_end": _span(prediction.others),
        "kernels": [
            {
                "name": row.name,
                "kind": row.kind,
                "total": _span(row.total),
                "share": json_number(row.share),
                "compute": json_number(row.compute),
                "memory": json_number(row.memory),
                "communication": json_number(row.communication),
                "cpi": json_number(row.cpi),
                "blocking_memory": json_number(row.blocking),
                "residual": json_number(row.residual),
                "model": row.formula,
                "limit": row.cause,
                "advice": row.advice,
            }
            for row in kernel_rows(model, prediction)
        ],
        "roofline": None if found is None else roofline_json(found),
        "notes": kernel_notes(model, prediction.point),
    }


def _span(prediction: Prediction) -> dict[str, float | None]:
    return {name: json_number(getattr(prediction, name)) for name in ("value", "lower", "upper")}
