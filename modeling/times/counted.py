# SPDX-License-Identifier: Apache-2.0
"""Predict the counts of call paths at a point, by laws of counts or by formulas."""

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
    """Return the value of each call path at a point: by its law, or by its model if only the model is exact.

    point: by parameter, in the order of the models.
    """
    place = tuple(point.values())
    return tuple(
        law if by_law(counts, metric, path, entry.model) else predicted(entry.model, place)
        for path, (law, entry) in enumerate(zip(counts.predict(point, metric), models, strict=True))
    )


def by_law(counts: CountModels, metric: str, path: int, model: Model | NoModel) -> bool:
    """Return whether the law predicts a count, and not the formula.

    The formula predicts the count if the law is not exact, and the formula reproduces more counts than it has terms.
    """
    if metric not in counts.metrics:
        return False
    if not isinstance(model, Model) or model.quality is None or model.quality.smape > _REPRODUCES:
        return True
    terms = len(model.terms) + (model.constant != 0)
    return counts.is_exact(metric, path) or not counts.can_confirm(metric, path, terms)


def predicted(model: Model | NoModel, place: tuple[float, ...]) -> Prediction:
    """Return the prediction of a model. A value below 0 is an error of the fit, and is replaced by 0."""
    if isinstance(model, NoModel):
        return UNKNOWN
    try:
        found = model.predict(place)
    except ModelingError:
        return UNKNOWN
    if not math.isfinite(found.value):  # at 0, where a logarithm has no value
        return UNKNOWN
    return Prediction(max(found.value, 0.0), max(found.lower, 0.0), max(found.upper, 0.0), found.extrapolates)
