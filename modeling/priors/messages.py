"""How large the messages of a call are: what each stage of a pipeline passes on, besides what it computes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..experiment import Experiment, Metric
from ..pmnf.model import Model
from ..pmnf.modeler import DEFAULT, Options, fit_models
from .requests import requested_bytes

_SIZE = Metric("message size", "bytes", "effort")


def message_sizes(experiment: Experiment, paths: Sequence[int], options: Options = DEFAULT) -> dict[int, Model]:
    """Return the models of the bytes that one call of these call paths moves, of those where that grows.

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
    found = fit_models(experiment.points, sizes, _SIZE, experiment.parameters, options)
    return {path: model for path, model in zip(moving, found, strict=True) if isinstance(model, Model) and model.terms}
