"""From fitted hypotheses (arrays) to models (values), with their quality and their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from .hypotheses import Pool, Specification, Tables
from .model import Alternative, Model, Quality
from .noise import Repetitions
from .search import relative_weights
from .selector import belief
from .term import Factor, Term

# Hypotheses with a smaller share of the belief are not kept.
_LEAST_BELIEF = 0.02
_MANY_DEVIATIONS = 0.5
# The best of many combinations fits better than the truth does; so much is added to the variance per parameter beyond
# two, beyond what the near-best hypotheses show. From planted functions with noise of 2 to 10 %.
_SELECTION = 0.4


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
) -> list[Model]:
    """Return the models of call paths whose hypotheses are in `pool`, best first.

    `varying` are the parameters that the hypotheses are about, a subset of `names`.
    """
    values = repetitions.centre
    design = _columns(tables, pool.specification[:, 0])
    best = pool.coefficients[:, 0]
    fitted = np.einsum("nkc,nk->nc", design, best)
    covariance = coefficient_covariance(design, best, pool.residual[:, 0], repetitions)
    covariance = covariance * (1.0 + _SELECTION * max(len(varying) - 2, 0))
    unscaled = _unscale(tables, pool)
    unscaled[exact] = _whole(unscaled[exact])
    scale = np.concatenate([np.ones((len(best), 1)), tables.divisor(pool.specification[:, 0])], axis=1)
    covariance = covariance / scale[:, :, None] / scale[:, None, :]
    shares = belief(pool.score)
    shares = np.where(shares >= _LEAST_BELIEF, shares, 0.0)
    shares[exact, 1:] = 0.0
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    quality = qualities(values, fitted, pool.left_out[:, 0], (best != 0).sum(axis=1))
    ranges = tuple((float(a), float(b)) for a, b in zip(points.min(axis=0), points.max(axis=0), strict=True))
    factors = [[atom.factor(name) for atom in atoms] for name, atoms in zip(varying, tables.atoms, strict=True)]
    numbers = pool.specification.tolist()
    coefficients = unscaled.tolist()
    variances = covariance.tolist()
    weights = shares.tolist()
    models = []
    for path in range(len(values)):
        terms, kept = _terms(numbers[path][0], coefficients[path][0], factors)
        rows = [0, *kept]
        matrix = () if exact[path] else tuple(tuple(variances[path][i][j] for j in rows) for i in rows)
        alternatives = tuple(
            Alternative(
                weights[path][k],
                coefficients[path][k][0],
                _terms(numbers[path][k], coefficients[path][k], factors)[0],
            )
            for k in range(1, len(weights[path]))
            if weights[path][k] > 0
        )
        models.append(
            Model(
                names,
                coefficients[path][0][0],
                terms,
                quality[path],
                ranges,
                matrix,
                alternatives,
                (*notes, *_scatter_notes(float(repetitions.scatter[path]), bool(repetitions.differ[path]), effort)),
            )
        )
    return models


def _columns(tables: Tables, specification: Specification) -> FloatArray:
    products = tables.design(specification)
    return np.concatenate([np.ones((len(products), 1, tables.points)), products], axis=1)


def _unscale(tables: Tables, pool: Pool) -> FloatArray:
    result = pool.coefficients.copy()
    result[:, :, 1:] /= tables.divisor(pool.specification)
    return result


def _whole(coefficients: FloatArray) -> FloatArray:
    """Return coefficients of exact counts with the rounding errors of whole numbers taken off."""
    rounded = np.round(coefficients)
    near = np.abs(coefficients - rounded) <= 1e-7 * np.abs(rounded)
    return np.where(near, rounded, coefficients)


def _terms(
    numbers: list[list[int]], coefficients: list[float], factors: list[list[Factor]]
) -> tuple[tuple[Term, ...], list[int]]:
    terms, kept = [], []
    for index, (atoms, coefficient) in enumerate(zip(numbers, coefficients[1:], strict=True)):
        used = tuple(own[atom] for own, atom in zip(factors, atoms, strict=True) if atom >= 0)
        if used and coefficient != 0.0:
            terms.append(Term(coefficient, used))
            kept.append(index + 1)
    return tuple(terms), kept


def coefficient_covariance(
    design: FloatArray, best: FloatArray, residual: FloatArray, repetitions: Repetitions
) -> FloatArray:
    """Return the covariance of the coefficients `best` (N, K) of `design` (N, K, C), shape (N, K, K).

    It is 0 for coefficients that are 0. residual: (N,) root mean square relative error of the fit.
    The variance of one value is that of the residuals and that of the repetitions together, each with its
    degrees of freedom.
    """
    points = design.shape[2]
    active = best != 0
    weighted = design * relative_weights(repetitions.centre)[:, None, :]
    normal = np.einsum("nkc,nlc->nkl", weighted, weighted)
    both = active[:, :, None] & active[:, None, :]
    size = np.sqrt(np.where(active, np.einsum("nkk->nk", normal), 1.0))
    size = np.where(size > 0, size, 1.0)
    scaled = np.where(both, normal / size[:, :, None] / size[:, None, :], 0.0)
    identity = np.eye(scaled.shape[1])
    scaled = scaled + np.where(active[:, :, None], 1e-10, 1.0) * identity
    inverse = np.linalg.inv(scaled) / size[:, :, None] / size[:, None, :]
    open_points = np.maximum(points - active.sum(axis=1), 0)
    freedom = np.minimum(repetitions.freedom, 4.0 * points)
    noise = repetitions.scatter**2 / np.maximum(repetitions.count, 1.0)
    known = np.where(np.isfinite(residual), residual, 0.0) ** 2 * points
    known_with = np.maximum(open_points + freedom, 1.0)
    # widened so that quantiles of the normal distribution are about those of Student's t
    variance = (known + freedom * noise) / known_with * (1.0 + 1.5 / known_with) ** 2
    result: FloatArray = np.where(both, inverse * variance[:, None, None], 0.0)
    return result


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


def _scatter_notes(scatter: float, differ: bool, effort: bool) -> tuple[str, ...]:
    if effort and differ:
        return (f"repetitions of this effort metric differ ({100 * scatter:.2g} %): the work depends on chance",)
    if not effort and scatter > _MANY_DEVIATIONS:
        return (f"repetitions scatter by {100 * scatter:.0f} %: measure more of them before you rely on this model",)
    return ()
