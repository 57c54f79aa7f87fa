# SPDX-License-Identifier: Apache-2.0
"""Terms that the noise may hide: products of parameters that never change together, and any other term.

A term a·x·y grows with x alone and with y alone, on lines through one configuration. It may be as small as the noise on
these lines, and a thousand times larger if both parameters grow. Fits cannot exclude it. It is therefore a hypothesis
in addition to the model, as large as the noise allows, with a weight for how often such products occur
(calibration.py).

A term that grows faster than the model may be too small at the points for the criterion. Such hypotheses have the
weight that the values give them (Bayes factors; the part at the largest value is uniform in its logarithm), and their
expected size. A parameter with an effect has such a term more often than a parameter without effect. Hidden terms widen
intervals upwards, and change no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import (
    DEPENDENT_SQUARES,
    HIDDEN_EXPONENTS,
    HIDDEN_NOISE,
    HIDDEN_SELDOM,
    HIDDEN_WEIGHT,
    LEAST_HIDDEN,
    LEAST_SIZE,
    MOST_REST,
    MOST_UNSEEN,
    RIDGE,
    UNSEEN_EXPONENTS,
    UNSEEN_LEAST,
    UNSEEN_ODDS,
    UNSEEN_ODDS_CONSTANT,
    UNSEEN_PARTS,
    UNSEEN_SLOWEST,
    UNSEEN_STEPS,
)
from ..model import Alternative, Factor, Term


def never_together(points: FloatArray, most: int = 0) -> list[tuple[int, ...]]:
    """Return the sets of parameters of which no two change together at more than this number of points (C, m).

    These are the pairs, and all parameters together if there are more than two.
    """
    parameters = points.shape[1]
    common = np.empty(parameters)
    for index in range(parameters):
        found, count = np.unique(points[:, index], return_counts=True)
        common[index] = found[count.argmax()]
    left = (points != common) & (points > 0.0).all(axis=0)
    varied = left.any(axis=0)
    together = left.T.astype(np.int64) @ left
    pairs = [
        (a, b) for a, b in combinations(range(parameters), 2) if varied[a] and varied[b] and together[a, b] <= most
    ]
    every = tuple(sorted({index for pair in pairs for index in pair}))
    if len(pairs) > 1 and len(pairs) == len(every) * (len(every) - 1) // 2:
        return [*pairs, every]
    return list(pairs)


def bounds(path: NDArray[np.int64], paths: int) -> list[int]:
    """Return the first entry of each call path, and the end; path: (M,) the call path of each entry, ascending."""
    found: list[int] = np.searchsorted(path, np.arange(paths + 1)).tolist()
    return found


class Hidden:
    """The terms that may be hidden for the models of N call paths, and a note on them, or ""."""

    def __init__(
        self, products: list[tuple[Factor, ...]], weights: FloatArray, coefficients: FloatArray, note: str
    ) -> None:
        """Store products of factors with weights and coefficients (N, T); weights of missing terms are 0."""
        self.products, self.note = products, note
        self.left: list[float] = (1.0 - weights.sum(axis=1)).tolist()
        path, self.places = np.nonzero(weights)
        self.bounds = bounds(path, len(weights))
        self.weights, self.coefficients = weights[path, self.places], coefficients[path, self.places]

    def alternatives(
        self, path: int, constant: float, terms: tuple[Term, ...], others: list[Alternative]
    ) -> tuple[Alternative, ...]:
        """Return the alternatives of a model: `others` with smaller weights, and the hidden terms."""
        left = self.left[path]
        if left < 1.0:
            others = [Alternative(one.weight * left, one.constant, one.terms) for one in others]
        own = slice(self.bounds[path], self.bounds[path + 1])
        rows = self.places[own].tolist(), self.weights[own].tolist(), self.coefficients[own].tolist()
        for place, weight, size in zip(*rows, strict=True):
            more = (*terms, Term(size, self.products[place]))
            others.append(Alternative(weight, constant, more, True))
        return tuple(others)


def nothing_hidden(paths: int) -> Hidden:
    """Return no hidden terms for this number of models."""
    return Hidden([], np.empty((paths, 0)), np.empty((paths, 0)), "")


def hidden_terms(
    names: Sequence[str],
    points: FloatArray,
    design: FloatArray,
    fitted: FloatArray,
    values: FloatArray,
    noise: FloatArray,
    constant: NDArray[np.bool_],
    weighed: bool,
) -> Hidden:
    """Return the terms that may be hidden; none for exact values. points: (C, m).

    design: (N, K, C) the parts of the models at the points, all zero for missing parts; fitted: (N, C) their sums;
    values: (N, C) measured values; noise: (N,) relative standard error of a value. The size of a product of parameters
    that hardly change together is one standard deviation of the measurements. constant: (N,) whether a model is a
    constant, for which a hidden term is less likely. weighed: whether hypotheses have posterior weights.
    """
    positive = np.flatnonzero((points > 0.0).all(axis=0)).tolist()
    several = [index for index in positive if np.unique(points[:, index]).size > 1]
    sizes = {1, 2, len(several)} if several else set()
    anywhere = [together for size in sorted(sizes) for together in combinations(several, size)]
    if not anywhere or not (noise > 0.0).any():
        return nothing_hidden(len(values))
    weights, sizes_of = np.empty((len(values), 0)), np.empty((len(values), 0))
    never, apart = never_together(points), never_together(points, HIDDEN_SELDOM)
    products = [(together, exponent) for together in apart for exponent in HIDDEN_EXPONENTS]
    exponents = {
        together: UNSEEN_EXPONENTS if len(together) == 1 else HIDDEN_EXPONENTS for together in anywhere if weighed
    }
    terms = [(together, exponent) for together, powers in exponents.items() for exponent in powers]
    if products:
        share = HIDDEN_WEIGHT / len(products) * noise / (noise + HIDDEN_NOISE)
        weights = np.repeat(share[:, None], len(products), axis=1)
        sizes_of = _largest(_logs(points, products), fitted, noise)
    if terms:
        odds = np.where(constant, UNSEEN_ODDS_CONSTANT, UNSEEN_ODDS)[:, None]
        unseen = _unseen(_logs(points, terms), odds, design, fitted, values, noise)
        weights, sizes_of = (np.concatenate(both, axis=1) for both in zip((weights, sizes_of), unseen, strict=True))
    weights = np.where(noise[:, None] > 0.0, weights, 0.0)
    each = [*products, *(term for term in terms for _ in range(UNSEEN_PARTS))]
    factors = [tuple(Factor(names[index], Fraction(exponent)) for index in together) for together, exponent in each]
    every = ", ".join(names[index] for index in sorted(set().union(*never)))
    note = f"{every} never change together: a product of them may hide beneath the noise" if never else ""
    return Hidden(factors, weights, sizes_of, note)


def _logs(points: FloatArray, terms: Sequence[tuple[tuple[int, ...], int]]) -> FloatArray:
    """Return the logarithms of terms at points, (T, C)."""
    return np.array([exponent * np.log(points[:, together]).sum(axis=1) for together, exponent in terms])


def _largest(logs: FloatArray, fitted: FloatArray, noise: FloatArray) -> FloatArray:
    """Return the coefficients (N, T) at which terms equal one standard deviation of the measurements."""
    most = logs.max(axis=1)
    size = np.maximum(np.abs(fitted), 1e-300)
    least = size.min(axis=1)
    seen = (least[:, None] / size) ** 2 @ np.exp(2.0 * (logs - most[:, None])).T  # of a term that is `least` at most
    result: FloatArray = noise[:, None] * least[:, None] / np.sqrt(seen) * np.exp(-most)
    return result


def _unseen(
    logs: FloatArray,
    odds: FloatArray,
    design: FloatArray,
    fitted: FloatArray,
    values: FloatArray,
    noise: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return weights and coefficients of terms that grow faster than the models, according to the values.

    If c is the part of the term at its largest value, least squares with the parts of the model give ĉ ± s. The
    likelihood ratio to the model alone is exp(c·ĉ/s² - c²/2s²). odds: (N, 1) prior odds of a term, shared by all
    candidates. The MOST_UNSEEN likeliest terms have the weight of all. Both arrays are (N, T · UNSEEN_PARTS): the
    expected size of each term in each of UNSEEN_PARTS equally likely parts of the posterior of c.
    """
    size = np.maximum(np.abs(fitted), np.maximum(LEAST_SIZE * np.abs(fitted).max(axis=1, keepdims=True), 1e-300))
    with np.errstate(over="ignore"):
        rest = np.clip((values - fitted) / size, -MOST_REST, MOST_REST)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True)) / size[:, None]
    top = shares.max(axis=2, keepdims=True)
    shares /= top
    at_corner = shares[:, np.arange(len(logs)), logs.argmax(axis=1)]
    growing = (at_corner >= 1.0 - 1e-9) & (shares.min(axis=2) < UNSEEN_SLOWEST)
    parts = design / size[:, None]
    lengths = np.sqrt((parts**2).sum(axis=2, keepdims=True))
    parts /= np.where(lengths > 0.0, lengths, 1.0)
    gram = parts @ parts.transpose(0, 2, 1) + np.eye(parts.shape[1]) * np.where(lengths > 0.0, RIDGE, 1.0)
    across = parts @ shares.transpose(0, 2, 1)
    solved = np.linalg.solve(gram, across)
    along = (shares @ rest[:, :, None] - solved.transpose(0, 2, 1) @ (parts @ rest[:, :, None]))[:, :, 0]
    whole = np.square(shares, out=shares).sum(axis=2)
    squares = np.maximum(whole - (across * solved).sum(axis=1), 0.0)
    growing &= squares > DEPENDENT_SQUARES * whole  # otherwise it is one of the parts, or a combination of them
    variance = np.maximum(noise, 1e-150)[:, None] ** 2
    size_of = np.exp(np.linspace(np.log(UNSEEN_LEAST), 0.0, UNSEEN_STEPS))
    with np.errstate(over="ignore", invalid="ignore"):
        powers = (along[:, :, None] * size_of - 0.5 * squares[:, :, None] * size_of**2) / variance[:, :, None]
        powers = np.nan_to_num(powers, nan=-700.0)
    likelihoods = np.exp(np.clip(powers, -700.0, 50.0))
    factors = np.where(growing, likelihoods.mean(axis=2), 0.0)
    factors *= odds / np.maximum(growing.sum(axis=1, keepdims=True), 1)
    every = np.minimum(factors.sum(axis=1, keepdims=True), 1.0)  # the model stays the median
    limit = -np.sort(-factors, axis=1)[:, :MOST_UNSEEN][:, -1:]
    kept = np.where(factors >= np.maximum(limit, LEAST_HIDDEN * every), factors, 0.0)
    kept *= every / np.maximum(kept.sum(axis=1, keepdims=True), 1e-300) / (1.0 + every)
    weights = np.where(every >= LEAST_HIDDEN, kept, 0.0)
    coefficients = np.zeros((*weights.shape, UNSEEN_PARTS))
    some = weights > 0.0
    coefficients[some] = _means(likelihoods[some], size_of) / top[some]
    coefficients *= np.exp(-logs.max(axis=1))[:, None]
    return np.repeat(weights / UNSEEN_PARTS, UNSEEN_PARTS, axis=1), coefficients.reshape(len(values), -1)


def _means(likelihoods: FloatArray, size_of: FloatArray) -> FloatArray:
    """Return the means (..., UNSEEN_PARTS) of equally likely parts of a posterior, the smallest values first.

    likelihoods: (..., S) of the values `size_of` (S,), ascending.
    """
    below = np.zeros((*likelihoods.shape[:-1], 1, 1 + size_of.size))
    np.cumsum(likelihoods, axis=-1, out=below[..., 0, 1:])
    below /= np.maximum(below[..., -1:], 1e-300)
    edges = np.linspace(0.0, 1.0, UNSEEN_PARTS + 1)[:, None]
    inside = np.minimum(np.maximum(below, edges[:-1]), edges[1:])
    result: FloatArray = (inside[..., 1:] - inside[..., :-1]) @ size_of * UNSEEN_PARTS
    return result
