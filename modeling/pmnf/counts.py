# SPDX-License-Identifier: Apache-2.0
"""Model counts: exactly if possible, within rounding if this explains them, otherwise by the likeliest function.

Each step proposes candidates for the call paths that the previous steps do not explain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from .calibration import BATCH_COUNTS, COUNT_POOL
from .criterion.criterion import choose
from .criterion.deviating import Deviating
from .criterion.exactness import Exactness
from .criterion.rounding import Rounding
from .criterion.scattered import ScatteredCounts
from .data.lines import has_no_effect
from .data.noise import Repetitions
from .data.preparation import take
from .fit.fitter import with_constant
from .hypotheses.pool import Pool, merge, replaced, spread, to_pool
from .hypotheses.tables import Tables, tensor
from .proposers.exact import ExactSums
from .proposers.exact_terms import ExactLines
from .proposers.few import FewValues
from .proposers.inexact import InexactSums
from .proposers.rounded import RoundedSums
from .proposers.scattered import ScatteredSums, on_no_lines, scattered, scattered_sums

_Flags = NDArray[np.bool_]


def model_counts(
    points: FloatArray, tables: Tables, repetitions: Repetitions, exact_only: bool = False
) -> tuple[Pool, _Flags]:
    """Return the best models of the counts of N call paths at `points` (C, m), and which (N,) are exact.

    exact_only: models that are not exact stay constants.
    """
    values = repetitions.centre
    parameters = range(points.shape[1])
    criterion = Exactness(tables, values)
    on_lines = ExactLines(points, tables, values)
    terms, known = zip(*(on_lines.propose(parameter) for parameter in parameters), strict=True)
    constant = criterion.fit(np.empty((1, 0, points.shape[1]), dtype=np.int16))
    pools = [to_pool(constant, criterion.scores(constant), 1)]
    exact = np.asarray(pools[0].residual[:, 0] <= criterion.rounding, dtype=bool)
    candidates = np.logical_and.reduce(known) & ~exact
    sizes = np.stack([(found >= 0).sum(axis=1) for found in terms], axis=1)
    for shape in np.unique(sizes[candidates], axis=0).tolist():
        rows = candidates & (sizes == shape).all(axis=1)
        products = tensor([found[rows] for found in terms], shape)
        if products.shape[1]:
            own = criterion.part(rows)
            pools.append(spread(choose(ExactSums(own).propose(products), own, 1), rows))
            exact |= np.isfinite(pools[-1].score[:, 0])
    for parameter in parameters:
        others = np.logical_and.reduce([~exact, *(found for i, found in enumerate(known) if i != parameter)])
        few = FewValues(points, tables, parameter)
        sums = few.propose(values, criterion.weights, criterion.rounding, list(terms), others)
        pools.append(choose(sums, criterion, 1))
        exact |= np.isfinite(pools[-1].score[:, 0])
    alike = ~repetitions.differ  # else they are no exact functions
    if scattered(points) and (alike & ~exact).any():
        proposer, rows = ScatteredSums(points, tables), alike & ~exact
        pools.append(spread(choose(proposer.propose(values[rows]), criterion.part(rows), 1), rows))
        exact |= np.isfinite(pools[-1].score[:, 0])
        pools.append(choose(proposer.propose_thoroughly(values, alike & ~exact), criterion, 1))
        exact |= np.isfinite(pools[-1].score[:, 0])
    if not exact_only:
        rounded = RoundedSums(points, tables)
        everywhere = np.ones(len(points), dtype=bool)
        open_paths = np.flatnonzero(~exact)
        for numbers in np.array_split(open_paths, max(1, -(-open_paths.size // BATCH_COUNTS))):
            if numbers.size:
                rows = np.zeros(len(values), dtype=bool)
                rows[numbers] = True
                part = take(repetitions, numbers, everywhere)
                pools.append(spread(_near_exact(points, tables, part, rounded), rows))
    return merge(pools, COUNT_POOL), exact


def _near_exact(points: FloatArray, tables: Tables, repetitions: Repetitions, rounded: RoundedSums) -> Pool:
    """Return models of counts that no sum reproduces: within rounding if possible, otherwise the likeliest."""
    values = repetitions.centre
    rounding = Rounding(points, tables, values)
    alike = ~repetitions.differ  # random counts are not rounded values of a function
    found = choose(rounded.propose(values[alike]), Rounding(points, tables, values[alike]), COUNT_POOL)
    pool = _relative(spread(found, alike), tables, values)
    known = np.isfinite(pool.score[:, 0])
    rest = ~known | (_sizes(pool)[:, 0] > 1)
    if rest.any():
        likely, weights = _likely(points, tables, take(repetitions, np.flatnonzero(rest), _all(points)))
        beyond = np.where(_sizes(likely) < _sizes(pool)[rest][:, :1], likely.residual, np.inf).min(axis=1)
        sure = known[rest] & rounding.surer(_sizes(pool)[rest, 0], beyond[:, None] / weights, rest)
        rest[np.flatnonzero(rest)[sure]] = False
        pool = replaced(pool, rest, likely.rows(~sure))
    return pool


def _likely(points: FloatArray, tables: Tables, repetitions: Repetitions) -> tuple[Pool, FloatArray]:
    """Return the likeliest models of counts (N, C) that deviate, and their weights (N, C).

    If a parameter has no effect, one of its values is enough: the others add no evidence, and do not test errors of
    left-out points.
    """
    values, everywhere = repetitions.centre, _all(points)
    parts: list[tuple[_Flags, Pool]] = []
    rest = np.ones(len(values), dtype=bool)
    idle = np.stack([has_no_effect(points, values, index) for index in range(points.shape[1])], axis=1)
    for key in np.unique(idle[idle.any(axis=1) & ~idle.all(axis=1)], axis=0):
        at = everywhere.copy()
        for index in np.flatnonzero(key):
            found, number = np.unique(points[at, index], return_counts=True)
            at &= points[:, index] == found[number.argmax()]
        whole = all(np.isin(points[:, index], points[at, index]).all() for index in np.flatnonzero(~key))
        rows = (idle == key).all(axis=1)
        if whole and not at.all():
            used = np.flatnonzero(~key)
            own = take(repetitions, np.flatnonzero(rows), at)
            part = _likely_of(points[at][:, used], tables.part(at, used.tolist()), own, spare=0.5)
            specification = np.full((*part.specification.shape[:-1], points.shape[1]), -1, dtype=np.int16)
            specification[..., used] = part.specification
            parts.append((rows, replace(part, specification=specification)))
            rest &= ~rows
    if rest.any():
        parts.append((rest, _likely_of(points, tables, take(repetitions, np.flatnonzero(rest), everywhere))))
    pool = spread(parts[0][1], parts[0][0])
    for rows, part in parts[1:]:
        pool = replaced(pool, rows, part)
    return pool, Deviating(points, tables, values, repetitions).weights


def _all(points: FloatArray) -> _Flags:
    return np.ones(len(points), dtype=bool)


def _likely_of(points: FloatArray, tables: Tables, repetitions: Repetitions, spare: float = 0.0) -> Pool:
    criterion = Deviating(points, tables, repetitions.centre, repetitions, spare)
    if on_no_lines(points):
        credible = ScatteredCounts(criterion)
        return choose(scattered_sums(points, credible), credible, COUNT_POOL)
    return choose(InexactSums(points, criterion).propose(), criterion, COUNT_POOL)


def _relative(pool: Pool, tables: Tables, values: FloatArray) -> Pool:
    """Return the pool of fits to `values` (N, C) in counts, with relative residuals."""
    fitted = np.einsum("npkc,npk->npc", with_constant(tables.design(pool.specification)), pool.coefficients)
    size = np.maximum(np.abs(values), 1.0)[:, None]
    relative = np.sqrt((((values[:, None] - fitted) / size) ** 2).mean(axis=2))
    part = relative / np.maximum(pool.residual, np.finfo(float).tiny)
    known = np.isfinite(pool.residual)
    left_out = np.where(np.isfinite(pool.left_out), pool.left_out, np.inf) * np.where(known, part, 1.0)
    return replace(pool, residual=np.where(known, relative, np.inf), left_out=left_out)


def _sizes(pool: Pool) -> NDArray[np.int64]:
    """Return the numbers of coefficients (N, P)."""
    return np.asarray((pool.coefficients != 0).sum(axis=2), dtype=np.int64)
