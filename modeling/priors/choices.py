# SPDX-License-Identifier: Apache-2.0
"""List the priors of every call path of an experiment: the order of its time according to its effort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np

from ..experiment import Experiment, FloatArray, Metric, RegionKind
from ..pmnf.model import Factor, Model, Term
from ..pmnf.modeler import fit_models
from ..pmnf.options import DEFAULT, NoModel, Options
from . import communication, computation
from .prior import Prior
from .requests import requested_bytes
from .table import ANY_DATA, Bytes, Row, Scale, other_rows, row_of
from .untimed import OF_CALLS, models_with_untimed, with_untimed

_COLUMN = Metric("column", "1", "effort")
# Effort of communication, and metrics that do not measure an amount of work.
_NOT_COMPUTATION = OF_CALLS | {"blocks"}
_OF_MESSAGES = ("visits", "bytes_sent", "bytes_received")


def time_priors(
    experiment: Experiment, effort: Mapping[str, list[Model | NoModel]], options: Options = DEFAULT
) -> list[list[Prior]]:
    """Return the priors of the time of each call path, the most plausible first; empty if nothing is known.

    effort: models of all measured effort metrics, by name, one entry per call path. The effort of a call path without a
    separate time belongs to its caller (`untimed`).
    """
    choices: list[list[Prior]] = [[] for _ in range(len(experiment.tree))]
    whole = with_untimed(experiment)
    of_computation = models_with_untimed(experiment, whole, effort, options)
    _computation(whole, choices, of_computation)
    _communication(experiment, choices, effort, options)
    for path, own in enumerate(choices):
        is_mpi = experiment.tree.region_of(path).kind is RegionKind.MPI
        amounts = [effort[name][path] for name in _OF_MESSAGES if name in effort] if is_mpi else []
        beyond = _beyond_one(experiment, amounts or [of_computation["blocks"][path]]) if own else ()
        choices[path] = [replace(prior, beyond_one=beyond) for prior in own] if beyond else own
    return choices


def _beyond_one(experiment: Experiment, effort: Sequence[Model | NoModel]) -> tuple[str, ...]:
    """Return the parameters with measured value 1 that a model of effort leaves out."""
    lowest = [[low for low, _ in model.ranges] for model in effort if isinstance(model, Model) and model.ranges]
    return tuple(
        name
        for name, values, *lows in zip(experiment.parameters, experiment.points.T, *lowest, strict=True)
        if values.min() == 1.0 and max(lows, default=1.0) > 1.0
    )


def _computation(
    experiment: Experiment, choices: list[list[Prior]], effort: Mapping[str, list[Model | NoModel]]
) -> None:
    """Add priors of computation to `choices` where effort is counted.

    If the compiler replaces the loop of a function by a call of the C library, the function has only a constant number
    of blocks. Its other effort then counts in addition to this constant.
    """
    if "blocks" not in experiment.values:
        return
    others = {
        name: effort[name]
        for name in experiment.values
        if name not in _NOT_COMPUTATION and experiment.metric(name).is_effort
    }
    counts = [np.nan_to_num(experiment.values[name]).any(axis=(1, 2)) for name in ("blocks", *others)]
    counted = np.any(counts, axis=0)
    for path, model in enumerate(effort["blocks"]):
        is_mpi = experiment.tree.region_of(path).kind is RegionKind.MPI
        if isinstance(model, Model) and counted[path] and not is_mpi:
            more = {name: other for name, models in others.items() if isinstance(other := models[path], Model)}
            own = [*computation.priors(model), *computation.further_priors(model, more)]
            if (threads := _threads(experiment, path)) is not None:
                shared = {name: other.times(threads) for name, other in more.items()}
                each = model.times(threads)
                own = [*computation.priors(each), *computation.further_priors(each, shared), *own]
            choices[path] = own


def _threads(experiment: Experiment, path: int) -> Model | None:
    """Return 1/t as a model if parameter t is the number of threads that share the effort of a call path; else None."""
    if "threads" not in experiment.values:
        return None
    counts = experiment.values["threads"][path]
    for index, name in enumerate(experiment.parameters):
        stated = np.broadcast_to(experiment.points[:, index, None], counts.shape)
        known = np.isfinite(counts) & (counts > 0)
        if np.ptp(experiment.points[:, index]) > 0 and known.any() and (counts[known] == stated[known]).all():
            return Model(experiment.parameters, 0.0, (Term(1.0, (Factor(name, Fraction(-1)),)),))
    return None


def _communication(
    experiment: Experiment,
    choices: list[list[Prior]],
    effort: Mapping[str, list[Model | NoModel]],
    options: Options,
) -> None:
    tree = experiment.tree
    found = _rows(experiment)
    if not found or "visits" not in experiment.values:
        return
    paths, rows = list(found), list(found.values())
    visits = experiment.values["visits"]
    nothing = np.where(np.isnan(visits), np.nan, 0.0)
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
    transferred = np.where(np.isnan(visits[paths]), np.nan, transferred)

    def model(values: FloatArray, places: Sequence[int]) -> list[Model | NoModel]:
        flags = None if experiment.executed is None else experiment.executed[[paths[place] for place in places]]
        return fit_models(experiment.points, values, _COLUMN, experiment.parameters, options, flags)

    everywhere = range(len(paths))
    size_models, byte_models = model(processes, everywhere), model(transferred, everywhere)
    visit_models = [effort["visits"][path] for path in paths]
    alternatives = [(row, *other_rows(row)) for row in rows]
    symbolic = [_symbolic(same, size) for same, size in zip(alternatives, size_models, strict=True)]
    # If no parameter is the size of the communicator (a row of a process grid), measured products are modeled.
    measured: list[dict[tuple[Scale, str], Model | NoModel]] = [{} for _ in paths]
    for scale, (amount, values) in product(Scale, (("visits", visits[paths]), ("bytes", transferred))):
        places = [place for place in everywhere if scale in symbolic[place] and symbolic[place][scale] is None]
        if places:
            products = model(values[places] * communication.scale_values(scale, processes[places]), places)
            for place, found_model in zip(places, products, strict=True):
                measured[place][scale, amount] = found_model
    for place, path in enumerate(paths):
        calls, volume = visit_models[place], byte_models[place]
        if isinstance(calls, Model):
            factors = {"visits": calls} | ({"bytes": volume} if isinstance(volume, Model) else {})
            for row in alternatives[place]:
                columns = _columns(row, factors, symbolic[place], measured[place])
                details = f"B = {volume}" if row.bytes is not Bytes.NONE and isinstance(volume, Model) else ""
                prior = communication.prior(row, tree.name(path), columns, details)
                if not prior.columns:  # with one process per communicator, only the calls remain
                    prior = communication.prior(row, tree.name(path), {"α": calls}, details)
                if prior.columns and prior.columns not in [known.columns for known in choices[path]]:
                    choices[path].append(prior)
                    if row.latency is not Scale.ONE and not _has(prior, calls):
                        choices[path].append(communication.with_overhead(prior, calls))


def _has(prior: Prior, column: Model) -> bool:
    """Return whether a prior contains a column with the same function."""
    return any((own.constant, own.terms) == (column.constant, column.terms) for own in prior.columns)


def _columns(
    row: Row,
    factors: Mapping[str, Model],
    symbolic: Mapping[Scale, Model | None],
    measured: Mapping[tuple[Scale, str], Model | NoModel],
) -> dict[str, Model]:
    """Return the factors of α, β and γ of a row as models, as far as they exist.

    factors: models of "visits" and "bytes". symbolic: the scales as models. measured: models of measured products, for
    scales without a model.
    """
    columns: dict[str, Model] = {}
    for symbol, scale, amount in _parts(row):
        if amount in factors:
            by = symbolic[scale]
            column = measured[scale, amount] if by is None else factors[amount].times(by)
            if isinstance(column, Model):
                columns[symbol] = column
    return columns


def _parts(row: Row) -> list[tuple[str, Scale, str]]:
    """Return the coefficients of a row, each with its scale and its amount."""
    parts = (("α", row.latency, "visits"), ("β", row.transfer, "bytes"), ("γ", row.reduction, "bytes"))
    return [(symbol, scale, amount) for symbol, scale, amount in parts if scale is not None]


def _symbolic(rows: Sequence[Row], size: Model | NoModel) -> dict[Scale, Model | None]:
    """Return the scales of rows as models of the parameters; None if the communicator size has no such model."""
    scales = {scale for row in rows for _, scale, _ in _parts(row)}
    return {scale: communication.scale_model(scale, size) if isinstance(size, Model) else None for scale in scales}


def _rows(experiment: Experiment) -> dict[int, Row]:
    """Return the row of Table I of each MPI call path, or the general row if it moves data without a row."""
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
