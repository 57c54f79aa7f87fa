# SPDX-License-Identifier: Apache-2.0
"""Convert the models of an experiment to a JSON document and back, so that they can be used without measurements."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .analysis import Analysis
from .documents import Real, typed
from .errors import FormatError
from .experiment import Metric
from .pmnf import Model, from_json, to_json
from .pmnf.options import NoModel
from .priors.path_model import PathModel
from .slowest_rank import SlowestRank
from .tree_document import PathEntry, RegionEntry, tree_json, tree_of

FORMAT, SCHEMA = "quipu-models", 1


def to_document(analysis: Analysis) -> dict[str, Any]:
    """Return the models as JSON data: {"format": "quipu-models", "schema": 1, ...}.

    "callpaths" contains the region and the parent of every call path. "models" contains for each metric the exclusive
    models of all call paths; inclusive models are sums of these. The document does not contain laws of counts, rates,
    and `Analysis.heap_moments`.
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
        "oversubscribed": [list(point) for point in analysis.oversubscribed],
        "slowest_rank": None if analysis.slowest_rank is None else asdict(analysis.slowest_rank),
        "run_scatter": analysis.run_scatter,
        "quality": analysis.quality,
        "timed_ranges": [list(ends) for ends in analysis.timed_ranges],
        "metrics": [asdict(metric) for metric in analysis.metrics.values()],
        **tree_json(tree),
        "models": {name: [_to_json(entry) for entry in entries] for name, entries in analysis.exclusive.items()},
    }


def _to_json(entry: PathModel) -> dict[str, Any]:
    data: dict[str, Any] = {"basis": entry.basis}
    if entry.prior:
        data["prior"] = entry.prior
    if entry.oversubscribed:
        data["oversubscribed"] = True
    if entry.lower is not None:
        data["from_effort"] = to_json(entry.lower)
    if isinstance(entry.model, NoModel):
        data["no_model"] = entry.model.reason
    else:
        data["model"] = to_json(entry.model)
    return data


@dataclass(frozen=True)
class _Parameter:
    name: str
    lowest: Real
    highest: Real


@dataclass(frozen=True)
class _Entry:
    basis: str
    prior: str = ""
    oversubscribed: bool = False
    model: dict[str, Any] | None = None
    no_model: str | None = None
    from_effort: dict[str, Any] | None = None


@dataclass(frozen=True)
class _Document:
    name: str
    parameters: list[_Parameter]
    metrics: list[Metric]
    regions: list[RegionEntry]
    callpaths: list[PathEntry]
    models: dict[str, list[_Entry]]
    over_ranks: str = "mean"
    notes: tuple[str, ...] = ()
    oversubscribed: tuple[tuple[Real, ...], ...] = ()
    slowest_rank: SlowestRank | None = None
    run_scatter: Real | None = None
    quality: str = ""
    timed_ranges: tuple[tuple[Real, Real], ...] = ()


def from_document(data: object, source: object = "models") -> Analysis:
    """Return the models of data that `to_document` returned.

    source: name of the file for errors. Raises FormatError for data of another format or schema, or if entries do not
    match.
    """
    if isinstance(data, dict) and data.get("format") != FORMAT:
        raise FormatError(source, f'is not a file of models: "format" is {data.get("format")!r}, not "{FORMAT}"')
    if isinstance(data, dict) and data.get("schema") != SCHEMA:
        raise FormatError(
            source, f"has schema {data.get('schema')!r}, this Quipu reads schema {SCHEMA}: model the experiment again"
        )
    document = typed(data, _Document, source)
    tree = tree_of(document.regions, document.callpaths, source)
    metrics = {metric.name: metric for metric in document.metrics}
    parameters = tuple(own.name for own in document.parameters)
    if len(set(parameters)) < len(parameters):
        raise FormatError(source, "parameters: one is named twice")
    for name, entries in document.models.items():
        if name not in metrics or len(entries) != len(tree):
            raise FormatError(source, f"models of {name!r}: unknown metric, or not one entry per call path")
    if any(len(point) != len(document.parameters) for point in document.oversubscribed):
        raise FormatError(source, "oversubscribed: a point does not have one number for each parameter")
    slowest = document.slowest_rank
    if slowest is not None and (len(slowest.point) != len(document.parameters) or not slowest.mean > 0):
        raise FormatError(source, "slowest_rank: no number for each parameter, or a mean that is not above 0")
    if document.run_scatter is not None and not document.run_scatter >= 0:
        raise FormatError(source, "run_scatter: not a number of at least 0")
    if len(document.timed_ranges) not in (0, len(document.parameters)):
        raise FormatError(source, "timed_ranges: not one range for each parameter")
    return Analysis(
        document.name,
        parameters,
        tuple((own.lowest, own.highest) for own in document.parameters),
        tree,
        {name: metrics[name] for name in document.models},
        {
            name: tuple(_path_model(own, parameters, source) for own in entries)
            for name, entries in document.models.items()
        },
        document.over_ranks,
        document.notes,
        document.oversubscribed,
        slowest,
        document.run_scatter,
        document.quality,
        timed_ranges=document.timed_ranges,
    )


def _path_model(entry: _Entry, parameters: tuple[str, ...], source: object) -> PathModel:
    model = from_json(entry.model, source) if entry.no_model is None else NoModel(entry.no_model)
    lower = None if entry.from_effort is None else from_json(entry.from_effort, source)
    if any(isinstance(own, Model) and own.parameters != parameters for own in (model, lower)):
        raise FormatError(source, f"models: one is not of the parameters {', '.join(parameters)}, in this order")
    return PathModel(model, entry.basis, entry.prior, entry.oversubscribed, lower)
