# SPDX-License-Identifier: Apache-2.0
"""The uncertainty of a model: the covariance of its coefficients and of its exponents.

The form of a model comes from a library, and the true form may differ. Every part of the model, including the constant,
is therefore c·x^i·log^j(x)·x^e for each parameter x, with an unknown deviation e of the exponent. The whole model is
also multiplied by 1 + q·(ln x)², with an unknown curvature q for each parameter. The prior: with some probability all
deviations are 0, else they are normal with the standard deviations EXPONENT_DEVIATION and CURVATURE_DEVIATION. The
posterior is approximated around e = q = 0 (Laplace's method; MacKay, Information Theory, Inference, and Learning
Algorithms, 2003, chapter 27).

Deviations that the measurements do not determine keep their prior: the exponents of two parameters that always grow
together, and the exponent of a parameter with a single value. The standard error of a prediction therefore grows with
the distance from the measurements.

Shapes: N call paths, C points, m parameters, K coefficients (one of the constant, one per product).
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
    """Return the covariance (N, P, P) of coefficients and deviations, P = K·(1 + m) + m.

    The first K rows are the coefficients. K rows for each parameter follow: the coefficients times the deviations of
    their exponents. The last m rows are the curvatures in each parameter. Rows of coefficients that are 0 are 0.

    best: (N, K), the coefficients; design: (N, K, C), their columns; points: (C, m); values: (N, C), to which the
    coefficients were fitted; variance: (N,) relative variance of one value. doubt: factor of the standard deviations of
    the prior; 1 if nothing is known about the form. lacking: (N,) relative variance of the true function around its
    model (`lack_of_fit`), which adds to that of each coefficient.
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
    # (N, K, D): the relative change of each coefficient with which it compensates each of the D deviations
    along = inverse @ between
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
    """Return the model with an additional uncertainty of its exponent in one parameter.

    The uncertainty grows beyond the largest measured value of the parameter, and does not change at this value.
    deviation: standard deviation of the difference from the exponent, which is the same for all terms. Models without
    covariance are returned unchanged.
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
    """Return orthogonal directions (N, D, D) of the D deviations, and the posterior second moment (N, D) along each.

    Deviations are in units of their prior standard deviation. precision: (N, D, D) of the deviations, from the values
    alone; seen: (N, D), the precision times the estimate from the values; unknown: (N,) number of deviations, not
    counting coefficients that are 0.

    Along each direction, the deviation is 0 or normal with variance 1 (a spike and a slab; Mitchell and Beauchamp,
    Bayesian Variable Selection in Linear Regression, Journal of the American Statistical Association 83, 1988). With u
    unknown deviations, the prior probability of 0 is FORM_RIGHT^(1/√(3·u)), so all are 0 with probability FORM_RIGHT if
    u = 3. The root takes into account that the parts of a form are usually correct together.
    """
    known, directions = np.linalg.eigh(precision)
    known = 1.0 + np.maximum(known, 0.0)
    seen = (seen[:, None] @ directions)[:, 0]
    zero = FORM_RIGHT ** (1.0 / np.sqrt(3.0 * np.maximum(unknown, 1.0)))[:, None]
    odds = np.sqrt(known) * np.exp(-0.5 * np.minimum(seen**2 / known, 1400.0)) * zero / (1.0 - zero)
    return directions, (1.0 / known + (seen / known) ** 2) / (1.0 + odds)


def _of_logarithms(moved: FloatArray, best: FloatArray, centre: FloatArray) -> FloatArray:
    """Convert the changes `moved` (N, P, D) of the rows by each deviation from centred to plain logarithms.

    In `moved`, a deviation e of an exponent multiplies by exp(e·(ln x - centre)); in the result, by exp(e·ln x). The
    curvature is converted in the same way. best: (N, K), the coefficients; centre: (m,) means of the logarithms.
    """
    width, parameters = best.shape[1], len(centre)
    result = moved.copy()
    for parameter, at in enumerate(centre.tolist()):
        block = slice(width * (1 + parameter), width * (2 + parameter))
        bent = at * best[:, :, None] * moved[:, None, width * (1 + parameters) + parameter]
        result[:, :width] += at * (bent - moved[:, block])
        result[:, block] -= 2.0 * bent
    return result


def log_points(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms (m, C) of points (C, m) minus their means (m,), and these means.

    Both are 0 for a parameter that has a value of 0.
    """
    logs = np.where((points > 0).all(axis=0), np.log(np.where(points > 0, points, 1.0)), 0.0)
    centre = logs.mean(axis=0)
    return (logs - centre).T, centre


def open_parameters(points: FloatArray) -> list[int]:
    """Return the numbers of the parameters whose effects the points (C, m) do not determine, in ascending order.

    These are parameters with a single value, and parameters whose logarithm is a linear combination of the logarithms
    of others at all points. To a parameter with a value of 0, its smallest other value is added before the logarithm.
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
    """Return the relative variance (N,) of the true function around its model.

    This is the mean square of the residuals minus that of the noise, as far as chance does not explain it. It is 0
    without repetitions, because residuals then count as noise. Arguments as in `value_variance`.
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
    """Return the relative variance (N,) of a measured value around its model.

    It is the larger one of two estimates: from residuals and repetitions together, and from the residuals alone. The
    second is larger if the form is wrong, or if configurations differ by more than repetitions.

    residual: (N,) root mean square relative error of the fits; points: their number of points, one number or (N,);
    coefficients: (N,) number of coefficients and selected exponents, each of which takes a degree of freedom; chosen:
    (N,) how many of these are exponents. If neither residuals nor repetitions leave a degree of freedom, the estimate
    considers that the best of many exponents may fit by coincidence (`_of_the_luckiest`).
    """
    open_points = np.maximum(points - coefficients, 0)
    freedom = np.minimum(repetitions.freedom, 4.0 * points)
    noise = repetitions.scatter**2 / np.maximum(repetitions.count, 1.0)
    squares = np.where(np.isfinite(residual), residual, 0.0) ** 2 * points
    known = np.maximum(open_points + freedom, 1.0)
    together = (squares + freedom * noise) / known
    alone = squares / np.maximum(open_points, 1.0)
    # Enlarged, so that quantiles of the normal distribution are about as far out as quantiles of Student's t.
    together *= (1.0 + 1.5 / known) ** 2
    alone *= (1.0 + 1.5 / np.maximum(open_points, 1.0)) ** 2
    unknown = (open_points == 0) & (repetitions.freedom == 0)
    alone = np.where(
        unknown, np.maximum(alone, _of_the_luckiest(squares, points - coefficients + chosen, chosen)), alone
    )
    result: FloatArray = np.maximum(together, alone)
    return result


def _of_the_luckiest(squares: FloatArray, freedom: NDArray[np.int64], chosen: NDArray[np.int64] | int) -> FloatArray:
    """Return the relative variance σ² (N,) of values if the model is the best one of many forms.

    squares: (N,) sum of the squared relative errors of this form; freedom: (N,) number f of degrees of freedom that the
    coefficients leave; chosen: number of exponents. An exponent from a library does not take a whole degree of freedom.
    Instead, the model is the best one of F = FORMS_PER_EXPONENT^chosen forms. The best form has a root mean square
    error below r with a probability of about F·(r/σ)^f. Hence σ² ≈ squares/f · F^(2/f), enlarged for Student's t.
    """
    left = np.maximum(freedom, 1)
    forms = FORMS_PER_EXPONENT ** (2.0 * chosen / left)
    result: FloatArray = np.where(freedom > 0, squares / left * forms * (1.0 + 1.5 / left) ** 2, 0.0)
    return result
