"""From fitted hypotheses (arrays) to models (values), with their quality and their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from .calibration import LEAST_CONSTANT, LEAST_WEIGHT, SELECTION_VARIANCE, WHOLE_COEFFICIENT
from .criterion.evidence import posterior_weights
from .data.noise import Repetitions
from .data.preparation import ranges
from .doubt import scatter_notes, split_notes
from .fit.fitter import with_constant
from .fit.weights import relative_weights
from .hidden import hidden_terms
from .hypotheses.pool import Pool, replaced
from .hypotheses.tables import Specification, Tables
from .model import Alternative, Factor, Model, Quality, Term
from .uncertainty import joint_covariance, lack_of_fit, open_parameters, value_variance


def build_models(
    names: tuple[str, ...],
    varying: Sequence[str],
    points: FloatArray,
    tables: Tables,
    pool: Pool,
    repetitions: Repetitions,
    exact: NDArray[np.bool_],
    effort: bool,
    notes: tuple[str, ...],
    weighed: bool,
) -> list[Model]:
    """Return the models of call paths whose hypotheses are in `pool`, best first.

    `varying` are the parameters that the hypotheses are about, a subset of `names`; weighed: whether the criterion
    gives hypotheses posterior weights.
    """
    values = repetitions.centre
    design = with_constant(tables.design(pool.specification[:, 0]))
    best = pool.coefficients[:, 0]
    fitted = np.einsum("nkc,nk->nc", design, best)
    chosen = (pool.specification[:, 0] >= 0).sum(axis=(1, 2))
    width = (best != 0).sum(axis=1) + chosen
    variance = value_variance(pool.residual[:, 0], repetitions, points.shape[0], width)
    variance = np.where(exact, 0.0, variance * (1.0 + SELECTION_VARIANCE * max(len(varying) - 2, 0)))
    lacking = 0.0 if effort else lack_of_fit(pool.residual[:, 0], repetitions, points.shape[0], width)
    covariance = joint_covariance(design, best, points, variance, values, lacking=lacking)
    unscaled = pool.coefficients.copy()
    unscaled[:, :, 1:] /= tables.divisor(pool.specification)
    unscaled[exact] = _whole(unscaled[exact])
    scale = np.concatenate([np.ones((len(best), 1)), tables.divisor(pool.specification[:, 0])], axis=1)
    scale = np.concatenate([np.tile(scale, (1, 1 + len(names))), np.ones((len(best), len(names)))], axis=1)
    covariance = covariance / scale[:, :, None] / scale[:, None, :]
    shares = _kept_weights(pool)
    shares[exact, 1:] = 0.0
    shares[exact, 0] = 1.0
    quality = qualities(values, fitted, pool.left_out[:, 0], (best != 0).sum(axis=1))
    own_ranges = ranges(points)
    kept = shares > 0.0
    kept[:, 0] = True
    path, rank = np.nonzero(kept)
    found = _terms(tables, varying, pool.specification[path, rank], unscaled[path, rank])
    numbers = zip(rank.tolist(), shares[path, rank].tolist(), unscaled[path, rank, 0].tolist(), strict=True)
    constants: list[float] = []
    first: list[tuple[Term, ...]] = []
    others: list[list[Alternative]] = []
    for (place, weight, constant), terms in zip(numbers, found, strict=True):
        if place:
            others[-1].append(Alternative(weight, constant, terms))
        else:
            constants.append(constant)
            first.append(terms)
            others.append([])
    certain = exact & (len(open_parameters(points)) == 0)
    matrices = _matrices(covariance, pool, certain, len(names))
    scattered = scatter_notes(repetitions, pool.residual[:, 0], effort)
    split = split_notes(others, shares, _one_step_out(tables, pool))
    alternatives, hiding = [tuple(known) for known in others], [""] * len(values)
    if not effort:
        parts = design * best[:, :, None]
        level = np.sqrt(np.where(np.isfinite(variance), variance, 0.0))
        effects = _effects(names, varying, pool)
        hidden = hidden_terms(names, points, parts, fitted, values, level, effects, weighed)
        alternatives = hidden.alternatives(constants, first, others)
        hiding = [hidden.note if noisy else "" for noisy in (level > 0.0).tolist()]
    all_notes = [
        (*notes, *own, *more, *((hides,) if hides else ()))
        for own, more, hides in zip(scattered, split, hiding, strict=True)
    ]
    rows = zip(constants, first, quality, matrices, alternatives, all_notes, strict=True)
    return [
        Model(names, constant, terms, fit, own_ranges, matrix, known, said)
        for constant, terms, fit, matrix, known, said in rows
    ]


def median_first(pool: Pool, tables: Tables, explained: NDArray[np.bool_]) -> Pool:
    """Return the pool with that hypothesis first that predicts the median of the posterior one step out.

    That is for the call paths whose values are `explained` (N,) by hypotheses, so that they have posterior weights.
    Where the posterior is split between forms the likeliest one may be at the edge of what they predict together. A
    constant that is the likeliest stays first with less weight: it has all the others, of which each follows the noise
    in its own way, on one side, so that their median one step out is far off further out.
    """
    shares = _kept_weights(pool)
    constant = (pool.specification[:, 0] < 0).all(axis=(1, 2))
    rows = np.flatnonzero(explained & (shares[:, 0] < np.where(constant, LEAST_CONSTANT, 0.5)))
    if not rows.size:
        return pool
    part = pool.rows((rows, slice(None)))
    far = _one_step_out(tables, part)
    order = far.argsort(axis=1)
    below = np.take_along_axis(shares[rows], order, axis=1).cumsum(axis=1)
    median = np.take_along_axis(order, (below >= 0.5).argmax(axis=1)[:, None], axis=1)
    moved = np.argsort(np.arange(far.shape[1]) != median, axis=1, kind="stable")
    flags = np.zeros(len(shares), dtype=bool)
    flags[rows] = True
    return replaced(pool, flags, part.rows((np.arange(rows.size)[:, None], moved)))


def _kept_weights(pool: Pool) -> FloatArray:
    """Return the posterior weights (N, P) of hypotheses, of those that have enough of it to be kept."""
    shares = posterior_weights(pool.score)
    shares = np.where(shares >= LEAST_WEIGHT, shares, 0.0)
    result: FloatArray = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    return result


def _one_step_out(tables: Tables, pool: Pool) -> FloatArray:
    """Return what hypotheses predict at twice all values, (N, P)."""
    terms = pool.coefficients[:, :, 1:] * tables.further(pool.specification) / tables.divisor(pool.specification)
    result: FloatArray = pool.coefficients[:, :, 0] + terms.sum(axis=2)
    return result


def _whole(coefficients: FloatArray) -> FloatArray:
    """Return coefficients of exact counts with the rounding errors of whole numbers taken off."""
    rounded = np.round(coefficients)
    near = np.abs(coefficients - rounded) <= WHOLE_COEFFICIENT * np.abs(rounded)
    return np.where(near, rounded, coefficients)


def _real(specification: Specification, coefficients: FloatArray) -> NDArray[np.bool_]:
    """Return which products (M, K) are terms: they have a factor and a coefficient (M, 1 + K) other than 0."""
    result: NDArray[np.bool_] = (specification >= 0).any(axis=2) & (coefficients[:, 1:] != 0.0)
    return result


def _effects(names: Sequence[str], varying: Sequence[str], pool: Pool) -> NDArray[np.bool_]:
    """Return which parameters (N, m) the best hypotheses depend on."""
    first = pool.specification[:, 0]
    terms = _real(first, pool.coefficients[:, 0])
    result = np.zeros((len(first), len(names)), dtype=bool)
    result[:, [names.index(name) for name in varying]] = ((first >= 0) & terms[:, :, None]).any(axis=1)
    return result


def _terms(
    tables: Tables, names: Sequence[str], specification: Specification, coefficients: FloatArray
) -> list[tuple[Term, ...]]:
    """Return the terms of M hypotheses (M, K, m) with coefficients (M, 1 + K)."""
    keys = np.zeros(specification.shape[:2], dtype=np.int64)
    for index, terms in enumerate(tables.terms):
        keys = keys * (len(terms) + 1) + specification[..., index] + 1
    keys[~_real(specification, coefficients)] = 0
    distinct, where = np.unique(keys, return_index=True)
    factors: dict[int, tuple[Factor, ...]] = {}
    factor_of: list[dict[int, Factor]] = [
        {number: terms[number].factor(name) for number in np.unique(specification[..., index]).tolist() if number >= 0}
        for index, (name, terms) in enumerate(zip(names, tables.terms, strict=True))
    ]
    chosen: list[list[int]] = specification.reshape(-1, len(names))[where].tolist()
    known: list[int] = distinct.tolist()
    for key, numbers in zip(known, chosen, strict=True):
        factors[key] = tuple([factor_of[index][term] for index, term in enumerate(numbers) if term >= 0])
    result: list[list[Term]] = [[] for _ in specification]
    path, place = np.nonzero(keys)
    rows = path.tolist(), keys[path, place].tolist(), coefficients[path, place + 1].tolist()
    for number, key, value in zip(*rows, strict=True):
        result[number].append(Term(value, factors[key]))
    return [tuple(terms) for terms in result]


def _matrices(
    covariance: FloatArray, pool: Pool, exact: NDArray[np.bool_], parameters: int
) -> list[tuple[tuple[float, ...], ...]]:
    """Return the covariance of the best hypotheses without the rows of what is no term; () of exact ones."""
    real = _real(pool.specification[:, 0], pool.coefficients[:, 0])
    keys = np.where(exact, -1, (real << np.arange(real.shape[1])).sum(axis=1))
    blocks = (covariance.shape[1] - parameters) // (1 + real.shape[1])
    rows: list[tuple[tuple[float, ...], ...]] = [()] * len(covariance)
    for key in np.unique(keys[~exact]).tolist():
        alike = np.flatnonzero(keys == key)
        used = np.tile(np.concatenate([[True], real[alike[0]]]), blocks)
        used = np.flatnonzero(np.concatenate([used, np.ones(parameters, dtype=bool)]))
        part = covariance[alike] if used.size == covariance.shape[1] else covariance[alike][:, used][:, :, used]
        for path, matrix in zip(alike.tolist(), part.tolist(), strict=True):
            rows[path] = tuple(map(tuple, matrix))
    return rows


def qualities(values: FloatArray, fitted: FloatArray, left_out: FloatArray, width: NDArray[np.int64]) -> list[Quality]:
    """Return the quality of fits: values, fitted (N, C); left-out errors, number of coefficients (N,)."""
    points = values.shape[1]
    size = np.abs(values) + np.abs(fitted)
    smape = 200.0 * (np.abs(values - fitted) / np.where(size > 0, size, 1.0)).mean(axis=1)
    relative = np.sqrt((((values - fitted) * relative_weights(values)) ** 2).mean(axis=1))
    top = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-300)
    remaining = (((values - fitted) / top) ** 2).sum(axis=1)
    total = (((values - values.mean(axis=1, keepdims=True)) / top) ** 2).sum(axis=1)
    r2 = np.where(total > 0, 1.0 - remaining / np.where(total > 0, total, 1.0), np.nan)
    free = points - width
    adjusted = np.where(free > 0, 1.0 - (1.0 - r2) * (points - 1) / np.where(free > 0, free, 1), np.nan)
    crossed = np.where(np.isfinite(left_out), left_out, np.nan)
    rows = zip(*(a.tolist() for a in (smape, relative, r2, adjusted, crossed)), strict=True)
    return [Quality(a, b, c, d, e, points) for a, b, c, d, e in rows]
