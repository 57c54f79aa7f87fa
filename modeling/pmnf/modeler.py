"""From measurements of many call paths to one model each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray, Metric
from ..parallel import batches, workers_for
from ..process_grid import ProcessGrid
from .build import build_models, median_first, relative_errors
from .calibration import LARGEST_VALUE, NOISY_POOL, UNCHECKED_GROWTH
from .counts import model_counts
from .criterion.criterion import choose
from .criterion.deviating import Deviating
from .criterion.evidence import Evidence
from .criterion.one_process import explains_more, needs_much, reproduces, turns
from .criterion.rules import LeftOutSmape, SampleSmape
from .criterion.signed import Signed, misfit
from .data.neighbours import noise_of
from .data.noise import Aggregation, Repetitions, combine
from .data.preparation import (
    check,
    extreme_exponents,
    join_duplicates,
    not_executed,
    ranges,
    same_along,
    take,
    without_one,
)
from .fit.largest import nearness, refitted
from .forms.other_forms import OtherForms
from .grids.exact import Grids
from .hypotheses.library import Library
from .hypotheses.pool import Pool, merge, replaced, to_pool
from .hypotheses.tables import Tables, make_tables
from .memory import keep_freed_memory
from .model import Model
from .noise_free import with_exact
from .proposers.cost import Search
from .proposers.extra_p import ExtraPForms
from .proposers.inexact import InexactSums
from .proposers.powers import with_powers
from .proposers.richer import RicherSums, further
from .proposers.scattered import ScatteredSums, on_no_lines, scattered
from .uncertainty.covariance import joint_covariance, value_variance
from .uncertainty.doubt import largest_misfit, open_notes

_Flags = NDArray[np.bool_]
Selector = Literal["evidence", "smape", "extra-p"]
SELECTORS: tuple[Selector, ...] = ("evidence", "smape", "extra-p")


@dataclass(frozen=True, slots=True)
class NoModel:
    """Why there is no model of a call path."""

    reason: str = "not measured"


@dataclass(frozen=True)
class Options:
    """How to model.

    library: the hypotheses.
    aggregation: how repetitions become one value.
    nonnegative: whether costs are sums of non-negative parts, which noisy values of a cost are fitted to.
    growth_penalty: how much evidence a cost must show for each term and each two units of its exponent before it
        counts as growth; in units of twice the logarithm of the likelihood, 0 for no preference.
    selector: how the hypothesis of a cost is chosen: by "evidence" (evidence.score; the default, and the only one with
        alternatives), by the lowest cross-validated "smape", or by the rule of "extra-p", for comparison.
    grids: what the process grid of the program may be, the likeliest first; counts may depend on it. ranked: their
        order counts; else that which most call paths follow comes first.
    exact_only: counts that no sum of functions reproduces stay constants.
    at_largest: the coefficients of a cost are fitted to the largest values of the parameters more than to others, as
        is best where no form explains the values (fit/largest.py); for the selector "evidence". also_at_largest: such
        models are wanted besides, of costs whose model misses the values (Fits.nearest).
    """

    library: Library = field(default_factory=Library)
    aggregation: Aggregation = "robust"
    nonnegative: bool = True
    growth_penalty: float = 0.0
    selector: Selector = "evidence"
    grids: tuple[ProcessGrid, ...] = ()
    ranked: bool = False
    exact_only: bool = False
    at_largest: bool = False
    also_at_largest: bool = False


DEFAULT = Options()


def fit_models(
    points: FloatArray,
    values: FloatArray,
    metric: Metric,
    parameters: Sequence[str],
    options: Options = DEFAULT,
    executed: _Flags | None = None,
) -> list[Model | NoModel]:
    """Return a model, or the reason why there is none, for each of N call paths.

    points: (C, m) configurations, columns as `parameters`; values: (N, C, R) repetitions, NaN where not measured.
    executed: (N, C) where the call path was executed at all; without it, a value of 0 in all repetitions counts
    as not executed. Models are fitted to the configurations where a call path was measured and executed.
    Effort is modeled exactly where possible, cost by relative least squares. Raises ModelingError if the shapes
    do not fit each other or parameter values cannot be used.
    """
    return fit_with_doubt(points, values, metric, parameters, options, executed).models


@dataclass(frozen=True, eq=False)
class Fits:
    """Models of N call paths, and what is known of costs that they miss.

    noise: (N,) relative standard deviation of central values (data.neighbours.noise_of; of effort as repetitions say).
    nearest: by the numbers of call paths whose model misses the values by more than that, the models with coefficients
    that are fitted to the largest values (Options.at_largest).
    """

    models: list[Model | NoModel]
    noise: FloatArray
    nearest: dict[int, Model]


def fit_with_doubt(
    points: FloatArray,
    values: FloatArray,
    metric: Metric,
    parameters: Sequence[str],
    options: Options = DEFAULT,
    executed: _Flags | None = None,
) -> Fits:
    """Return the models of `fit_models`, and what is known of those that miss the values."""
    points, values = np.asarray(points, dtype=np.float64), np.asarray(values, dtype=np.float64)
    names = tuple(parameters)
    check(points, values, names, executed)
    workers = workers_for(values.shape[0])
    parts = batches(values.shape[0], workers.count, values[:1].size)
    tasks = (
        (points, values[part], metric, names, options, None if executed is None else executed[part]) for part in parts
    )
    found = list(workers.map(_fit_task, tasks))
    return Fits(
        [model for own in found for model in own.models],
        np.concatenate([np.empty(0), *(own.noise for own in found)]),
        {part.start + path: one for part, own in zip(parts, found, strict=True) for path, one in own.nearest.items()},
    )


_Task = tuple[FloatArray, FloatArray, Metric, tuple[str, ...], Options, _Flags | None]


def _fit_task(task: _Task) -> Fits:
    keep_freed_memory()
    points, values, metric, names, options, executed = task
    if not points.shape[0] or not values.shape[0]:
        return Fits([NoModel()] * values.shape[0], np.full(values.shape[0], np.nan), {})
    points, values, executed = join_duplicates(points, values, executed)
    size = np.abs(values)
    infinite = np.asarray((size > LARGEST_VALUE).any(axis=(1, 2)), dtype=bool)
    usable = np.where(size < 1.0 / LARGEST_VALUE, 0.0, values)
    usable[infinite] = np.nan
    repetitions = combine(usable, options.aggregation, metric.is_effort)
    models, nearest = _fit_combined(points, repetitions, infinite, metric, names, options, executed)
    return Fits(models, noise_of(repetitions, points) if not metric.is_effort else repetitions.known_noise, nearest)


def _fit_combined(
    points: FloatArray,
    repetitions: Repetitions,
    infinite: _Flags,
    metric: Metric,
    names: tuple[str, ...],
    options: Options,
    executed: _Flags | None,
) -> tuple[list[Model | NoModel], dict[int, Model]]:
    """Return models and `nearest` of Fits from repetitions; infinite: (N,) which have values beyond all use."""
    result: list[Model | NoModel] = [NoModel()] * len(infinite)
    nearest: dict[int, Model] = {}
    exponent = extreme_exponents(repetitions.centre)
    repetitions = replace(repetitions, centre=np.ldexp(repetitions.centre, -exponent[:, None]))
    measured = ~np.isnan(repetitions.centre)
    centre = np.where(measured, repetitions.centre, 0.0)
    for number in np.flatnonzero(infinite):
        result[number] = NoModel(f"a measured value is beyond {LARGEST_VALUE:g}")
    happened = np.asarray(np.abs(centre) > 0.0, dtype=bool)
    pattern = measured & (happened if executed is None else executed)
    zero = np.asarray(measured.any(axis=1) & ~happened.any(axis=1), dtype=bool)
    for number in np.flatnonzero(zero):
        result[number] = Model(names, ranges=ranges(points[measured[number]]))
    open_paths = np.flatnonzero(measured.any(axis=1) & ~zero)
    if not open_paths.size:
        return result, nearest
    kinds = np.asarray((centre < 0.0).any(axis=1), dtype=bool)
    keys = np.concatenate([pattern, kinds[:, None]], axis=1)[open_paths]
    for key, alike in _same_rows(keys):
        paths = open_paths[alike]
        where = key[:-1]
        if not where.any():
            for path in paths.tolist():
                result[path] = NoModel("measured, but executed in no configuration")
            continue
        notes = not_executed(names, points, measured[paths[0]] & ~where)
        nonnegative = options.nonnegative and not key[-1]
        part = take(repetitions, paths, where)
        batch = _Batch(points[where], part, metric, names, options, nonnegative, notes, options.exact_only)
        models, near = batch.fits()
        unit = np.ldexp(1.0, exponent[paths]).tolist()
        for path, model, by in zip(paths.tolist(), models, unit, strict=True):
            result[path] = model if by == 1.0 else model.scaled(by)
        for place, model in near.items():
            nearest[int(paths[place])] = model if unit[place] == 1.0 else model.scaled(unit[place])
    if not metric.is_effort:
        return result, nearest

    def again(
        sizes: FloatArray, paths: NDArray[np.int64], at: _Flags, library: Library | None, exact: bool
    ) -> list[Model]:
        own = options if library is None else replace(options, library=library)
        notes, part = not_executed(names, points, measured[paths[0]] & ~at), take(repetitions, paths, at)
        batch = _Batch(sizes, part, metric, names, own, options.nonnegative, notes, exact)
        scales = np.ldexp(1.0, exponent[paths]).tolist()
        return [model.scaled(scale) for model, scale in zip(batch.models(), scales, strict=True)]

    counts = np.ldexp(centre, exponent[:, None])
    grids = Grids(options.grids, options.ranked, options.library) if options.grids else None
    found = [model if isinstance(model, Model) else None for model in result]
    once_more = None if options.exact_only else again
    forms = OtherForms(points, counts, measured, pattern, repetitions, names, grids, once_more)
    for path, model in forms.models(found).items():
        result[path] = model
    return result, nearest


def _same_rows(flags: _Flags) -> list[tuple[_Flags, NDArray[np.int64]]]:
    """Return the distinct rows of `flags` (N, F), each with the numbers of the rows that are like it."""
    if (flags == flags[:1]).all():
        return [(flags[0], np.arange(len(flags)))]
    found: dict[bytes, list[int]] = {}
    for number, row in enumerate(np.packbits(flags, axis=1)):
        found.setdefault(row.tobytes(), []).append(number)
    return [(flags[alike[0]], np.array(alike)) for alike in found.values()]


@dataclass(frozen=True, eq=False)
class _Batch:
    """Call paths that were measured at the same points; exact_only: counts that are not exact stay constants."""

    points: FloatArray
    repetitions: Repetitions
    metric: Metric
    names: tuple[str, ...]
    options: Options
    nonnegative: bool
    notes: tuple[str, ...]
    exact_only: bool = False

    def models(self) -> list[Model]:
        """Return the model of each call path."""
        return self.fits()[0]

    def fits(self) -> tuple[list[Model], dict[int, Model]]:
        """Return the model of each call path, and `nearest` as in Fits."""
        points, repetitions, names, notes = self.points, self.repetitions, self.names, self.notes
        notes = (*notes, *open_notes(names, points)) if len(points) > 1 else notes
        varying = [index for index in range(len(names)) if np.unique(points[:, index]).size > 1]
        if points.shape[0] < 2 or not varying:
            return self._constants(), {}
        few = [names[i] for i in varying if np.unique(points[:, i]).size < 3]
        if few:
            notes = (*notes, f"only two values of {', '.join(few)}: how it grows is a guess that nothing checks")
        used = points[:, varying]
        tables = make_tables(used, self.options.library)
        own_names = [names[i] for i in varying]
        weighed, effort = self.options.selector == "evidence", self.metric.is_effort
        build = partial(build_models, names, own_names, points, effort=effort, notes=notes, weighed=weighed)
        if effort:
            pool, exact = model_counts(used, tables, repetitions, self.exact_only)
            models = build(tables, pool, repetitions, exact)
            for parameter in varying:
                replace(self, notes=notes)._without_one(parameter, models)
            return models, {}
        pool, tables, weights = self._noisy(used, tables)
        paths, missed = len(pool.score), np.empty(0, dtype=np.int64)
        if weighed and self.options.also_at_largest and not self.options.at_largest:
            missed = np.flatnonzero(
                relative_errors(tables, pool, repetitions) > largest_misfit(noise_of(repetitions, used))
            )
        if missed.size:
            again = pool.rows((missed, slice(None)))
            again = refitted(again, tables, repetitions.centre[missed], weights[missed] * nearness(used))
            pool = pool.followed_by(again)
            rows = np.concatenate([np.arange(paths), missed])
            repetitions = take(repetitions, rows, np.ones(len(points), dtype=bool))
        models = build(tables, pool, repetitions, np.zeros(len(pool.score), dtype=bool))
        return models[:paths], dict(zip(missed.tolist(), models[paths:], strict=True))

    def _constants(self) -> list[Model]:
        """Return constants: there is one configuration, or one value of each parameter."""
        points, repetitions, names = self.points, self.repetitions, self.names
        many = "one configuration" if points.shape[0] == 1 else f"{points.shape[0]} configurations"
        notes = (*self.notes, f"constant by necessity: measured in {many}, how it grows is not known")
        means = repetitions.centre.mean(axis=1, keepdims=True)
        design = np.ones((len(means), 1, points.shape[0]))
        variance = value_variance(
            np.zeros(len(means)), repetitions, points.shape[0], np.ones(len(means), dtype=np.int64)
        )
        covariance = joint_covariance(design, means, points, variance, repetitions.centre)
        return [
            Model(names, mean, ranges=ranges(points), notes=notes, covariance=tuple(map(tuple, matrix)))
            for mean, matrix in zip(means[:, 0].tolist(), covariance.tolist(), strict=True)
        ]

    def _without_one(self, parameter: int, models: list[Model]) -> None:
        """Put models of the points without x=1 in place of those they are better than."""
        others = without_one(self.points, parameter)
        if others is None:
            return
        name, size = self.names[parameter], np.abs(self.repetitions.centre)
        sizes = np.unique(self.points[:, parameter]).size
        large = size[:, others].max(axis=1, initial=0.0) > 1e-9 * size.max(axis=1)  # else there is nothing but x=1
        unlike = np.array([not reproduces(model) for model in models], dtype=bool)
        if np.unique(self.points[others, parameter]).size == 2:
            # two values say something where they are the same: then that is likelier than any function of x
            unlike |= np.array([model.depends_on(name) for model in models], dtype=bool)
            unlike &= same_along(self.points[others], self.repetitions.centre[:, others], parameter)
        inexact = np.flatnonzero(unlike & large)
        notes = (*self.notes, f"without {name}=1, which follows another formula")
        doubtful = np.array([needs_much(models[path], name) for path in inexact.tolist()], dtype=bool)
        for only in (True,) if self.exact_only else (True, False):
            paths = inexact if self.exact_only else inexact[doubtful != only]
            if not paths.size:
                continue
            part = take(self.repetitions, paths, others)
            again = replace(self, points=self.points[others], repetitions=part, notes=notes, exact_only=only).models()
            for path, model in zip(paths.tolist(), again, strict=True):
                own = name, self.points[others], self.repetitions.centre[path, others]
                likelier = not only and explains_more(model, models[path], name, sizes) and not turns(model, *own)
                if reproduces(model) or likelier:
                    models[path] = model

    def _noisy(self, points: FloatArray, tables: Tables) -> tuple[Pool, Tables, FloatArray]:
        """Return the hypotheses of a cost, by the criterion that the options name, the tables of their terms, and the
        weights (N, C) of values.
        """
        values, options = self.repetitions.centre, self.options
        if options.selector == "extra-p":
            rule = SampleSmape(tables, values)
            return rule.relative(choose(ExtraPForms(points, tables, values).propose(), rule, 1)), tables, rule.weights
        known = values, self.repetitions.uncertainty, self.repetitions.freedom, self.nonnegative
        few = min(np.unique(column).size for column in points.T) < 3
        growth = max(options.growth_penalty, UNCHECKED_GROWTH if few else 0.0)
        criterion = Evidence(tables, *known, growth_penalty=growth, counts=self.repetitions.counts)
        pool = Search(points, criterion).run()
        if options.selector == "evidence":
            return *self._richer(points, criterion, pool), criterion.weights
        fitted = pool.fitted
        pool = to_pool(fitted, LeftOutSmape(tables, values, criterion.weights).scores(fitted), 1)
        return pool, tables, criterion.weights

    def _thorough(self, points: FloatArray, criterion: Evidence, pool: Pool) -> Pool:
        """Return the pool with what a thorough search finds of what none of its hypotheses explains, without lines."""
        rows = misfit(pool, criterion)
        if not (rows.any() and scattered(points)):
            return pool
        sums = ScatteredSums(points, criterion.tables).propose_thoroughly(criterion.values, rows)
        return merge([pool, choose(sums, criterion, NOISY_POOL)], NOISY_POOL)

    def _richer(self, points: FloatArray, criterion: Evidence, pool: Pool) -> tuple[Pool, Tables]:
        """Return the pool with richer hypotheses of call paths that it does not explain, and what is predicted first.

        Also returned are the tables of its terms: powers between those of the library may be as likely.
        Where nothing explains the values posterior weights are no probabilities, and the likeliest form stays first.
        """
        beyond = make_tables(further(points), self.options.library)
        found = pool = with_exact(points, beyond, criterion, self.repetitions, pool)
        rows = misfit(pool, criterion)
        if rows.any() and len(points[0]) > 1 and not on_no_lines(points):
            signed = Signed.of(criterion.part(rows), beyond)
            own = take(self.repetitions, np.flatnonzero(rows), np.ones(len(points), dtype=bool))
            sums = InexactSums(points, Deviating(points, criterion.tables, signed.values, own)).propose()
            found = replaced(pool, rows, merge([pool.rows(rows), choose(sums, signed, NOISY_POOL)], NOISY_POOL))
            rows = misfit(found, criterion)
        if rows.any():
            richer = RicherSums(points, criterion.part(rows), beyond, found.rows(rows)).run()
            found = replaced(found, rows, self._thorough(points, criterion.part(rows), richer))
        found, tables = with_powers(points, self.options.library, criterion, found)
        found = median_first(found, tables, ~rows)
        if self.options.at_largest:
            found = refitted(found, tables, criterion.values, criterion.weights * nearness(points))
        return found, tables
