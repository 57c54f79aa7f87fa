"""The JSON views of the command line (`--json`): plain dictionaries with stable keys.

Every view has "format" (which view) and "schema" (its version; keys are added without a new version, and never
change their meaning within one). Numbers that were not measured are null. Call paths are numbered from 0, parents
before children; "path" is the list of displayed region names from the root.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from quipu.modeling.diagnosis import Diagnosis
from quipu.modeling.experiment import CallTree, Metric
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.model.serialize import to_json

from .terminal.tree import Selection
from .views import ChangeRow, Check, ModelRow, NoiseRow, RankedRow, Scope, SelectionRow, TreeView, statistics

SCHEMA = 1
_SCOPES: tuple[Scope, ...] = ("inclusive", "exclusive")


def show_json(view: TreeView, selection: Selection) -> dict[str, Any]:
    """Return a call tree: "title", "facts", "notes", "samples", "over", "metrics", "call_paths".

    Each call path: "id", "parent" (null for roots), "depth", "path", "region", and "values": per metric and scope
    ("inclusive", "exclusive") "value", "min", "mean", "max", "imbalance", and with `selection.spread` "samples",
    the list over ranks or repetitions. Of a run that has statistics over ranks only, inclusive values have "value"
    only, and there are no "samples". `selection.metrics`, `scope` and `depth` limit what is listed.
    """
    names = selection.metrics or tuple(sorted(view.values))
    scopes = (selection.scope,) if selection.scope else _SCOPES
    tables = {(name, scope): view.scoped(name, scope) for name in names for scope in scopes}
    found = {key: statistics(values, view.over) for key, values in tables.items()}
    if view.spread is not None and "exclusive" in scopes:
        found |= {(name, "exclusive"): view.spread[name] for name in names}
    paths = []
    for node in range(len(view.tree)):
        depth = int(view.tree.depth[node])
        if selection.depth is not None and depth > selection.depth:
            continue
        values: dict[str, dict[str, Any]] = {name: {} for name in names}
        for (name, scope), spread in found.items():
            words: tuple[str, ...] = ("value", "min", "mean", "max", "imbalance")
            if view.spread is not None and scope == "inclusive":  # only sums are known of what adds up
                words = ("value",)
            entry: dict[str, Any] = {word: _number(float(getattr(spread, word)[node])) for word in words}
            if selection.spread and view.spread is None:
                entry["samples"] = [_number(float(value)) for value in tables[name, scope][node]]
            values[name][scope] = entry
        paths.append({**path_json(view.tree, node), "values": values})
    return {
        "format": "quipu-show",
        "schema": SCHEMA,
        "title": view.title,
        "facts": dict(view.facts),
        "notes": list(view.notes),
        "samples": view.samples,
        "over": view.over,
        "metrics": [metric_json(view.metrics[name]) for name in names],
        "call_paths": paths,
    }


def path_json(tree: CallTree, node: int) -> dict[str, Any]:
    """Return "id", "parent", "depth", "path" and "region" of a call path."""
    region = tree.region_of(node)
    parent = int(tree.parent[node])
    return {
        "id": node,
        "parent": None if parent < 0 else parent,
        "depth": int(tree.depth[node]),
        "path": [tree.name(step) for step in tree.ancestry(node)],
        "region": {
            "name": region.name,
            "display": region.display,
            "kind": region.kind.name.lower(),
            "file": region.file,
            "line": region.line,
        },
    }


def metric_json(metric: Metric) -> dict[str, Any]:
    """Return "name", "unit", "kind", "over_locations" and "description" of a metric."""
    return {
        "name": metric.name,
        "unit": metric.unit,
        "kind": metric.kind,
        "over_locations": metric.over_locations,
        "description": metric.description,
    }


def ranking_json(title: str, metric: Metric, point: dict[str, float], rows: Sequence[RankedRow]) -> dict[str, Any]:
    """Return a ranking: "title", "metric", "point", "extrapolation" (of any row) and "ranking".

    Each entry: "path" (list of region names), "value", "low", "high", "share", "formula", "basis", "extrapolation".
    """
    return {
        "format": "quipu-predict",
        "schema": SCHEMA,
        "title": title,
        "metric": metric_json(metric),
        "point": point,
        "extrapolation": any(row.extrapolation for row in rows),
        "ranking": [
            {
                "path": list(row.path),
                "value": _number(row.value),
                "low": None if row.low is None else _number(row.low),
                "high": None if row.high is None else _number(row.high),
                "share": _number(row.share),
                "formula": row.formula,
                "basis": row.basis,
                "extrapolation": row.extrapolation,
            }
            for row in rows
        ],
    }


def models_json(title: str, rows: Sequence[ModelRow], models: Sequence[Model | None]) -> dict[str, Any]:
    """Return models: "title" and "models".

    Each: "path" (list of region names), "metric", "text", "smape" (percent), "basis", "note", and "model": the terms
    as in a file of models, null if there is none.
    """
    return {
        "format": "quipu-model-list",
        "schema": SCHEMA,
        "title": title,
        "models": [
            {
                "path": list(row.path),
                "metric": row.metric,
                "text": row.formula,
                "smape": _number(row.error),
                "basis": row.basis,
                "note": row.note,
                "model": None if model is None else to_json(model),
            }
            for row, model in zip(rows, models, strict=True)
        ],
    }


def diagnosis_json(title: str, diagnosis: Diagnosis) -> dict[str, Any]:
    """Return a diagnosis: "title", "point", "total" (seconds), "notes" and "findings", the largest loss first.

    Each finding: "id" (of the call path), "label", "cause" ("waiting", "contention", "cache effects"), "parameter",
    "growth", "predicted" and "lost" in seconds at the point, "slowdown_measured", "slowdown", "significance",
    "wait_share" (null if it was not measured), "effort", "basis", "evidence".
    """
    findings = [
        {
            "id": own.path,
            "label": own.label,
            "cause": own.cause.value,
            "parameter": own.parameter,
            "growth": own.growth,
            "predicted": _number(own.predicted),
            "lost": _number(own.lost),
            "slowdown_measured": _number(own.slowdown_measured),
            "slowdown": _number(own.slowdown),
            "significance": _number(own.significance),
            "wait_share": _number(own.wait_share),
            "effort": own.effort,
            "basis": own.basis,
            "evidence": own.evidence,
        }
        for own in diagnosis.findings
    ]
    return {
        "format": "quipu-diagnosis",
        "schema": SCHEMA,
        "title": title,
        "point": diagnosis.point,
        "total": _number(diagnosis.total),
        "notes": list(diagnosis.notes),
        "findings": findings,
    }


def selection_json(title: str, point: dict[str, float], rows: Sequence[SelectionRow]) -> dict[str, Any]:
    """Return what a filter keeps and drops: "title", "point", "regions".

    Each region: "region" (linker name), "kept", "share" (of the program without the start and the end of MPI),
    "visits", "overhead" (seconds), "reason".
    """
    return {
        "format": "quipu-filter",
        "schema": SCHEMA,
        "title": title,
        "point": point,
        "regions": [
            {
                "region": row.region,
                "kept": row.kept,
                "share": _number(row.share),
                "visits": _number(row.visits),
                "overhead": _number(row.overhead),
                "reason": row.reason,
            }
            for row in rows
        ],
    }


def checks_json(checks: Sequence[Check]) -> dict[str, Any]:
    """Return the checks of this machine: "ok" (nothing that is needed is missing) and "checks".

    Each check: "name", "state" ("ok", "warning", "missing"), "found", "needed_for", "remedy".
    """
    return {
        "format": "quipu-doctor",
        "schema": SCHEMA,
        "ok": all(check.state != "missing" for check in checks),
        "checks": [
            {
                "name": check.name,
                "state": check.state,
                "found": check.found,
                "needed_for": check.needed_for,
                "remedy": check.remedy,
            }
            for check in checks
        ],
    }


def _number(value: float) -> float | int | None:
    """Return a JSON number: integers as such, null for what is not finite."""
    if not math.isfinite(value):
        return None
    return int(value) if value == round(value) and abs(value) < 2**53 else value


def changes_json(rows: Sequence[ChangeRow]) -> dict[str, Any]:
    """Return "changes": where behaviour changes. Each: "path", "metric", "between", "below" and "above" as text."""
    return {
        "changes": [
            {
                "path": list(row.path),
                "metric": row.metric,
                "between": row.between,
                "below": row.below,
                "above": row.above,
            }
            for row in rows
        ]
    }


def noise_json(rows: Sequence[NoiseRow]) -> dict[str, Any]:
    """Return "noise": each "path", "metric", and fractions of the mean of a configuration.

    "range" (median over configurations of largest - smallest), "low" and "high" (5 and 95 % quantiles of the
    deviations), "worst" (the largest absolute one), "at" (where), "warning"; null where there are no repetitions.
    """
    return {
        "noise": [
            {
                "path": list(row.path),
                "metric": row.metric,
                "range": _number(row.level),
                "low": _number(row.low),
                "high": _number(row.high),
                "worst": _number(row.worst),
                "at": row.place,
                "warning": row.warning,
            }
            for row in rows
        ]
    }
