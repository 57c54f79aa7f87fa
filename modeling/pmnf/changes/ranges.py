# SPDX-License-Identifier: Apache-2.0
"""Find changes of behaviour: ranges of a parameter with different models, for example by another algorithm of MPI.

The model of a cost is then the model of the last range, because predictions are usually beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf, isfinite, log

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray, Metric
from ..calibration import NOISY
from ..criterion.divided import RangeFit, divided_score
from ..data.neighbours import noise_of
from ..data.noise import Repetitions, combine
from ..fit.fitter import fit
from ..fit.subsets import gram, solve
from ..fit.weights import relative_weights
from ..hypotheses.library import term_columns
from ..model import Model, Term, evaluate
from ..modeler import fit_models as fit_whole
from ..modeler import fit_with_doubt
from ..options import DEFAULT, NoModel, Options
from ..uncertainty.covariance import loosened
from ..uncertainty.doubt import largest_misfit
from .calibration import (
    CHANGE_DOUBT,
    CHANGE_EXACT,
    CHANGE_EXPONENT_DEVIATION,
    CHANGE_FOLLOWED_VALUES,
    CHANGE_LEAST_EVIDENCE,
    CHANGE_LEAST_FREEDOM,
    CHANGE_LEAST_VALUES,
)
from .slow_runs import but_for_slow_runs


@dataclass(frozen=True)
class Change:
    """Two models: `below` holds up to `last` of the parameter, `above` holds from `first` on.

    evidence: increase of twice the log-likelihood, compared with one model, minus penalties. grids: the process grids
    at `last` and `first` if their form differs, which may be the cause; otherwise empty.
    """

    parameter: str
    last: float
    first: float
    below: Model
    above: Model
    evidence: float
    grids: str = ""

    def model_at(self, point: Mapping[str, float]) -> Model:
        """Return the model of the range of a point: `above` from the middle between the two values on."""
        return self.above if 2.0 * point[self.parameter] >= self.last + self.first else self.below

    def __str__(self) -> str:
        """Describe where and how the behaviour changes."""
        return (
            f"changes between {self.parameter}={self.last:g} and {self.parameter}={self.first:g}: "
            f"{self.below} below, {self.above} above" + (f" (the process grid: {self.grids})" if self.grids else "")
        )


_Flags = NDArray[np.bool_]


def fit_models(
    points: FloatArray,
    values: FloatArray,
    metric: Metric,
    parameters: Sequence[str],
    options: Options = DEFAULT,
    executed: _Flags | None = None,
) -> list[Model | NoModel]:
    """Return models as `modeler.fit_models` does; for a cost with a change of behaviour, the model of the last range.

    Changes are searched if a model misses the values by more than repetitions, or neighbours of single runs
    (data.neighbours), explain, and again in the last range. A last range with fewer values than CHANGE_FOLLOWED_VALUES
    is used if its model is exact. A note names the begin of the range, and the model of all values is an alternative.
    If there is no usable change, the model is fitted to the largest values of the parameters (Options.at_largest).
    """
    fits = fit_with_doubt(points, values, metric, parameters, replace(options, also_at_largest=True), executed)
    found, noise = fits.models, fits.noise
    if metric.is_effort or options.selector != "evidence" or not found:
        return found
    points, values = np.asarray(points, dtype=np.float64), np.array(values, dtype=np.float64)
    near = fits.nearest
    slow = but_for_slow_runs(found, points, values, metric, parameters, options, executed)
    for path, (place, model) in slow.items():
        found[path], values[path, place] = model, np.nan
        near.pop(path, None)
    known = values
    if executed is not None and not executed.all():
        known = np.where(executed[:, :, None], values, np.nan)
        noise = noise_of(_combined(known, options), points)
    least = largest_misfit(noise).tolist()
    paths = [
        path
        for path, model in enumerate(found)
        if isinstance(model, Model) and model.quality is not None and model.quality.rms_relative > least[path]
    ]
    if not paths:
        return found
    changes: list[Change | None] = [None] * len(paths)
    if _divisible(points):
        changes = _changes(points, known[paths], metric, parameters, options, [found[path] for path in paths])
    unexplained = []
    ask = _Question(points, known, metric, parameters, options)
    followed = ask.last_ranges(dict(zip(paths, changes, strict=True)), least)
    for path in paths:
        if change := followed.get(path):
            note = (
                f"holds from {change.parameter}={change.first:g} on, where the behaviour changes: {change.below} before"
            )
            former = near.get(path, found[path])
            found[path] = _doubted(replace(change.above, notes=(*change.above.notes, note)), former, change.parameter)
        else:
            unexplained.append(path)
    if others := [path for path in unexplained if path not in near]:  # repetitions say more where it was executed
        part = None if executed is None else executed[others]
        models = fit_whole(points, values[others], metric, parameters, replace(options, at_largest=True), part)
        near |= {path: model for path, model in zip(others, models, strict=True) if isinstance(model, Model)}
    for path in unexplained:
        if path in near:
            note = "coefficients are those of the largest values"
            found[path] = replace(_open_ended(near[path]), notes=(*near[path].notes, note))
    return found


def _doubted(model: Model, former: Model | NoModel, parameter: str) -> Model:
    """Return the model of the last range of a parameter with more uncertainty, because the behaviour may change again.

    The model of all values is an alternative.
    """
    if isinstance(former, NoModel) or (model.quality is not None and model.quality.rms_relative < CHANGE_EXACT):
        return model
    loose = loosened(model, parameter, CHANGE_EXPONENT_DEVIATION)
    return loose.doubted(CHANGE_DOUBT, former.constant, former.terms)


def _open_ended(model: Model) -> Model:
    """Return a model that misses the values, with the uncertainty of an unknown form."""
    for parameter in model.parameters:
        if model.depends_on(parameter):
            model = loosened(model, parameter, CHANGE_EXPONENT_DEVIATION)
    return model


@dataclass(frozen=True, eq=False)
class _Question:
    """Points (C, m), values (N, C, R) at which call paths were executed, and options."""

    points: FloatArray
    values: FloatArray
    metric: Metric
    parameters: Sequence[str]
    options: Options

    def last_ranges(self, changes: Mapping[int, Change | None], least: Sequence[float]) -> dict[int, Change]:
        """Return the last usable change of each call path.

        A last range whose model misses its values by more than `least` (N,) is divided again: times of growing sizes
        change with each cache that the data exceed.
        """
        found: dict[int, Change] = {}
        whole = np.ones(len(self.points), dtype=bool)
        tried = [(path, change, whole) for path, change in changes.items()]
        while tried:
            alike: dict[bytes, tuple[_Flags, list[int]]] = {}
            for path, change, before in tried:
                measured = before & ~np.isnan(self.values[path]).all(axis=1)
                if change is None or not _is_followed(change, self.points[measured], self.parameters):
                    continue
                found[path] = change
                inside = before & (self.points[:, list(self.parameters).index(change.parameter)] >= change.first)
                quality = change.above.quality
                if quality is not None and quality.rms_relative > least[path] and _divisible(self.points[inside]):
                    alike.setdefault(inside.tobytes(), (inside, []))[1].append(path)
            tried = []
            for inside, paths in alike.values():
                points, values, models = (
                    self.points[inside],
                    self.values[paths][:, inside],
                    [found[p].above for p in paths],
                )
                again = _changes(points, values, self.metric, self.parameters, self.options, models)
                tried += [(path, change, inside) for path, change in zip(paths, again, strict=True)]
        return found


def _combined(values: FloatArray, options: Options) -> Repetitions:
    """Return repetitions (N, C, R) combined; infinite repetitions count as missing."""
    return combine(np.where(np.isinf(values), np.nan, values), options.aggregation)


def _is_followed(change: Change, points: FloatArray, parameters: Sequence[str]) -> bool:
    """Return whether the last range of a change contains enough of the measured points (C, m) to predict from."""
    if change.above.quality is None:
        return False
    column = points[:, list(parameters).index(change.parameter)]
    last = np.unique(column[column >= change.first]).size
    return last >= CHANGE_FOLLOWED_VALUES or change.above.quality.rms_relative < CHANGE_EXACT


def _divisible(points: FloatArray) -> bool:
    """Return whether points (C, m) have enough values of a parameter for two ranges."""
    return any(np.unique(column).size >= 2 * CHANGE_LEAST_VALUES for column in points.T)


def find_changes(
    points: FloatArray, values: FloatArray, metric: Metric, parameters: Sequence[str], options: Options = DEFAULT
) -> list[Change | None]:
    """Return the change of behaviour of each of N call paths; None if one model explains its values.

    If a cost has several usable changes, the result is the last one. points: (C, m); values: (N, C, R), as in
    fit_models, which fits the models of all ranges. A division leaves at least CHANGE_LEAST_VALUES values of the
    parameter on both sides. Raises ModelingError as fit_models does.
    """
    points = np.asarray(points, dtype=np.float64)
    values = np.asarray(values, dtype=np.float64)
    if not values.shape[0] or not _divisible(points):
        return [None] * values.shape[0]
    whole = fit_whole(points, values, metric, parameters, options)
    found = _changes(points, values, metric, parameters, options, whole)
    if metric.is_effort:
        return found
    least = largest_misfit(noise_of(_combined(values, options), points)).tolist()
    last = _Question(points, values, metric, parameters, options).last_ranges(dict(enumerate(found)), least)
    return [last.get(path, change) for path, change in enumerate(found)]


def _changes(
    points: FloatArray,
    values: FloatArray,
    metric: Metric,
    parameters: Sequence[str],
    options: Options,
    whole: Sequence[Model | NoModel],
) -> list[Change | None]:
    """Return the changes, given the models of all points."""
    repetitions = _combined(values, options)
    noise = repetitions.uncertainty
    freedom = np.minimum(repetitions.freedom, points.shape[0])
    best: list[Change | None] = [None] * len(whole)
    for column, name in enumerate(parameters):
        places = np.unique(points[:, column])
        divisions = range(CHANGE_LEAST_VALUES, places.size - CHANGE_LEAST_VALUES + 1)
        for division in divisions:
            lower = points[:, column] < places[division]
            below = fit_whole(points[lower], values[:, lower], metric, parameters, options)
            above = fit_whole(points[~lower], values[:, ~lower], metric, parameters, options)
            penalty = NOISY.coefficient + 2.0 * log(len(divisions) * len(parameters))
            for path, (one, low, high) in enumerate(zip(whole, below, above, strict=True)):
                if isinstance(one, NoModel) or isinstance(low, NoModel) or isinstance(high, NoModel):
                    continue
                if _is_lucky(low) or _is_lucky(high):
                    continue
                known = float(freedom[path]), float(noise[path])
                gain = divided_score(_fits([one]), *known) - divided_score(_fits([low, high]), *known) - penalty
                old = best[path]
                if gain >= CHANGE_LEAST_EVIDENCE and (old is None or gain > old.evidence):
                    first = float(places[division])
                    best[path] = Change(name, float(places[division - 1]), first, low, high, gain)
    for path, change in enumerate(best):
        one = whole[path]
        if change is None or isinstance(one, NoModel):
            continue
        known = ~np.isnan(repetitions.centre[path])
        smooth = _two_functions(
            one, points[known], repetitions.centre[path, known], parameters.index(change.parameter), options
        )
        evidence = (freedom[path], noise[path])
        changed = divided_score(_fits([change.below, change.above]), *evidence)
        if smooth and divided_score(smooth, *evidence) - changed < CHANGE_LEAST_EVIDENCE:
            best[path] = None
    return best


def _is_lucky(model: Model) -> bool:
    """Return whether a model of a range has too few degrees of freedom to be informative."""
    quality = model.quality
    if quality is None or quality.rms_relative < CHANGE_EXACT:
        return False
    return quality.points < CHANGE_LEAST_FREEDOM + len(model.terms) + (model.constant != 0.0)


def _two_functions(
    model: Model, points: FloatArray, values: FloatArray, column: int, options: Options
) -> list[RangeFit]:
    """Return the quality of the best model with two functions of one parameter; [] if there is none.

    A single function misses such a sum, although the behaviour does not change. points: (C, m); values: (C,).
    """
    name = model.parameters[column]
    terms = options.library.terms(points[:, column])
    changing = [term for term in model.terms if any(term.exponents(name))]
    others = [term for term in model.terms if term not in changing[:1]]
    lead = tuple(factor for factor in changing[0].factors if factor.parameter != name) if changing else ()
    if len(others) + 4 >= len(values) or len(terms) < 2:
        return []

    def at(terms: Sequence[Term]) -> list[FloatArray]:
        return [evaluate(model.parameters, 0.0, (Term(1.0, term.factors),), points) for term in terms]

    base = at([Term(1.0, lead)])[0]
    table = np.stack([np.ones(len(values)), *at(others), *(base * term_columns(terms, points[:, column]).T)])
    table /= np.abs(table).max(axis=1, keepdims=True)
    fixed = len(others) + 1
    pairs = np.array(list(combinations(range(fixed, len(table)), 2)))
    subsets = np.concatenate([np.broadcast_to(np.arange(fixed), (len(pairs), fixed)), pairs], axis=1)
    weights = relative_weights(values[None])
    coefficients, explained = solve(*gram(table[None], values[None], weights)[:2], subsets)
    if options.nonnegative and values.min() >= 0:
        explained = np.where((coefficients >= 0).all(axis=2), explained, -inf)
    best = subsets[explained[0].argmax()]
    if not isfinite(explained.max()):
        return []
    fitted = fit(table[best][None], values[None], weights)
    residual, left_out = float(fitted.residual[0, 0]), float(fitted.left_out[0, 0])
    return [RangeFit(residual, left_out, len(values), len(best))] if isfinite(residual) else []


def _fits(models: Sequence[Model]) -> list[RangeFit]:
    """Return how well models of disjoint ranges fit, without models of zeros or of a single point."""
    return [
        RangeFit(
            quality.rms_relative, quality.cross_validated, quality.points, len(model.terms) + (model.constant != 0.0)
        )
        for model in models
        if (quality := model.quality) is not None
    ]
