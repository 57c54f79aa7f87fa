# SPDX-License-Identifier: Apache-2.0
"""Convert fitted hypotheses (arrays) to models (values), with their quality and their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from .calibration import LEAST_CONSTANT, LEAST_WEIGHT, NOISY_ROUNDING, SELECTION_VARIANCE, WHOLE_COEFFICIENT
from .criterion.evidence import posterior_weights
from .crossing.hidden import hidden_terms, nothing_hidden
from .data.lines import different_points
from .data.noise import Repetitions
from .data.preparation import ranges
from .fit.fitter import with_constant
from .fit.weights import relative_weights
from .hypotheses.pool import Pool, replaced
from .hypotheses.tables import Specification, Tables
from .model import Model, Quality
from .uncertainty.covariance import joint_covariance, lack_of_fit, open_parameters, value_variance
from .uncertainty.doubt import scatter_notes, split_notes
from .uncertainty.posterior import Covariances, Posterior, Products


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

    `varying` are the parameters of the hypotheses, a subset of `names`; weighed: whether the criterion gives hypotheses
    posterior weights.
    """
    values = repetitions.centre
    if not effort:
        size = np.abs(pool.coefficients)
        rounding = size < NOISY_ROUNDING * size.max(axis=2, keepdims=True)
        pool = replace(pool, coefficients=np.where(rounding, 0.0, pool.coefficients))
    design = with_constant(tables.design(pool.specification[:, 0]))
    best = pool.coefficients[:, 0]
    fitted = np.einsum("nkc,nk->nc", design, best)
    chosen = (pool.specification[:, 0] >= 0).sum(axis=(1, 2))
    width = (best != 0).sum(axis=1) + chosen
    counted = different_points(points, values) if effort else np.full(len(values), len(points))
    variance = value_variance(pool.residual[:, 0], repetitions, counted, width, 0 if effort else chosen)
    variance = np.where(exact, 0.0, variance * (1.0 + SELECTION_VARIANCE * max(len(varying) - 2, 0)))
    certain = exact & (not exact.any() or not open_parameters(points))
    rows = np.flatnonzero(~certain)
    known = points, (variance * len(points) / counted)[rows], values[rows]
    # Counts have no noise: deviations come from another function, or from the data.
    lacking = variance if effort else lack_of_fit(pool.residual[:, 0], repetitions, len(points), width)
    covariance = joint_covariance(design[rows], best[rows], *known, lacking=lacking[rows])
    unscaled = pool.coefficients.copy()
    unscaled[:, :, 1:] /= tables.divisor(pool.specification)
    unscaled[exact] = whole_coefficients(unscaled[exact])
    scale = np.concatenate([np.ones((rows.size, 1)), tables.divisor(pool.specification[rows, 0])], axis=1)
    scale = np.concatenate([np.tile(scale, (1, 1 + len(names))), np.ones((rows.size, len(names)))], axis=1)
    covariance = covariance / scale[:, :, None] / scale[:, None, :]
    shares = _kept_weights(pool)
    shares[exact, 1:] = 0.0
    shares[exact, 0] = 1.0
    quality = qualities(values, fitted, pool.left_out[:, 0], (best != 0).sum(axis=1))
    own_ranges = ranges(points)
    real = _real(pool.specification, unscaled)
    hidden, hiding = nothing_hidden(len(values)), [""] * len(values)
    if not effort:
        parts = design * best[:, :, None]
        level = np.sqrt(np.where(np.isfinite(variance), variance, 0.0))
        constant = np.logical_not(real[:, 0].any(axis=1))
        hidden = hidden_terms(names, points, parts, fitted, values, level, constant, weighed)
        hiding = [hidden.note if noisy else "" for noisy in (level > 0.0).tolist()]
    posterior = Posterior(Products(varying, tables), pool.specification, unscaled, real, shares, hidden)
    matrices: list[Sequence[tuple[float, ...]]] = [()] * len(values)
    for path, matrix in zip(rows.tolist(), Covariances(covariance, real[rows, 0], len(names)).deferred(), strict=True):
        matrices[path] = matrix
    scattered = scatter_notes(repetitions, pool.residual[:, 0], effort)
    split = split_notes(posterior.others, shares, _one_step_out(tables, pool))
    all_notes = [
        (*notes, *own, *more, *((hides,) if hides else ()))
        for own, more, hides in zip(scattered, split, hiding, strict=True)
    ]
    parts_of_models = zip(posterior.forms, quality, matrices, posterior.deferred(), all_notes, strict=True)
    return [
        Model(names, constant, terms, fit, own_ranges, matrix, others, said)
        for (constant, terms), fit, matrix, others, said in parts_of_models
    ]


def median_first(pool: Pool, tables: Tables, explained: NDArray[np.bool_]) -> Pool:
    """Return the pool in which the hypothesis that predicts the posterior median one step out comes first.

    This applies to call paths whose values are `explained` (N,) by hypotheses. If the posterior is divided between
    several forms, the likeliest form may be at the edge of their predictions. A constant stays first with a smaller
    weight: all other hypotheses follow the noise in one direction, so their median would be biased.
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
    """Return the posterior weights (N, P) of hypotheses, 0 for those below the smallest weight."""
    shares = posterior_weights(pool.score)
    shares = np.where(shares >= LEAST_WEIGHT, shares, 0.0)
    result: FloatArray = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    return result


def _one_step_out(tables: Tables, pool: Pool) -> FloatArray:
    """Return the predictions of hypotheses at twice all values, (N, P)."""
    terms = pool.coefficients[:, :, 1:] * tables.further(pool.specification) / tables.divisor(pool.specification)
    result: FloatArray = pool.coefficients[:, :, 0] + terms.sum(axis=2)
    return result


def whole_coefficients(coefficients: FloatArray) -> FloatArray:
    """Return coefficients of exact counts without rounding errors."""
    rounded = np.round(coefficients)
    near = np.abs(coefficients - rounded) <= WHOLE_COEFFICIENT * np.abs(rounded)
    return np.where(near, rounded, coefficients)


def _real(specification: Specification, coefficients: FloatArray) -> NDArray[np.bool_]:
    """Return which products (..., K) are terms: they contain a factor, and their coefficient (..., 1 + K) is not 0."""
    result: NDArray[np.bool_] = (specification >= 0).any(axis=-1) & (coefficients[..., 1:] != 0.0)
    return result


def qualities(values: FloatArray, fitted: FloatArray, left_out: FloatArray, width: NDArray[np.int64]) -> list[Quality]:
    """Return the quality of fits: values, fitted (N, C); left-out errors, number of coefficients (N,)."""
    points = values.shape[1]
    size = np.abs(values) + np.abs(fitted)
    smape = 200.0 * (np.abs(values - fitted) / np.where(size > 0, size, 1.0)).mean(axis=1)
    relative = _rms_relative(values, fitted)
    top = np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-300)
    remaining = (((values - fitted) / top) ** 2).sum(axis=1)
    total = (((values - values.mean(axis=1, keepdims=True)) / top) ** 2).sum(axis=1)
    r2 = np.where(total > 0, 1.0 - remaining / np.where(total > 0, total, 1.0), np.nan)
    free = points - width
    adjusted = np.where(free > 0, 1.0 - (1.0 - r2) * (points - 1) / np.where(free > 0, free, 1), np.nan)
    crossed = np.where(np.isfinite(left_out), left_out, np.nan)
    rows = zip(*(a.tolist() for a in (smape, relative, r2, adjusted, crossed)), strict=True)
    return [Quality(a, b, c, d, e, points) for a, b, c, d, e in rows]


def relative_errors(tables: Tables, pool: Pool, repetitions: Repetitions) -> FloatArray:
    """Return the root mean squares (N,) of the relative errors of the best hypotheses."""
    design = with_constant(tables.design(pool.specification[:, 0]))
    return _rms_relative(repetitions.centre, np.einsum("nkc,nk->nc", design, pool.coefficients[:, 0]))


def _rms_relative(values: FloatArray, fitted: FloatArray) -> FloatArray:
    result: FloatArray = np.sqrt((((values - fitted) * relative_weights(values)) ** 2).mean(axis=1))
    return result
