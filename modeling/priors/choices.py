"""The priors of every call path of an experiment: what its effort says of the order of its time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..experiment import Experiment, FloatArray, Metric, RegionKind
from ..pmnf.model import Model
from ..pmnf.modeler import DEFAULT, NoModel, Options, fit_models
from . import communication, computation
from .fit import Prior
from .requests import requested_bytes
from .table import ANY_DATA, Bytes, Row, Scale, other_rows, row_of

_COLUMN = Metric("column", "1", "effort")
# Effort of communication, and what is no amount of work.
_NOT_COMPUTATION = frozenset(("blocks", "visits", "comm_size"))
_NOT_COMPUTATION |= {f"{what}_{way}" for what in ("bytes", "messages") for way in ("sent", "received")}
_Flags = NDArray[np.bool_]


def executed(experiment: Experiment) -> _Flags | None:
    """Return (call paths, configurations): where visits say that a call path was executed; None without visits.

    Where a call path has no visits but other measurements, it is taken as executed.
    """
    visits = experiment.values.get("visits")
    if visits is None:
        return None
    return np.asarray(np.isnan(visits).all(axis=2) | (np.nan_to_num(visits, nan=0.0) > 0).any(axis=2), dtype=bool)


def time_priors(
    experiment: Experiment, effort: Mapping[str, list[Model | NoModel]] | None = None, options: Options = DEFAULT
) -> list[list[Prior]]:
    """Return the priors of the time of each call path, the most trusted one first; none where nothing is known.

    effort: models of effort metrics by metric name, as far as they are made already.
    """
    choices: list[list[Prior]] = [[] for _ in range(len(experiment.tree))]
    happened = executed(experiment)
    _computation(experiment, choices, effort or {}, happened, options)
    _communication(experiment, choices, happened, options)
    return choices


def _computation(
    experiment: Experiment,
    choices: list[list[Prior]],
    known: Mapping[str, list[Model | NoModel]],
    happened: _Flags | None,
    options: Options,
) -> None:
    blocks = experiment.values.get("blocks")
    if blocks is None:
        return
    counted = np.nan_to_num(blocks, nan=0.0).max(axis=(1, 2), initial=0.0) > 0
    models = known.get("blocks") or fit_models(
        experiment.points, blocks, experiment.metric("blocks"), experiment.parameters, options, happened
    )
    others = {
        name: known.get(name)
        or fit_models(experiment.points, values, experiment.metric(name), experiment.parameters, options, happened)
        for name, values in experiment.values.items()
        if name not in _NOT_COMPUTATION and experiment.metric(name).is_effort
    }
    for path, model in enumerate(models):
        is_mpi = experiment.tree.region_of(path).kind is RegionKind.MPI
        if isinstance(model, Model) and counted[path] and not is_mpi:
            choices[path] = computation.priors(model)
            if model.terms:
                more = {name: m for name, own in others.items() if isinstance(m := own[path], Model)}
                choices[path].extend(computation.further_priors(model, more))


def _communication(
    experiment: Experiment,
    choices: list[list[Prior]],
    happened: _Flags | None,
    options: Options,
) -> None:
    tree = experiment.tree
    found = _rows(experiment)
    if not found or "visits" not in experiment.values:
        return
    paths, rows = list(found), list(found.values())
    flags = None if happened is None else happened[paths]
    visits = experiment.values["visits"][paths]
    nothing = np.where(np.isnan(experiment.values["visits"]), np.nan, 0.0)
    sent, received, sizes = (
        experiment.values.get(name, nothing) for name in ("bytes_sent", "bytes_received", "comm_size")
    )
    processes = np.maximum(sizes[paths], 1.0)
    requested = requested_bytes(tree, sent, received)
    for i, (path, row) in enumerate(found.items()):
        if row.bytes is Bytes.REQUESTED and not requested[path].any():
            (rows[i],) = other_rows(row)
    transferred = np.stack(
        [
            communication.bytes_of(row, sent[path], received[path], processes[i], requested[path])
            for i, (path, row) in enumerate(zip(paths, rows, strict=True))
        ]
    )
    transferred = np.where(np.isnan(visits), np.nan, transferred)

    def model(values: FloatArray) -> list[Model | NoModel]:
        return fit_models(experiment.points, values, _COLUMN, experiment.parameters, options, flags)

    size_models, visit_models, byte_models = model(processes), model(visits), model(transferred)
    alternatives = [(row, *other_rows(row)) for row in rows]
    direct: dict[Scale, tuple[list[Model | NoModel], list[Model | NoModel]]] = {}
    used = {s for own in alternatives for row in own for s in (row.latency, row.transfer, row.reduction)}
    for scale in sorted(used - {None}, key=str):
        assert scale is not None
        values = communication.scale_values(scale, processes)
        direct[scale] = model(visits * values), model(transferred * values)
    for index, path in enumerate(paths):
        size, calls, volume = size_models[index], visit_models[index], byte_models[index]
        if not isinstance(calls, Model):
            continue
        for row in alternatives[index]:
            details = f"B = {volume}" if row.bytes is not Bytes.NONE and isinstance(volume, Model) else ""
            columns = _columns(row, index, size, calls, volume, direct)
            prior = communication.prior(row, tree.name(path), columns, details)
            if not prior.columns:  # a communicator of one process: nothing but the calls
                prior = communication.prior(row, tree.name(path), {"α": calls}, details)
            if prior.columns and prior.columns not in [known.columns for known in choices[path]]:
                choices[path].append(prior)


def _rows(experiment: Experiment) -> dict[int, Row]:
    """Return the row of Table I of every MPI call path that has one, or that moves data without one."""
    tree = experiment.tree
    moves = np.zeros(len(tree), dtype=bool)
    for name in ("bytes_sent", "bytes_received"):
        if name in experiment.values:
            moves |= np.asarray((np.nan_to_num(experiment.values[name]) > 0).any(axis=(1, 2)), dtype=bool)
    result = {}
    for path in range(len(tree)):
        if tree.region_of(path).kind is RegionKind.MPI:
            row = row_of(tree.region_of(path).name) or (ANY_DATA if moves[path] else None)
            if row is not None:
                result[path] = row
    return result


def _columns(
    row: Row,
    index: int,
    size: Model | NoModel,
    calls: Model,
    volume: Model | NoModel,
    direct: dict[Scale, tuple[list[Model | NoModel], list[Model | NoModel]]],
) -> dict[str, Model]:
    """Return the models of what α, β and γ are multiplied with.

    Where the size of the communicator is a parameter, the factors of the table are multiplied with the models of
    calls and bytes; where it is another function (a row of a process grid), their product is modeled as measured.
    """
    columns: dict[str, Model] = {}
    wanted: list[tuple[str, Scale | None, Model | NoModel, int]] = [
        ("α", row.latency, calls, 0),
        ("β", row.transfer, volume, 1),
        ("γ", row.reduction, volume, 1),
    ]
    for symbol, scale, factor, kind in wanted:
        if scale is None or not isinstance(factor, Model):
            continue
        symbolic = communication.scale_model(scale, size) if isinstance(size, Model) else None
        if symbolic is not None:
            columns[symbol] = factor.times(symbolic)
        else:
            measured = direct[scale][kind][index]
            if isinstance(measured, Model):
                columns[symbol] = measured
    return columns
