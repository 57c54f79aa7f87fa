# SPDX-License-Identifier: Apache-2.0
"""Growth of time that nothing but noise suggests, of call paths that do the same at all configurations.

A program has hundreds of call paths with constant visits, and some of them seem to grow because their times scatter. So
growth counts only if it is significant among all of them: one control of the false discovery rate for the program.
Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", 1995; with weights: C. R. Genovese, K. Roeder and
L. Wasserman, "False discovery control with p-value weighting", 2006.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..experiment import Experiment, FloatArray, median_over_repetitions
from ..pmnf.model import Model
from ..pmnf.options import NoModel

RATE = 0.05
"""Part of the growth that is found which is noise."""
_FORMS = 20.0
"""Functions that a search tries: as many chances for noise to look like one of them."""
_EQUAL = 0.5
"""Part of the weight that all call paths have alike; the rest is in proportion to their time."""


def unproved_growth(
    experiment: Experiment, rows: Sequence[int], times: FloatArray, models: Sequence[Model | NoModel]
) -> list[int]:
    """Return the places in `rows` of call paths whose growth is not significant.

    rows: call paths; times (N, C, R) and models are theirs. Only models with terms of call paths whose visits and
    effort are the same at all configurations are tested, and only where enough was measured to estimate the noise.
    """
    if "visits" not in experiment.values:
        return []
    typical = median_over_repetitions(times)
    chances: dict[int, float] = {}
    for place, (path, model) in enumerate(zip(rows, models, strict=True)):
        if isinstance(model, Model) and model.terms and _does_the_same(experiment, path):
            chance = _chance(model, experiment.points, typical[place])
            if chance is not None:
                chances[place] = chance
    if not chances:
        return []
    proved = _discoveries(chances, {place: float(np.nanmean(typical[place])) for place in chances})
    return [place for place in chances if place not in proved]


def _does_the_same(experiment: Experiment, path: int) -> bool:
    """Whether visits and all effort of a call path are equal at all configurations where it was executed."""
    for name, values in experiment.values.items():
        if experiment.metrics[name].is_effort:
            known = values[path][np.isfinite(values[path])]
            if known.size and known.min() != known.max():
                return False
    visits = experiment.values["visits"][path]
    return bool((visits[np.isfinite(visits)] > 0).all())


def _chance(model: Model, points: FloatArray, times: FloatArray) -> float | None:
    """Return how likely constant times with noise are explained so much better by a function; None: not known.

    An F test of logarithms, times the number of functions that were tried.
    """
    from scipy.stats import f

    fitted = model.evaluate(points)
    known = np.isfinite(times) & (times > 0) & np.isfinite(fitted) & (fitted > 0)
    explaining = len({factor.parameter for term in model.terms for factor in term.factors})
    free = int(known.sum()) - 1 - explaining
    if free < 1:
        return None
    logarithms, rest = np.log(times[known]), np.log(times[known] / fitted[known])
    constant, function = (float(((own - own.mean()) ** 2).sum()) for own in (logarithms, rest))
    if function <= 0.0:
        return 0.0
    ratio = max(constant - function, 0.0) / explaining / (function / free)
    return min(1.0, _FORMS * float(f.sf(ratio, explaining, free)))


def _discoveries(chances: Mapping[int, float], times: Mapping[int, float]) -> set[int]:
    """Return what is significant at `RATE`, weighted by time."""
    total = sum(times.values())
    weights = {
        place: _EQUAL + (1.0 - _EQUAL) * (len(times) * own / total if total > 0 else 1.0)
        for place, own in times.items()
    }
    weighted = sorted((chance / weights[place], place) for place, chance in chances.items())
    least = [rank for rank, (chance, _) in enumerate(weighted, start=1) if chance <= RATE * rank / len(weighted)]
    return {place for _, place in weighted[: max(least, default=0)]}
