# SPDX-License-Identifier: Apache-2.0
"""Build models from fitted priors, with the uncertainty of coefficients and of the choice of the prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..experiment import FloatArray
from ..pmnf.build import qualities
from ..pmnf.calibration import BEYOND_EFFORT
from ..pmnf.criterion.evidence import posterior_weights
from ..pmnf.data.noise import Repetitions
from ..pmnf.model import Alternative, Model, Term, add, alternatives_with, collect, covariance_in
from ..pmnf.uncertainty.covariance import joint_covariance, lack_of_fit, value_variance
from .prior import Fitted, Prior, PriorFit, columns_of

# Relative difference of the time of equal work between configurations, because the place of data and the order of work
# differ, even without disturbances. Source: benchmarks/simulated_time.py
LEAST_DEVIATION = 0.005
# A prior is an alternative if its score is worse by less than this (a twentieth of the likelihood).
_MOST_WORSE = 6.0


def build(
    prior: Prior,
    found: Fitted,
    parameters: tuple[str, ...],
    points: FloatArray,
    repetitions: Repetitions,
    notes: tuple[str, ...],
) -> PriorFit:
    """Return the model of a prior with its coefficients, fitted to `repetitions` (1, C)."""
    coefficients, residual, left_out = found.coefficients, found.residual, found.left_out
    constant, terms = _summed(prior, coefficients)
    design = columns_of(prior, parameters, points)[None]
    used = np.array([(coefficients > 0).sum()])
    variance = np.maximum(value_variance(np.array([residual]), repetitions, len(points), used), LEAST_DEVIATION**2)
    lacking = lack_of_fit(np.array([residual]), repetitions, len(points), used)
    known = points, variance, repetitions.centre
    covariance = joint_covariance(design, coefficients[None], *known, BEYOND_EFFORT, lacking)[0]
    place = {term.shape: index + 1 for index, term in enumerate(terms)}
    mapping = np.zeros((len(terms) + 1, len(prior.columns)))
    for number, (c, column) in enumerate(zip(coefficients.tolist(), prior.columns, strict=True)):
        if c > 0:
            mapping[0, number] = column.constant
            for term in column.terms:
                if term.shape in place:
                    mapping[place[term.shape], number] += term.coefficient
    coefficients_of = np.kron(np.eye(1 + len(parameters)), mapping)
    whole = np.zeros((len(coefficients_of) + len(parameters), len(covariance)))
    whole[: len(coefficients_of), : coefficients_of.shape[1]] = coefficients_of
    whole[len(coefficients_of) :, coefficients_of.shape[1] :] = np.eye(len(parameters))  # deviations of exponents
    fitted = np.einsum("kc,k->c", design[0], coefficients)[None]
    matrix = whole @ covariance @ whole.T
    alternatives: tuple[Alternative, ...] = ()
    for number, own in enumerate(prior.columns):
        if coefficients[number] > 0 and (own.alternatives or own.covariance):
            column, rest = _split_column(number, prior, coefficients)
            if own.covariance:
                share = float((column.evaluate(points) / np.maximum(fitted[0], 1e-300)).max())
                matrix += covariance_in(column, Model(parameters, constant, terms), share)
            alternatives = alternatives or alternatives_with(column, rest)
    quality = qualities(repetitions.centre, fitted, np.array([left_out]), (coefficients > 0).sum()[None])[0]
    ranges = tuple((float(a), float(b)) for a, b in zip(points.min(axis=0), points.max(axis=0), strict=True))
    rows = tuple(tuple(row) for row in matrix.tolist())
    fitted_freely = int((coefficients > (prior.least or 0.0)).sum())
    model = Model(parameters, constant, terms, quality, ranges, rows, alternatives, notes)
    return PriorFit(prior, model, fitted_freely)


def _split_column(number: int, prior: Prior, coefficients: FloatArray) -> tuple[Model, Model]:
    """Return a column times its coefficient, and the sum of all other columns times their coefficients."""
    parts = [column.scaled(c) for c, column in zip(coefficients.tolist(), prior.columns, strict=True)]
    return parts.pop(number), add(parts)


def with_others(best: PriorFit, own: Fitted, others: Sequence[tuple[Prior, Fitted]]) -> PriorFit:
    """Return the best prior of a call path, with other priors that are nearly as likely as alternatives.

    Priors with equal sums count once. own, others: the fits of the best prior and of the others.
    """
    sums: dict[tuple[object, ...], tuple[float, float, tuple[Term, ...]]] = {}
    for prior, found in sorted(others, key=lambda one: one[1].score):
        if found.score < own.score + _MOST_WORSE:
            constant, terms = _summed(prior, found.coefficients)
            key = (f"{constant:.8e}", *((term.shape, f"{term.coefficient:.8e}") for term in terms))
            sums.setdefault(key, (found.score, constant, terms))
    constant, terms = best.model.constant, best.model.terms
    sums.pop((f"{constant:.8e}", *((term.shape, f"{term.coefficient:.8e}") for term in terms)), None)
    first, *weights = posterior_weights(np.array([[own.score, *(one[0] for one in sums.values())]]))[0].tolist()
    kept = [replace(one, weight=one.weight * first) for one in best.model.alternatives]
    kept += [Alternative(weight, *one[1:]) for weight, one in zip(weights, sums.values(), strict=True)]
    return replace(best, model=replace(best.model, alternatives=tuple(kept)))


def _summed(prior: Prior, coefficients: FloatArray) -> tuple[float, tuple[Term, ...]]:
    """Return the constant and the terms of the sum of columns times coefficients."""
    parts = [(c, column) for c, column in zip(coefficients.tolist(), prior.columns, strict=True) if c > 0]
    return collect(sum(c * m.constant for c, m in parts), [term.scaled(c) for c, m in parts for term in m.terms])
