"""Terms that may hide beneath the noise: products of parameters that were never changed together, and any other.

On lines through one configuration a term a·x·y grows with x alone and with y alone, and where it is as small there as
the noise nothing shows it; with both it may be a thousand times as large. No fit can exclude it, so that it belongs to
what measurements leave open: hypotheses beside the model, as large as the noise lets them be, with a weight that says
how often there is such a product (calibration.py). Where values are very noisy any term may hide so, wherever points
are. They widen intervals upwards and change no model.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from ..experiment import FloatArray
from .calibration import HIDDEN_EXPONENTS, HIDDEN_NOISE, HIDDEN_WEIGHT, LEAST_HIDDEN, UNSEEN_NOISE, UNSEEN_WEIGHT
from .model import Alternative, Factor, Model, Term


def never_together(points: FloatArray) -> list[tuple[int, ...]]:
    """Return the sets of parameters no two of which ever left one value together at points (C, m).

    These are the pairs, and all of them together where there are more than two.
    """
    parameters = points.shape[1]
    common = np.empty(parameters)
    for index in range(parameters):
        found, count = np.unique(points[:, index], return_counts=True)
        common[index] = found[count.argmax()]
    left = (points != common) & (points > 0.0).all(axis=0)
    varied = left.any(axis=0)
    together = left.T.astype(np.int64) @ left
    pairs = [(a, b) for a, b in combinations(range(parameters), 2) if varied[a] and varied[b] and not together[a, b]]
    every = tuple(sorted({index for pair in pairs for index in pair}))
    if len(pairs) > 1 and len(pairs) == len(every) * (len(every) - 1) // 2:
        return [*pairs, every]
    return list(pairs)


def with_hidden_terms(models: list[Model], points: FloatArray, fitted: FloatArray, noise: FloatArray) -> list[Model]:
    """Return the models with hypotheses of hidden terms; models of exact values stay as they are.

    points: (C, m); fitted: (N, C), the models at them; noise: (N,) relative standard error of a value. A term is so
    large that the measurements would see it with one standard deviation.
    """
    apart = never_together(points)
    positive = (points > 0.0).all(axis=0)
    several = [index for index in np.flatnonzero(positive).tolist() if np.unique(points[:, index]).size > 1]
    sizes = {1, 2, len(several)} if several else set()
    anywhere = [own for size in sorted(sizes) for own in combinations(several, size)]
    if not anywhere or not (noise > 0.0).any():
        return models
    sets = [*apart, *anywhere]
    kinds = [(own, exponent) for own in sets for exponent in HIDDEN_EXPONENTS]
    logs = np.array([float(exponent) * np.log(points[:, own]).sum(axis=1) for own, exponent in kinds])
    most = logs.max(axis=1)
    size = np.maximum(np.abs(fitted), 1e-300)
    least = size.min(axis=1)
    seen = (least[:, None] / size) ** 2 @ np.exp(2.0 * (logs - most[:, None])).T  # of a term that is `least` at most
    coefficients = noise[:, None] * least[:, None] / np.sqrt(seen) * np.exp(-most)
    names = models[0].parameters
    factors = [tuple(Factor(names[index], Fraction(exponent)) for index in own) for own, exponent in kinds]
    every = ", ".join(names[own] for own in sorted(set().union(*apart)))
    note = f"{every} never change together: a product of them may hide beneath the noise"
    result = []
    for model, largest, level in zip(models, coefficients.tolist(), noise.tolist(), strict=True):
        if level <= 0.0:
            result.append(model)
            continue
        of_products = HIDDEN_WEIGHT * level / (level + HIDDEN_NOISE) if apart else 0.0
        of_any = UNSEEN_WEIGHT * level**2 / (level**2 + UNSEEN_NOISE**2)
        weights = [of_products / max(len(apart), 1)] * len(apart) + [of_any / len(anywhere)] * len(anywhere)
        weights = [own / len(HIDDEN_EXPONENTS) for own in weights for _ in HIDDEN_EXPONENTS]
        weights = [own if own >= LEAST_HIDDEN else 0.0 for own in weights]
        known = tuple(replace(other, weight=other.weight * (1.0 - sum(weights))) for other in model.alternatives)
        hidden = tuple(
            Alternative(weight, model.constant, (*model.terms, Term(size, product)), hidden=True)
            for weight, size, product in zip(weights, largest, factors, strict=True)
            if weight
        )
        notes = (*model.notes, note) if apart else model.notes
        result.append(replace(model, alternatives=(*known, *hidden), notes=notes))
    return result
