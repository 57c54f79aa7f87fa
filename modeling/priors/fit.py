# SPDX-License-Identifier: Apache-2.0
"""Fit the coefficients of priors: non-negative least squares on relative errors, for many call paths at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from ..parallel import batches
from ..pmnf.calibration import NOISY
from ..pmnf.criterion.evidence import score
from ..pmnf.data.noise import Repetitions
from ..pmnf.fit.fitter import fit
from ..pmnf.fit.weights import relative_weights
from ..progress import steps
from .built import build, with_others
from .one_sided import FIRST_ROUNDS, LEAST_REPETITIONS, Undisturbed, one_sided_weights
from .prior import Fitted, Prior, PriorFit, columns_of

_Flags = NDArray[np.bool_]
# Largest number of columns of a prior: non-negative least squares tries all subsets.
MOST_COLUMNS = 6
_ROUNDS, _TRUST_ROUNDS = 4, 15
# The iteration ends when no weight changes by more.
_SETTLED = 0.01
# Errors are relative to at least this share of the mean; a smaller fit does not show the noise.
_LEAST_FIT = 1e-3


def fit_priors(
    choices: Sequence[Sequence[Prior]],
    parameters: tuple[str, ...],
    points: FloatArray,
    repetitions: Repetitions,
    notes: tuple[str, ...] = (),
    singles: FloatArray | None = None,
    doubted: bool = False,
) -> list[PriorFit | None]:
    """Fit the priors of N call paths. Return the best prior of each call path; None if none can be fitted.

    - choices: N lists of priors with at most MOST_COLUMNS columns, the most plausible prior first.
    - points: (C, m), columns as `parameters`. repetitions: N call paths at these points, all measured.
    - notes: added to every model.
    - singles: the single repetitions (N, C, R). With them, coefficients and the choice of the prior use single values:
      if noise lengthens half of the repetitions, the undisturbed repetitions still count, which no mean shows.
    - doubted: the models contain other priors that are nearly as likely as alternatives.

    Priors with the same number of columns are fitted in one batch.
    """
    built, each = repetitions, 1 if singles is None else singles.shape[2]
    usable = np.ones_like(repetitions.centre)
    lower = None
    if singles is not None and each > 1:
        repetitions, usable = _apart(singles, repetitions)
        if each >= LEAST_REPETITIONS:
            lower = Undisturbed.of(repetitions.centre.reshape(len(choices), -1, each))
    owner = np.array([path for path, several in enumerate(choices) for _ in several], dtype=np.int64)
    priors = [prior for several in choices for prior in several]
    known: dict[int, FloatArray] = {}  # cache: priors, also of different call paths, share columns
    columns = [
        np.repeat(_counted(prior, columns_of(prior, parameters, points, known)), each, axis=1) for prior in priors
    ]
    everything = np.arange(len(priors))
    trusted = usable.copy()
    fits = at_first = _fit_all(everything, owner, priors, columns, repetitions, trusted)
    best = _best(owner, fits)
    if not best:
        return [None] * len(choices)
    paths = np.array(list(best), dtype=np.int64)

    def fitted_by(members: NDArray[np.int64]) -> FloatArray:
        several = [fits[best[path]].coefficients @ columns[best[path]] for path in members.tolist()]
        return np.array(several).reshape(len(members), -1)

    for round_ in range(FIRST_ROUNDS + _TRUST_ROUNDS if paths.size else 0):
        before = trusted.copy()
        least = None if lower is None else lower.take(paths)
        trusted[paths] = one_sided_weights(repetitions.centre[paths], fitted_by(paths), round_ < FIRST_ROUNDS, least)
        trusted[paths] *= usable[paths]
        changed = np.abs(trusted - before).max(axis=1) > _SETTLED
        again = np.array([best[path] for path in paths.tolist() if changed[path]], dtype=np.int64)
        if not again.size and round_ >= FIRST_ROUNDS:
            break
        fits = fits | _fit_all(again, owner, priors, columns, repetitions, trusted)
    # call paths with unchanged weights keep their first fit
    again = everything[(trusted != usable).any(axis=1)[owner]]
    fits = {**at_first, **_fit_all(again, owner, priors, columns, repetitions, trusted)}
    best = _best(owner, fits)
    result: list[PriorFit | None] = [None] * len(choices)
    for path, number in best.items():
        own = take(built, np.array([path]))
        found = fits[number] if each == 1 else _of_means(fits[number], columns[number][:, ::each], own)
        model = build(priors[number], found, parameters, points, own, notes)
        if doubted:
            others = [other for other in np.flatnonzero(owner == path).tolist() if other != number]
            model = with_others(model, fits[number], [(priors[other], fits[other]) for other in others])
        result[path] = model
    return result


def _apart(singles: FloatArray, repetitions: Repetitions) -> tuple[Repetitions, FloatArray]:
    """Return values (N, C, R) as N call paths at C·R configurations, and which of them were measured (0, 1).

    A missing value, or a 0 where other repetitions are above 0, is replaced by the value of its configuration.
    """
    measured = np.isfinite(singles) & (singles > 0.0)
    values = np.where(measured, singles, repetitions.centre[:, :, None]).reshape(len(singles), -1)
    nothing = np.zeros(len(values))
    flags = nothing.astype(np.bool_)
    counts = measured.reshape(values.shape).astype(np.float64)
    return Repetitions(values, nothing, nothing, nothing + 1.0, counts, flags, nothing, nothing), counts


def _of_means(found: Fitted, columns: FloatArray, repetitions: Repetitions) -> Fitted:
    """Return a fit to single values, with its errors at the configurations. Intervals refer to their means."""
    fitted = np.maximum(found.coefficients @ columns, 1e-300)[None]
    trusted = one_sided_weights(repetitions.centre, fitted)
    residual = float(np.sqrt(((trusted * (repetitions.centre / fitted - 1.0)) ** 2).mean()))
    by = residual / found.residual if found.residual > 0.0 else 1.0
    return replace(found, residual=residual, left_out=found.left_out * by)


def fit_where(
    choices: Mapping[int, Sequence[Prior]],
    parameters: tuple[str, ...],
    points: FloatArray,
    repetitions: Repetitions,
    where: _Flags,
    notes: Callable[[int, _Flags], tuple[str, ...]] = lambda _path, _pattern: (),
    singles: FloatArray | None = None,
    doubted: bool = False,
) -> dict[int, PriorFit]:
    """Fit the priors of call paths, each at separate configurations; equal configurations share a batch.

    choices: by row of `repetitions` and `where`, (N, C). notes: for a row and its configurations. singles, doubted: as
    in `fit_priors`. Rows without a configuration, or without a fit, are omitted.
    """
    rows = np.array([row for row, priors in choices.items() if priors and where[row].any()], dtype=np.int64)
    patterns, group = np.unique(where[rows], axis=0, return_inverse=True)
    result: dict[int, PriorFit] = {}
    for number, pattern in steps("modeling time", list(enumerate(patterns))):
        alike = rows[group.reshape(-1) == number]
        values = int(pattern.sum()) * (1 if singles is None else singles.shape[2])
        most = max(len(choices[row]) for row in alike.tolist())
        for place in batches(len(alike), 1, values * most):
            members = alike[place]
            part = take(repetitions, members)
            part = replace(part, centre=part.centre[:, pattern], counts=part.counts[:, pattern])
            several = [[prior.at(pattern) for prior in choices[row]] for row in members.tolist()]
            own = None if singles is None else singles[members][:, pattern]
            said = notes(int(members[0]), pattern)
            fits = fit_priors(several, parameters, points[pattern], part, said, own, doubted)
            result |= {row: found for row, found in zip(members.tolist(), fits, strict=True) if found is not None}
    return result


def _fit_all(
    numbers: NDArray[np.int64],
    owner: NDArray[np.int64],
    priors: Sequence[Prior],
    columns: Sequence[FloatArray],
    repetitions: Repetitions,
    trusted: FloatArray,
) -> dict[int, Fitted]:
    """Fit the priors with these numbers, grouped by their number of columns. trusted: weights (N, C) per call path."""
    result: dict[int, Fitted] = {}
    widths = np.array([len(priors[number].columns) for number in numbers])
    for width in np.unique(widths).tolist():
        members = numbers[widths == width].tolist()
        paths = owner[members]
        needed = np.array([[k in priors[number].needed for k in range(width)] for number in members])
        bounded = np.array([bool(priors[number].least) for number in members])
        design = np.stack([columns[number] for number in members])
        part = take(repetitions, paths)
        found = _nonnegative(design, part, needed, bounded, trusted[paths])
        least = np.array([priors[number].least or (0.0,) * width for number in members]).reshape(-1, width)
        coefficients = np.maximum(found[0], least)
        for index, number in enumerate(members):
            residual, left_out, value = (float(part[index]) for part in found[1:])
            result[number] = Fitted(coefficients[index], residual, left_out, value + priors[number].penalty)
    return result


def _best(owner: NDArray[np.int64], fits: Mapping[int, Fitted]) -> dict[int, int]:
    """Return the number of the best prior of each call path with a fit."""
    best: dict[int, int] = {}
    for number, path in enumerate(owner.tolist()):
        score_ = fits[number].score
        if np.isfinite(score_) and (path not in best or score_ < fits[best[path]].score):
            best[path] = number
    return best


def _counted(prior: Prior, columns: FloatArray) -> FloatArray:
    """Return the columns of a prior (K, C), with counted values instead of models."""
    for column, values in prior.counted.items():
        columns[column] = values
    return columns


def _nonnegative(
    columns: FloatArray, repetitions: Repetitions, needed: _Flags, bounded: _Flags, trusted: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return coefficients (N, K), residuals, left-out errors and scores (N,) of the best non-negative fits.

    The non-negative optimum is the best positive fit among the unconstrained fits to all subsets of columns. From the
    second round on, errors are relative to the fit (iteratively reweighted least squares for noise in proportion to the
    mean). Errors relative to the values would favour values that are small by chance. trusted: factors of the weights
    (N, C), see `one_sided`.
    """
    problem = _Problem(columns, repetitions, needed, bounded)
    weights = trusted * relative_weights(repetitions.centre)
    result = problem.fitted(weights)
    least = _LEAST_FIT * repetitions.centre.mean(axis=1, keepdims=True)
    for _ in range(_ROUNDS):
        fitted = np.einsum("nkc,nk->nc", columns, result[0])
        result = problem.fitted(trusted / np.maximum(fitted, least))
    return result


class _Problem:
    """The constant part of the problem of `_nonnegative`: its subsets of columns, and terms without weights."""

    def __init__(self, columns: FloatArray, repetitions: Repetitions, needed: _Flags, bounded: _Flags) -> None:
        _, width, points = columns.shape
        self.values = repetitions.centre
        scale = np.abs(columns).max(axis=2)
        self.scale = np.where(scale > 0, scale, 1.0)
        scaled = columns / self.scale[:, :, None]
        self.noise = repetitions.uncertainty
        self.measured = (repetitions.counts > 0).sum(axis=1)
        self.freedom = np.minimum(repetitions.freedom, self.measured)
        self.by = np.sqrt(points / np.maximum(self.measured, 1))[:, None]  # errors are means of measured values
        # a penalty below zero makes the largest subset that is positive win, which is the non-negative optimum
        self.penalty = np.where(bounded, -1e6, NOISY.coefficient)
        demand = np.asarray(needed.any(axis=1), dtype=bool)
        self.subsets = []
        for size in range(1, min(width, points) + 1):
            subsets = np.array(list(combinations(range(width), size)))
            possible = needed[:, subsets].any(axis=2) | ~demand[:, None]
            self.subsets.append((subsets, scaled[:, subsets], possible))

    def fitted(self, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the results of `_nonnegative` for given weights (N, C)."""
        best = np.zeros(self.scale.shape)
        paths = len(best)
        residual, left_out, best_score, fair = (np.full(paths, np.inf) for _ in range(4))
        rows = np.arange(paths)
        for subsets, columns, possible in self.subsets:
            size = subsets.shape[1]
            fits = fit(columns, self.values, weights)
            good = (fits.coefficients >= 0).all(axis=2) & np.isfinite(fits.residual)
            crossed = np.where(np.isfinite(fits.left_out), fits.left_out, fits.residual)
            penalty = np.repeat(self.penalty[:, None] * size, len(subsets), axis=1)
            errors = self.by * fits.residual, self.by * crossed
            scores = score(*errors, self.measured, self.noise, self.freedom, penalty)
            scores = np.where(good & possible, scores, np.inf)
            first = scores.argmin(axis=1)
            better = np.asarray(scores[rows, first] < best_score, dtype=bool)
            chosen = rows[better]
            index = first[better]
            best[chosen] = 0.0
            best[chosen[:, None], subsets[index]] = fits.coefficients[chosen, index]
            residual[chosen] = fits.residual[chosen, index]
            fair[chosen] = scores[chosen, index] + (NOISY.coefficient * size - penalty[chosen, 0])
            left_out[chosen] = fits.left_out[chosen, index]
            best_score[chosen] = scores[chosen, index]
        return best / self.scale, residual, left_out, fair


def take(repetitions: Repetitions, paths: NDArray[np.int64]) -> Repetitions:
    """Return the repetitions of these call paths."""
    return Repetitions(*(getattr(repetitions, field.name)[paths] for field in fields(Repetitions)))
