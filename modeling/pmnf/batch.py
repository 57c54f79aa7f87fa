# SPDX-License-Identifier: Apache-2.0
"""Model call paths that were measured and executed at the same points."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from .build import build_models, median_first, relative_errors
from .calibration import NOISY_POOL, UNCHECKED_GROWTH
from .counts import model_counts
from .criterion.criterion import choose
from .criterion.deviating import Deviating
from .criterion.evidence import Evidence
from .criterion.one_process import explains_more, needs_much, reproduces, turns
from .criterion.rules import LeftOutSmape, SampleSmape
from .criterion.signed import Signed, misfit
from .data.neighbours import noise_of
from .data.noise import Repetitions
from .data.preparation import (
    ranges,
    same_along,
    take,
    without_one,
)
from .fit.largest import nearness, refitted
from .hypotheses.pool import Pool, merge, replaced, to_pool
from .hypotheses.tables import Tables, make_tables
from .model import Model
from .noise_free import with_exact
from .options import Options
from .proposers.cost import Search
from .proposers.extra_p import ExtraPForms
from .proposers.inexact import InexactSums
from .proposers.powers import with_powers
from .proposers.richer import RicherSums, further
from .proposers.scattered import ScatteredSums, on_no_lines, scattered
from .uncertainty.covariance import joint_covariance, value_variance
from .uncertainty.doubt import largest_misfit, open_notes

_Flags = NDArray[np.bool_]


def of_another_formula(name: str) -> str:
    """Return the note of a model of counts without the points x = 1 of a parameter."""
    return f"without {name}=1, which follows another formula"


@dataclass(frozen=True, eq=False)
class Batch:
    """Call paths that were measured at the same points. effort: whether these are counts.

    exact_only: models that are not exact stay constants.
    """

    points: FloatArray
    repetitions: Repetitions
    effort: bool
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
        weighed, effort = self.options.selector == "evidence", self.effort
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
        """Return constants, because there is one configuration, or one value of each parameter."""
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
        """Replace models by models of the points without x = 1, if these are better."""
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
        notes = (*self.notes, of_another_formula(name))
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
        """Return the hypotheses of a cost, their tables of terms, and the weights (N, C) of values."""
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
        """Return the pool with hypotheses of a thorough search for unexplained call paths, without lines."""
        rows = misfit(pool, criterion)
        if not (rows.any() and scattered(points)):
            return pool
        sums = ScatteredSums(points, criterion.tables).propose_thoroughly(criterion.values, rows)
        return merge([pool, choose(sums, criterion, NOISY_POOL)], NOISY_POOL)

    def _richer(self, points: FloatArray, criterion: Evidence, pool: Pool) -> tuple[Pool, Tables]:
        """Return the pool with richer hypotheses of unexplained call paths, and the first hypothesis of each.

        The tables of its terms are also returned, because they may contain powers between those of the library. If no
        hypothesis explains the values, posterior weights are no probabilities, and the likeliest hypothesis stays
        first.
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
