# SPDX-License-Identifier: Apache-2.0
"""Predict the counts of call paths at a point, by laws (`modeling/counts`) or by formulas (`modeling/pmnf`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..counts.predictions import CountModels
from ..errors import ModelingError
from ..pmnf.model import Model, Prediction
from ..pmnf.options import NoModel
from ..priors.path_model import PathModel

_REPRODUCES = 1e-7  # SMAPE in percent up to which a formula reproduces counts
UNKNOWN = Prediction(math.nan, math.nan, math.nan, False)


def predicted_counts(
    counts: CountModels, metric: str, models: Sequence[PathModel], point: Mapping[str, float]
) -> tuple[Prediction, ...]:
    """Return the predicted count of each call path at a point.

    `by_law` decides whether the law or the model of the call path predicts the count.

    point: the value of each parameter by name, in the order of the parameters of the models.
    """
    place = tuple(point.values())
    return tuple(
        law if by_law(counts, metric, path, entry.model) else predicted(entry.model, place)
        for path, (law, entry) in enumerate(zip(counts.predict(point, metric), models, strict=True))
    )


def by_law(counts: CountModels, metric: str, path: int, model: Model | NoModel) -> bool:
    """Return whether the law of a call path predicts a count; otherwise its formula `model` predicts the count.

    If there is a law, the formula is used under three conditions: the law is not exact, the formula reproduces all
    counts, and enough different counts confirm the coefficients of the formula (`CountModels.can_confirm`).
    """
    if metric not in counts.metrics:
        return False
    if not isinstance(model, Model) or model.quality is None or model.quality.smape > _REPRODUCES:
        return True
    terms = len(model.terms) + (model.constant != 0)
    return counts.is_exact(metric, path) or not counts.can_confirm(metric, path, terms)


def predicted(model: Model | NoModel, place: tuple[float, ...]) -> Prediction:
    """Return the prediction of a model, with 0 in place of negative values; UNKNOWN without a finite value."""
    if isinstance(model, NoModel):
        return UNKNOWN
    try:
        found = model.predict(place)
    except ModelingError:
        return UNKNOWN
    if not math.isfinite(found.value):  # for example log2(n) at n = 0
        return UNKNOWN
    return Prediction(max(found.value, 0.0), max(found.lower, 0.0), max(found.upper, 0.0), found.extrapolates)
