# SPDX-License-Identifier: Apache-2.0
"""Create the JSON documents of the command line (`--json`): plain dictionaries with stable keys.

documents.toml lists all documents with their keys; tests check every output against it. Every document has "format"
(its name) and "schema" (its version). Numbers that were not measured are null. Call paths are numbered from 0, parents
before children; "path" is the list of display names of the regions from the root.

Inclusive values, totals, shares and rankings describe the program without the start and the end of MPI (since schema
2). The start and the end are marked, or have separate keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from quipu.modeling.experiment import CallTree, Metric, Region

from .tree_selection import largest_with_callers
from .views import ChangeRow, Check, ModelRow, NoiseRow, RankedRow, Scope, TreeOptions, TreeView, statistics, steps

if TYPE_CHECKING:
    from quipu.modeling.design.program import Budget, Search
    from quipu.modeling.diagnosis import Diagnosis
    from quipu.modeling.file_use import FileFinding
    from quipu.modeling.refine.selection import RegionSelection

    from .loop_views import LoopRow
    from .model_views import RankingView
    from .source_listing import SourceListing

SCHEMA = 2
_SCOPES: tuple[Scope, ...] = ("inclusive", "exclusive")


def show_json(view: TreeView, options: TreeOptions) -> dict[str, Any]:
    """Return a call tree: "title", "facts", "notes", "samples", "over", "oversubscribed", "metrics", "call_paths".

    "oversubscribed": measured with more ranks than processors. Each call path has "id", "parent" (null for roots),
    "depth", "path", "region", "start_and_end" (whether it belongs to the start or the end of MPI), and "values".

    "values" contains for each metric and scope ("inclusive", "exclusive") the keys "value", "min", "mean", "max",
    "imbalance", and with `options.spread` "samples", the list of the values of ranks or repetitions. If the run has
    only statistics over ranks, inclusive values have only "value", and there are no "samples".

    options: metrics, scope, depth and top limit the call paths and values.
    """
    names = options.metrics or tuple(sorted(view.values))
    scopes = (options.scope,) if options.scope else _SCOPES
    samples = {(name, scope): view.scoped(name, scope) for name in names for scope in scopes}
    found = {key: statistics(values, view.over) for key, values in samples.items()}
    if view.spread is not None and "exclusive" in scopes:
        found |= {(name, "exclusive"): view.spread[name] for name in names}
    paths, kept = [], largest_with_callers(view, options)
    for node in range(len(view.tree)):
        depth = int(view.tree.depth[node])
        if not kept[node] or (options.depth is not None and depth > options.depth):
            continue
        values: dict[str, dict[str, Any]] = {name: {} for name in names}
        for (name, scope), spread in found.items():
            words: tuple[str, ...] = ("value", "min", "mean", "max", "imbalance")
            if view.spread is not None and scope == "inclusive":  # statistics of inclusive values need single samples
                words = ("value",)
            entry: dict[str, Any] = {word: json_number(float(getattr(spread, word)[node])) for word in words}
            if options.spread and view.spread is None:
                entry["samples"] = [json_number(float(value)) for value in samples[name, scope][node]]
            values[name][scope] = entry
        paths.append({**path_json(view.tree, node), "values": values})
    return document_json(
        "show",
        view.title,
        facts=dict(view.facts),
        notes=list(view.notes),
        samples=view.samples,
        over=view.over,
        oversubscribed=view.oversubscribed,
        metrics=[metric_json(view.metrics[name]) for name in names],
        call_paths=paths,
    )


def path_json(tree: CallTree, node: int) -> dict[str, Any]:
    """Return "id", "parent", "depth", "path", "region" and "start_and_end" of a call path."""
    parent = int(tree.parent[node])
    return {
        "id": node,
        "parent": None if parent < 0 else parent,
        "depth": int(tree.depth[node]),
        "path": list(steps(tree, node)),
        "region": region_json(tree.region_of(node)),
        "start_and_end": bool(tree.start_and_end[node]),
    }


def region_json(region: Region) -> dict[str, Any]:
    """Return "name", "display", "kind", "file" and "line" of a region."""
    return _entry(region, "name display kind file line") | {"kind": region.kind.name.lower()}


def metric_json(metric: Metric) -> dict[str, Any]:
    """Return "name", "unit", "kind", "over_locations" and "description" of a metric."""
    return _entry(metric, "name unit kind over_locations description")


def json_number(value: float) -> float | int | None:
    """Return a number for JSON: an int if it has no fraction, None if it is not finite."""
    if not math.isfinite(value):
        return None
    return int(value) if value == round(value) and abs(value) < 2**53 else value


def _entry(row: object, keys: str) -> dict[str, Any]:
    """Return attributes of a row as a dictionary.

    keys: names separated by blanks; `key=attribute` if the attribute has another name than the key.
    """
    pairs = (word.partition("=") for word in keys.split())
    return {key: _value(getattr(row, name or key)) for key, _, name in pairs}


def _value(value: Any) -> Any:
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, tuple):
        return list(value)
    return value.value if isinstance(value, Enum) else value


def document_json(name: str, title: str, **content: Any) -> dict[str, Any]:
    """Return a document with its keys "format" and "schema". name: as in documents.toml, without "quipu-"."""
    return {"format": f"quipu-{name}", "schema": SCHEMA, "title": title, **content}


def ranking_json(title: str, point: dict[str, float], view: RankingView, quality: str = "") -> dict[str, Any]:
    """Return a ranking of call paths by their predicted value at a point.

    Keys: "title", "quality" (of the measurement, one line), "metric", "point", "extrapolation" (whether any row
    extrapolates), "beyond", "notes", "ranking", "program", "one_run", "start_and_end".

    - Each entry of "ranking": "path" (list of region names), "value", "low", "high", "share", "formula", "basis",
      "extrapolation", "beyond" (ratio of the point to the measured range by parameter, empty inside of it),
      "oversubscribed" (the model depends on runs with more ranks than processors).
    - "program": the sum over the program; null if the metric does not add up over call paths.
    - "one_run": the interval that contains nine of ten single runs; null if unknown.
    - "start_and_end": entries of the start and the end of MPI, which are not part of the program; first their sum.
    """
    return document_json(
        "predict",
        title,
        quality=quality,
        metric=metric_json(view.metric),
        point=point,
        extrapolation=bool(view.beyond) or any(row.extrapolation for row in view.rows),
        beyond=_factors(view.beyond),
        notes=list(view.notes),
        program=None if view.program is None else _ranked(view.program),
        one_run=None if view.one_run is None else list(view.one_run),
        ranking=[_ranked(row) for row in view.rows],
        start_and_end=[_ranked(row) for row in view.start_and_end],
    )


def search_json(title: str, search: Search, budget: Budget, counting: dict[str, Any] | None) -> dict[str, Any]:
    """Return suggested runs: "budget", "spent" and "whole" in core hours, "target", "candidates", "suggestions".

    "whole": cost of all candidates. "counting": the count-only run that should come first
    (`deciding_text.counting_json`); null if none is needed.

    Each suggestion: "point", "repetition", "core_hours", "gain" (expected relative reduction of the variance of the
    prediction; null if the strategy does not compute it), "reason".
    """
    return document_json(
        "suggest",
        title,
        budget=budget.hours(search.whole),
        spent=search.spent,
        whole=search.whole,
        target=dict(zip(search.state.parameters, search.state.target.tolist(), strict=True)),
        candidates=len(search.state.candidates),
        counting=counting,
        suggestions=[
            {
                "point": search.point(one),
                "repetition": one.repetition,
                "core_hours": one.cost,
                "gain": None if math.isnan(one.gain) else one.gain,
                "reason": one.reason,
            }
            for one in search.suggestions
        ],
    )


def _ranked(row: RankedRow) -> dict[str, Any]:
    keys = "path value low high share formula basis extrapolation oversubscribed"
    return {**_entry(row, keys), "beyond": _factors(row.beyond)}


def _factors(beyond: Mapping[str, float]) -> dict[str, Any]:
    return {name: json_number(times) for name, times in beyond.items()}


def models_json(title: str, rows: Sequence[ModelRow]) -> dict[str, Any]:
    """Return models as a JSON document: "title" and "models".

    Each model: "path" (list of region names), "metric", "text", "smape" (percent), "basis", "note", "oversubscribed"
    (whether it depends on runs with more ranks than processors), "start_and_end" (whether the call path belongs to the
    start or the end of MPI), and "model" (the terms as in a file of models; null if there is no model).
    """
    from quipu.modeling.pmnf.model.serialize import to_json

    keys = "path metric text=formula smape=error basis note oversubscribed start_and_end"
    models = [{**_entry(row, keys), "model": None if row.model is None else to_json(row.model)} for row in rows]
    return document_json("model-list", title, models=models)


def diagnosis_json(title: str, diagnosis: Diagnosis, quality: str = "") -> dict[str, Any]:
    """Return a diagnosis: the call paths whose time grows faster than their effort, and why.

    - "title", "quality" (of the measurement, one line), "point", "notes".
    - "predicted": seconds of the program, as in `ranking_json`. "total": seconds from effort alone, without waiting and
      slowdown. "start_and_end": seconds of the start and the end of MPI.
    - "oversubscribed_share": share of the total that is predicted from runs with more ranks than processors.
    - "without_effort": share of the total in call paths without effort, which can have no finding.
    - "beyond": as in `ranking_json`.
    - "findings": the largest loss first. Each: "id" (of the call path), "label", "cause" ("waiting", "contention",
      "cache effects"), "parameter", "growth", "predicted" and "lost" in seconds at the point, "slowdown_measured",
      "slowdown", "significance", "wait_share" (null if it was not measured), "effort", "basis", "evidence".
    - "others": call paths that lose time without a finding. Each: "id", "label", "predicted", "lost", "basis".
    """
    keys = (
        "id=path label cause parameter growth predicted lost slowdown_measured slowdown significance wait_share effort "
        "basis evidence"
    )
    return document_json(
        "diagnosis",
        title,
        quality=quality,
        point=diagnosis.point,
        predicted=json_number(diagnosis.predicted),
        total=json_number(diagnosis.total),
        start_and_end=json_number(diagnosis.start_and_end),
        oversubscribed_share=json_number(diagnosis.oversubscribed_share),
        without_effort=json_number(diagnosis.without_effort),
        beyond=_factors(diagnosis.beyond),
        notes=list(diagnosis.notes),
        findings=[_entry(finding, keys) for finding in diagnosis.findings],
        others=[_entry(one, "id=path label predicted lost basis") for one in diagnosis.others],
    )


def files_json(findings: Sequence[FileFinding]) -> list[dict[str, Any]]:
    """Return findings about the use of files.

    Each: "id" (of the call path), "label", "group" (of files), "use", "measured", "at_target", "unit", "size" (mean
    bytes of a write; null for files per rank).
    """
    keys = "id=path label group measured at_target unit size"
    return [{**_entry(one, keys), "use": one.use.value} for one in findings]


def filter_json(title: str, point: dict[str, float], selection: RegionSelection) -> dict[str, Any]:
    """Return the content of a filter: "title", "point", "regions".

    "total": seconds of the program. "start_and_end": seconds of the start and the end of MPI. Each region: "region"
    (display name), "kept", "share" (of "total"), "visits", "overhead" (seconds), "reason".
    """
    regions = [
        {"region": one.region.display, "kept": kept, **_entry(one, "share visits overhead reason")}
        for choices, kept in ((selection.kept, True), (selection.dropped, False))
        for one in choices
    ]
    times = {"total": json_number(selection.total), "start_and_end": json_number(selection.start_and_end)}
    return document_json("filter", title, point=point, **times, regions=regions)


def checks_json(checks: Sequence[Check]) -> dict[str, Any]:
    """Return the checks of this machine: "ok" (whether all required components exist) and "checks".

    Each check: "name", "state" ("ok", "warning", "missing"), "found", "needed_for", "remedy".
    """
    entries = [_entry(check, "name state found needed_for remedy") for check in checks]
    ok = all(check.state != "missing" for check in checks)
    return {"format": "quipu-doctor", "schema": SCHEMA, "ok": ok, "checks": entries}


def changes_json(rows: Sequence[ChangeRow]) -> dict[str, Any]:
    """Return the key "changes": changes of behaviour, each with "path", "metric", "between", "below", "above".

    "between": the parameter values between which the behaviour changes. "below", "above": the models on both sides.
    """
    return {"changes": [_entry(row, "path metric between below above") for row in rows]}


def noise_json(rows: Sequence[NoiseRow]) -> dict[str, Any]:
    """Return the key "noise": the noise of metrics of call paths, relative to the mean of a configuration.

    Each: "path", "metric", "range" (median over configurations of largest - smallest), "low" and "high" (5 and 95 %
    quantiles of the deviations), "worst" (the largest absolute deviation), "at" (its configuration), "warning". The
    numbers are null without repetitions.
    """
    return {"noise": [_entry(row, "path metric range=level low high worst at=place warning") for row in rows]}


def loops_json(title: str, metric: str, rows: Sequence[LoopRow], point: Mapping[str, float] | None) -> dict[str, Any]:
    """Return the loops of an experiment: "title", "metric", "point" and "loops".

    Each loop: "path", "place" (file:line), "depth" (number of enclosing loops), "share" (of the metric at the point, or
    at the largest measured values), "executions" (formula for all ranks together), "exact" (whether the formula
    reproduces all runs). With a point also "value", "low" and "high" (predicted executions and their 90 % interval).
    """
    keys = "path place depth share executions exact" + " value low high" * (point is not None)
    at = None if point is None else dict(point)
    return document_json("loop-list", title, metric=metric, point=at, loops=[_entry(row, keys) for row in rows])


def source_json(source: SourceListing, pattern: str | None, inlined: bool = False) -> dict[str, Any]:
    """Return the effort of source lines as a JSON document.

    "lines": for each call path and source line "callpath", "function" (display name), "name" (linker name), "file",
    "line", "values". "call_paths": the call paths of these lines, as in `quipu show --json`. pattern: as in
    `source_view`; if `inlined`, as in `inlined_view`.
    """
    lines = []
    for path, line, values in source.rows(pattern, inlined):
        numbers = {metric.name: value for metric, value in zip(source.metrics, values, strict=True)}
        lines.append({"callpath": path, **_entry(line, "function name file line"), "values": numbers})
    return document_json(
        "source",
        str(source.run.path),
        over=source.over,
        metrics=[metric_json(metric) for metric in source.metrics],
        call_paths=[path_json(source.run.tree, path) for path in sorted({entry["callpath"] for entry in lines})],
        lines=lines,
    )
