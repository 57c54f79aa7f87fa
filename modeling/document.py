"""An analysis as a JSON document, so that models can be kept, sent, and used without the measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from .analysis import Analysis
from .errors import FormatError, ModelingError
from .experiment import CallTree, Metric, Region, RegionKind
from .pmnf.model.serialize import expect_list, expect_number, expect_object, expect_text, from_json, to_json
from .pmnf.modeler import NoModel
from .priors.effort_time import PathModel

FORMAT, SCHEMA = "quipu-models", 1


def to_document(analysis: Analysis) -> dict[str, Any]:
    """Return the analysis as JSON data: {"format": "quipu-models", "schema": 1, ...}.

    "callpaths" lists region and parent of every call path; "models" has per metric one entry per call path, with
    exclusive models. Inclusive models are their sums.
    """
    tree = analysis.tree
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "name": analysis.name,
        "parameters": [
            {"name": name, "lowest": low, "highest": high}
            for name, (low, high) in zip(analysis.parameters, analysis.ranges, strict=True)
        ],
        "over_ranks": analysis.over_ranks,
        "notes": list(analysis.notes),
        "metrics": [asdict(metric) for metric in analysis.metrics.values()],
        "regions": [
            {"name": r.name, "display": r.display, "kind": r.kind.name.lower(), "file": r.file, "line": r.line}
            for r in tree.regions
        ],
        "callpaths": [
            {"region": int(region), "parent": int(parent), "label": tree.label(path)}
            for path, (region, parent) in enumerate(zip(tree.region, tree.parent, strict=True))
        ],
        "models": {name: [_entry(entry) for entry in entries] for name, entries in analysis.exclusive.items()},
    }


def _entry(entry: PathModel) -> dict[str, Any]:
    data: dict[str, Any] = {"basis": entry.basis}
    if entry.prior:
        data["prior"] = entry.prior
    if isinstance(entry.model, NoModel):
        data["no_model"] = entry.model.reason
    else:
        data["model"] = to_json(entry.model)
    return data


def from_document(data: object, source: object = "models") -> Analysis:
    """Return the analysis that `to_document` wrote; FormatError naming `source` if it is none of this schema."""
    document = expect_object(data, source, "the document")
    if document.get("format") != FORMAT:
        raise FormatError(source, f'not a file of models: "format" is {document.get("format")!r}, not "{FORMAT}"')
    if document.get("schema") != SCHEMA:
        raise FormatError(source, f"models of schema {document.get('schema')!r}; this version reads schema {SCHEMA}")
    parameters = [expect_object(p, source, "a parameter") for p in expect_list(document, "parameters", source)]
    metrics = [_metric(m, source) for m in expect_list(document, "metrics", source)]
    tree = _tree(document, source)
    models = expect_object(document.get("models"), source, "models")
    declared = {metric.name: metric for metric in metrics}
    exclusive: dict[str, tuple[PathModel, ...]] = {}
    for name in models:
        entries = expect_list(models, name, source)
        if name not in declared or len(entries) != len(tree):
            raise FormatError(source, f"models of {name!r}: unknown metric, or not one entry per call path")
        exclusive[name] = tuple(_path_model(entry, source) for entry in entries)
    over_ranks = expect_text(document.get("over_ranks", "mean"), source, "over_ranks")
    return Analysis(
        expect_text(document.get("name"), source, "name"),
        tuple(expect_text(p.get("name"), source, "name of a parameter") for p in parameters),
        tuple(
            (expect_number(p.get("lowest"), source, "lowest"), expect_number(p.get("highest"), source, "highest"))
            for p in parameters
        ),
        tree,
        {name: declared[name] for name in exclusive},
        exclusive,
        over_ranks,
        tuple(expect_text(n, source, "notes") for n in expect_list(document, "notes", source, optional=True)),
    )


def _metric(raw: object, source: object) -> Metric:
    data = expect_object(raw, source, "a metric")
    kind, over = data.get("kind"), data.get("over_locations")
    if kind not in ("effort", "cost") or over not in ("sum", "max"):
        raise FormatError(source, f"metric {data.get('name')!r}: kind {kind!r} or over_locations {over!r} is unknown")
    return Metric(
        expect_text(data.get("name"), source, "name of a metric"),
        expect_text(data.get("unit"), source, "unit"),
        kind,
        over,
        expect_text(data.get("description", ""), source, "description"),
    )


def _tree(document: Mapping[str, Any], source: object) -> CallTree:
    regions = tuple(_region(r, source) for r in expect_list(document, "regions", source))
    paths = [expect_object(p, source, "a call path") for p in expect_list(document, "callpaths", source)]
    region = np.array([int(expect_number(p.get("region"), source, "region")) for p in paths], dtype=np.int64)
    parent = np.array([int(expect_number(p.get("parent"), source, "parent")) for p in paths], dtype=np.int64)
    try:
        return CallTree(regions, region, parent)
    except ModelingError as error:
        raise FormatError(source, str(error)) from None


def _region(raw: object, source: object) -> Region:
    data = expect_object(raw, source, "a region")
    kind = expect_text(data.get("kind"), source, "kind of a region").upper()
    if kind not in RegionKind.__members__:
        raise FormatError(source, f"region kind {data.get('kind')!r} is unknown")
    return Region(
        expect_text(data.get("name"), source, "name of a region"),
        expect_text(data.get("display"), source, "display"),
        RegionKind[kind],
        expect_text(data.get("file", ""), source, "file"),
        int(expect_number(data.get("line", 0), source, "line")),
    )


def _path_model(raw: object, source: object) -> PathModel:
    data = expect_object(raw, source, "an entry of models")
    basis = expect_text(data.get("basis"), source, "basis")
    prior = expect_text(data.get("prior", ""), source, "prior")
    if "no_model" in data:
        return PathModel(NoModel(expect_text(data["no_model"], source, "no_model")), basis, prior)
    return PathModel(from_json(data.get("model"), source), basis, prior)
