# SPDX-License-Identifier: Apache-2.0
"""Messages of a call, their size and number: what each stage of a pipeline passes on, besides what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..experiment import Experiment, Metric
from ..mpi_operations import operation_of
from ..pmnf.model import Model
from ..pmnf.modeler import fit_models
from ..pmnf.options import DEFAULT, NoModel, Options
from .path_model import unit
from .requests import requested_bytes

_SIZE = Metric("message size", "bytes", "effort")


@dataclass(frozen=True)
class Messages:
    """Models of the bytes that one call of a call path moves, and of its calls per rank, None if there is none."""

    size: Model
    calls: Model | None


def messages_of(experiment: Experiment, paths: Sequence[int], options: Options = DEFAULT) -> dict[int, Messages]:
    """Return the messages of these call paths, of those where their size grows, or that wait for a single other rank.

    The larger of bytes sent and received, or what a completion waits for, per visit: the mean over ranks of the bytes
    of an operation is that of its calls, since some ranks have fewer neighbours, times the size of a message.
    """
    visits = experiment.values.get("visits")
    if visits is None:
        return {}
    nothing = np.zeros_like(visits)
    sent, received = (experiment.values.get(name, nothing) for name in ("bytes_sent", "bytes_received"))
    requested = requested_bytes(experiment.tree, sent, received)
    moved = np.maximum(np.maximum(np.nan_to_num(sent), np.nan_to_num(received)), requested)
    moving = [path for path in paths if moved[path].any()]
    calls = visits[moving]
    sizes = np.where(calls > 0, moved[moving] / np.where(calls > 0, calls, 1.0), np.nan)
    parameters = experiment.parameters
    found = fit_models(experiment.points, sizes, _SIZE, parameters, options)
    alone = [_waits_for_one(experiment.tree.region_of(path).name) for path in moving]
    sized = [(path, model) for path, model, own in zip(moving, found, alone, strict=True) if own or _grows(model)]
    numbers = fit_models(
        experiment.points, visits[[path for path, _ in sized]], experiment.metric("visits"), parameters, options
    )
    return {
        path: Messages(unit(size), unit(number) if isinstance(number, Model) else None)
        for (path, size), number in zip(sized, numbers, strict=True)
        if isinstance(size, Model)
    }


def _waits_for_one(region: str) -> bool:
    """Whether an operation waits for the message of a single other rank, whatever its size is."""
    operation = operation_of(region)
    return operation is not None and operation.waits_for in ("sender", "peers")


def _grows(model: Model | NoModel) -> bool:
    return isinstance(model, Model) and bool(model.terms)
