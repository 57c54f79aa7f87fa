"""Other rules of selection, to compare with: the lowest cross-validated SMAPE, and the rule of Extra-P.

Neither knows of noise or of uncertainty: there is one hypothesis per call path and nothing beside it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import EXTRAP_LEAST_PART
from ..data.lines import lines
from ..fit.fitter import fit_hypotheses
from ..fit.weights import relative_weights
from ..hypotheses.library import Form, forms
from ..hypotheses.pool import Fitted, Pool, merge, spread, to_pool
from ..hypotheses.tables import Specification, Tables


def smape(values: FloatArray, predicted: FloatArray) -> FloatArray:
    """Return the symmetric mean absolute percentage error over the last axis, in %."""
    size = np.abs(values) + np.abs(predicted)
    result: FloatArray = 200.0 * (np.abs(values - predicted) / np.where(size > 0, size, 1.0)).mean(axis=-1)
    return result


def left_out(columns: FloatArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return what least squares without each point predicts there, (M, C); NaN where it is not determined.

    columns: (M, K, C); values, weights: (M, C).
    """
    q, _ = np.linalg.qr((columns * weights[:, None]).transpose(0, 2, 1))
    target = (values * weights)[:, :, None]
    rest = (target - q @ (q.transpose(0, 2, 1) @ target))[:, :, 0]
    remaining = 1.0 - np.einsum("mck,mck->mc", q, q)
    known = remaining > 1e-9
    return np.where(known, values - rest / np.where(known, remaining, 1.0) / weights, np.nan)


def choose_by_smape(tables: Tables, pool: Pool, values: FloatArray, weights: FloatArray) -> Pool:
    """Return the hypothesis of a pool (N, P) with the lowest SMAPE of points that were left out of the fit."""
    scores = np.full(pool.score.shape, np.inf)
    widths = (pool.specification >= 0).any(axis=3).sum(axis=2)
    for width in np.unique(widths).tolist():
        path, number = np.nonzero((widths == width) & np.isfinite(pool.score))
        columns = tables.design(pool.specification[path, number, :width])
        bare = pool.coefficients[path, number, 0] == 0.0
        for without in (False, True):
            rows = np.flatnonzero(bare == without)
            if not rows.size or (without and not width):
                continue
            own = columns[rows]
            if not without:
                own = np.concatenate([np.ones((rows.size, 1, tables.points)), own], axis=1)
            of_path = path[rows]
            predicted = left_out(own, values[of_path], weights[of_path])
            error = smape(values[of_path], predicted)
            scores[of_path, number[rows]] = np.where(np.isnan(error), 1e300, error)
    fitted = Fitted(pool.specification, pool.coefficients, pool.residual, pool.left_out, pool.residual)
    return to_pool(fitted, scores, 1)


class ExtraPRule:
    """Extra-P's rule on our hypotheses: values (N, C) at `points` (C, m), where `tables` holds the terms.

    One parameter: ordinary least squares of c0 + c1·term; a hypothesis replaces the constant, or a simpler one, if its
    cross-validated SMAPE is lower. Several: the functions come from the mean of the longest lines along each parameter;
    of the forms that combine them the one with the lowest SMAPE in the sample wins (Calotoiu et al., Fast
    Multi-Parameter Performance Modeling, CLUSTER 2016; Extra-P 4.2.5).
    """

    def __init__(self, points: FloatArray, tables: Tables, values: FloatArray) -> None:
        self.points, self.tables, self.values = points, tables, values
        self.parameters = points.shape[1]
        self.weights = np.ones_like(values)

    def run(self) -> Pool:
        """Return one hypothesis per call path."""
        functions = np.stack([self._function(parameter) for parameter in range(self.parameters)], axis=1)
        pools = []
        for pattern in np.unique(functions >= 0, axis=0):
            rows = ((functions >= 0) == pattern).all(axis=1)
            pools.append(spread(self._combined(functions[rows], pattern, rows), rows))
        return merge(pools, 1)

    def _function(self, parameter: int) -> NDArray[np.int16]:
        """Return the term of a parameter that explains the mean of its lines best, (N,), -1 for none."""
        found = lines(self.points, parameter, most=len(self.points))
        best = np.full(len(self.values), -1, dtype=np.int16)
        if not found:
            return best
        line, positions = found[0], self.points[:, parameter]
        alike = [own for own in found if np.array_equal(positions[own], positions[line])]
        values = np.mean([self.values[:, own] for own in alike], axis=0)
        weights = np.ones_like(values)
        ones = np.ones((len(values), 1, line.size))
        error = smape(values, left_out(ones, values, weights))
        for number, term in enumerate(self.tables.terms[parameter]):
            if term.exponent < 0:
                continue
            column = np.broadcast_to(self.tables.columns[parameter][number, line], ones.shape)
            columns = np.concatenate([ones, column], axis=1)
            own = smape(values, left_out(columns, values, weights))
            part = self._part(columns, values)
            better = (own < error) & (part >= EXTRAP_LEAST_PART)
            best[better], error = number, np.where(better, own, error)
        return best

    @staticmethod
    def _part(columns: FloatArray, values: FloatArray) -> FloatArray:
        """Return the largest part of c1·term in the values of a line, (N,)."""
        centred = columns[:, 1] - columns[:, 1].mean(axis=1, keepdims=True)
        square = (centred**2).sum(axis=1)
        slope = (centred * values).sum(axis=1) / np.where(square > 0, square, 1.0)
        size = np.where(values != 0, np.abs(values), np.inf)
        result: FloatArray = (np.abs(slope[:, None] * columns[:, 1]) / size).max(axis=1)
        return result

    def _combined(self, functions: NDArray[np.int16], pattern: NDArray[np.bool_], rows: NDArray[np.bool_]) -> Pool:
        values, weights = self.values[rows], self.weights[rows]
        pools = []
        for form in self._forms(np.flatnonzero(pattern).tolist()):
            if len(form) + 1 > self.values.shape[1]:
                continue
            specification = np.full((len(values), 1, len(form), self.parameters), -1, dtype=np.int16)
            for number, block in enumerate(form):
                for parameter in block:
                    specification[:, 0, number, parameter] = functions[:, parameter]
            fitted = fit_hypotheses(self.tables, specification, values, weights, False)
            pools.append(self._judged(specification, fitted, values))
        return merge(pools, 1)

    def _judged(self, specification: Specification, fitted: Fitted, values: FloatArray) -> Pool:
        """Return the only hypothesis of each call path with its SMAPE as score and relative errors, as elsewhere."""
        columns = self.tables.design(specification[:, 0])
        usable = np.nan_to_num(fitted.coefficients[:, 0])
        predicted = usable[:, :1] + np.einsum("nkc,nk->nc", columns, usable[:, 1:])
        scores = np.where(np.isfinite(fitted.residual[:, 0]), smape(values, predicted), np.inf)[:, None]
        relative = np.sqrt((((values - predicted) * relative_weights(values)) ** 2).mean(axis=1))[:, None]
        ratio = relative / np.where(fitted.residual > 0, fitted.residual, 1.0)
        left = np.where(np.isfinite(fitted.left_out), fitted.left_out, 0.0) * ratio
        left = np.where(np.isfinite(fitted.left_out), left, np.inf)
        return to_pool(Fitted(specification, fitted.coefficients, relative, left, fitted.worst), scores, 1)

    @staticmethod
    def _forms(active: list[int]) -> list[Form]:
        """Return the combinations that Extra-P tries: all up to three parameters, beyond that only Σ and Π."""
        if not active:
            return [()]
        if len(active) > 3:
            return [tuple((parameter,) for parameter in active), (tuple(active),)]
        every = [form for form in forms(len(active)) if {p for block in form for p in block} == set(range(len(active)))]
        return [tuple(tuple(active[p] for p in block) for block in form) for form in every]
