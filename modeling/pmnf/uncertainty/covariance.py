# SPDX-License-Identifier: Apache-2.0
"""The uncertainty of a model: the covariance of its coefficients and of its exponents.

The form of a model comes from a library, and the true form may differ. Every part of it, including the constant, is
therefore c·x^i·log^j(x)·x^e with an unknown deviation e of the exponent of each parameter. Its prior is a standard
deviation of EXPONENT_DEVIATION, or no deviation; in addition, the whole may be curved (Laplace's approximation of the
posterior; MacKay, Information Theory, Inference, and Learning Algorithms, 2003, chapter 27). Directions that
measurements do not determine keep their prior: the exponents of two parameters that always grow together, and the
exponent of a parameter with one value. Errors grow with the distance from the measurements.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import (
    CURVATURE_DEVIATION,
    EXPONENT_DEVIATION,
    FORM_RIGHT,
    FORMS_PER_EXPONENT,
    LEAST_VARIANCE,
    LUCK_OF_SQUARES,
    RIDGE,
    TOGETHER,
)
from ..data.noise import Repetitions
from ..fit.weights import model_weights
from ..model import Model


def joint_covariance(
    design: FloatArray,
    best: FloatArray,
    points: FloatArray,
    variance: FloatArray,
    values: FloatArray,
    doubt: float = 1.0,
    lacking: FloatArray | float = 0.0,
) -> FloatArray:
    """Return the covariance of coefficients `best` (N, K) of `design` (N, K, C), (N, P, P) with P = K·(1 + m) + m.

    The first K rows are the coefficients; then, for each parameter, the coefficients times the deviations of their
    exponents; then, for each parameter, the curvature of the whole. points: (C, m); values: (N, C), fitted; variance:
    (N,) relative, of one value. Rows of coefficients that are 0 are 0. doubt: expected size of deviations, relative to
    a form without prior knowledge. lacking: (N,) relative variance of the function around its model (`lack_of_fit`).
    """
    logs, centre = log_points(points)
    width, parameters = best.shape[1], len(logs)
    fitted = (best[:, None] @ design)[:, 0]
    weights = model_weights(values, fitted)
    share = design * (best[:, :, None] * weights[:, None, :])
    bent = (fitted * weights)[:, None] * logs**2
    columns = np.concatenate([share, *(share * slope for slope in logs), bent], axis=1)
    deviations = doubt * np.repeat([EXPONENT_DEVIATION, CURVATURE_DEVIATION], [width * parameters, parameters])
    variance = np.maximum(variance, LEAST_VARIANCE)[:, None, None]

    gram = columns @ columns.transpose(0, 2, 1)
    seen = (columns @ ((values - fitted) * weights)[:, :, None])[:, :, 0]
    normal, between = gram[:, :width, :width], gram[:, :width, width:]
    trace = np.trace(normal, axis1=1, axis2=2)[:, None]
    ridge = np.where((best != 0) & (trace > 0), RIDGE * trace, 1.0)
    inverse = np.linalg.inv(normal + ridge[:, :, None] * np.eye(width))
    along = inverse @ between  # the part of the deviations that coefficients take, (N, K, D)
    alone = (gram[:, width:, width:] - between.transpose(0, 2, 1) @ along) * deviations[:, None] * deviations
    rest = (seen[:, width:] - (seen[:, None, :width] @ along)[:, 0]) * deviations
    unknown = parameters * ((best != 0).sum(axis=1) + 1)
    directions, moments = _left_open(alone / variance, rest / variance[:, 0], unknown)
    size = np.concatenate([np.tile(best, (1, 1 + parameters)), np.ones((len(best), parameters))], axis=1)
    moved = np.concatenate([-along, np.broadcast_to(np.eye(along.shape[2]), (len(best), *2 * along.shape[2:]))], axis=1)
    moved = _of_logarithms(moved * size[:, :, None], best, centre)
    factors = (moved * deviations) @ (directions * np.sqrt(moments)[:, None])
    covariance: FloatArray = factors @ factors.transpose(0, 2, 1)
    alike = np.broadcast_to(lacking, len(best))[:, None, None]
    covariance[:, :width, :width] += (variance * inverse + alike) * best[:, :, None] * best[:, None, :]
    return covariance


def loosened(model: Model, parameter: str, deviation: float) -> Model:
    """Return a model that continues beyond the largest value of a parameter with an uncertain exponent.

    deviation: the standard deviation of the difference from the model's exponent, equal for all parts. At the largest
    measured value the uncertainty does not change. Exact models do not change.
    """
    index = model.parameters.index(parameter)
    largest = model.ranges[index][1] if model.ranges else 0.0
    if not len(model.covariance) or largest <= 0.0:
        return model
    coefficients = np.array([model.constant, *(term.coefficient for term in model.terms)])
    width, parameters = len(coefficients), len(model.parameters)
    known = np.asarray(model.covariance)
    covariance = np.zeros((width * (1 + parameters) + parameters,) * 2)
    covariance[: len(known), : len(known)] = known
    moved = np.zeros(len(covariance))
    moved[:width] = -np.log(largest) * coefficients
    moved[width * (1 + index) : width * (2 + index)] = coefficients
    covariance += deviation**2 * np.outer(moved, moved)
    return replace(model, covariance=tuple(map(tuple, covariance.tolist())))


def _left_open(precision: FloatArray, seen: FloatArray, unknown: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    """Return directions (N, D, D) of D deviations of size one, and their second moments (N, D) given the values.

    precision: (N, D, D), of the deviations, from the values alone; seen: (N, D), precision times the estimate from the
    values; unknown: (N,) number of deviations, the others belong to coefficients that are 0. In each direction that the
    values determine, deviations are 0 or not (a spike and a slab; Mitchell and Beauchamp, Journal of the American
    Statistical Association 83, 1988). The prior probability that all are 0 is FORM_RIGHT for three deviations, and
    falls with the root of their number, because parts of a form are correct together.
    """
    known, directions = np.linalg.eigh(precision)
    known = 1.0 + np.maximum(known, 0.0)
    seen = (seen[:, None] @ directions)[:, 0]
    zero = FORM_RIGHT ** (1.0 / np.sqrt(3.0 * np.maximum(unknown, 1.0)))[:, None]
    odds = np.sqrt(known) * np.exp(-0.5 * np.minimum(seen**2 / known, 1400.0)) * zero / (1.0 - zero)
    return directions, (1.0 / known + (seen / known) ** 2) / (1.0 + odds)


def _of_logarithms(moved: FloatArray, best: FloatArray, centre: FloatArray) -> FloatArray:
    """Return the changes by deviations (N, P, D), for logarithms instead of logarithms around `centre` (m,)."""
    width, parameters = best.shape[1], len(centre)
    result = moved.copy()
    for parameter, at in enumerate(centre.tolist()):
        block = slice(width * (1 + parameter), width * (2 + parameter))
        bent = at * best[:, :, None] * moved[:, None, width * (1 + parameters) + parameter]
        result[:, :width] += at * (bent - moved[:, block])
        result[:, block] -= 2.0 * bent
    return result


def log_points(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms (m, C) of points (C, m) minus their means, and the means. 0 if a parameter has a 0."""
    logs = np.where((points > 0).all(axis=0), np.log(np.where(points > 0, points, 1.0)), 0.0)
    centre = logs.mean(axis=0)
    return (logs - centre).T, centre


def open_parameters(points: FloatArray) -> list[int]:
    """Return the parameters with a single value at points (C, m), and those that are combinations of others.

    A parameter with a value 0 has no logarithm there: its smallest other value is used.
    """
    least = np.where(points > 0, points, np.inf).min(axis=0, initial=np.inf)
    offset = np.where((points > 0).all(axis=0) | np.isinf(least), 0.0, least)
    logs, _ = log_points(points + offset)
    size = np.abs(logs).max(axis=1, initial=0.0)
    alone = [int(index) for index in np.flatnonzero(size <= TOGETHER)]
    others = np.flatnonzero(size > TOGETHER)
    if others.size and np.linalg.matrix_rank(logs[others] / size[others, None], tol=TOGETHER) < others.size:
        rest = {index: np.delete(others, place) for place, index in enumerate(others.tolist())}
        rank = np.linalg.matrix_rank(logs[others] / size[others, None], tol=TOGETHER)
        alone += [
            index
            for index, left in rest.items()
            if np.linalg.matrix_rank(logs[left] / size[left, None], tol=TOGETHER) == rank
        ]
    return sorted(alone)


def lack_of_fit(
    residual: FloatArray, repetitions: Repetitions, points: int, coefficients: NDArray[np.int64]
) -> FloatArray:
    """Return the relative variance (N,) of the function around its model, from residuals beyond repetitions.

    Arguments as in `value_variance`. It is 0 without repetitions, because residuals then count as noise.
    """
    open_points = np.maximum(points - coefficients, 0)
    noise = repetitions.scatter**2 / np.maximum(repetitions.count, 1.0)
    squares = np.where(np.isfinite(residual), residual, 0.0) ** 2 * points / np.maximum(open_points, 1.0)
    by_luck = 1.0 + LUCK_OF_SQUARES * np.sqrt(2.0 / np.maximum(open_points, 1.0))
    known = (repetitions.freedom > 0) & (open_points > 0)
    return np.where(known, np.maximum(squares - by_luck * noise, 0.0), 0.0)


def value_variance(
    residual: FloatArray,
    repetitions: Repetitions,
    points: int | NDArray[np.int64],
    coefficients: NDArray[np.int64],
    chosen: NDArray[np.int64] | int = 0,
) -> FloatArray:
    """Return the relative variance (N,) of a value around its model, from residuals and repetitions.

    residual: (N,) root mean square relative error of the fits at this number of points, also (N,); coefficients: (N,)
    number of coefficients and selected exponents, each a degree of freedom. If the residuals are larger than the
    repetitions explain, the form is wrong or configurations differ by more than repetitions, and only the residuals
    count. chosen: (N,) how many of `coefficients` are exponents, whose choice may be a coincidence without degrees of
    freedom.
    """
    open_points = np.maximum(points - coefficients, 0)
    freedom = np.minimum(repetitions.freedom, 4.0 * points)
    noise = repetitions.scatter**2 / np.maximum(repetitions.count, 1.0)
    squares = np.where(np.isfinite(residual), residual, 0.0) ** 2 * points
    known = np.maximum(open_points + freedom, 1.0)
    together = (squares + freedom * noise) / known
    alone = squares / np.maximum(open_points, 1.0)
    # widened so that quantiles of the normal distribution are about those of Student's t
    together *= (1.0 + 1.5 / known) ** 2
    alone *= (1.0 + 1.5 / np.maximum(open_points, 1.0)) ** 2
    unknown = (open_points == 0) & (repetitions.freedom == 0)
    alone = np.where(
        unknown, np.maximum(alone, _of_the_luckiest(squares, points - coefficients + chosen, chosen)), alone
    )
    result: FloatArray = np.maximum(together, alone)
    return result


def _of_the_luckiest(squares: FloatArray, freedom: NDArray[np.int64], chosen: NDArray[np.int64] | int) -> FloatArray:
    """Return the relative variance (N,) of values if the best form leaves `squares` (N,) of relative errors.

    Exponents from a library take no whole degrees of freedom: of FORMS_PER_EXPONENT to the power of `chosen` forms, the
    best has a residual below r with a probability of this number times (r/σ) to the power of the `freedom` (N,) that
    coefficients leave.
    """
    left = np.maximum(freedom, 1)
    forms = FORMS_PER_EXPONENT ** (2.0 * chosen / left)
    result: FloatArray = np.where(freedom > 0, squares / left * forms * (1.0 + 1.5 / left) ** 2, 0.0)
    return result
