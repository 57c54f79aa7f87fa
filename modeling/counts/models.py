# SPDX-License-Identifier: Apache-2.0
"""Convert laws of counts to models (`pmnf.model.Model`), with alternatives, covariance and notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..catalogue import COUNTS_VARY
from ..experiment import mean_over_repetitions
from ..pmnf.data.noise import combine
from ..pmnf.data.preparation import not_executed, ranges
from ..pmnf.model import Alternative, Model, Quality, collect, evaluate
from ..pmnf.options import NoModel
from ..pmnf.uncertainty.doubt import open_notes
from ..process_grid import ProcessGrid
from . import program
from .factors import Floats
from .formulas import Form, NotConvertible, form_of
from .predictions import CountModels
from .unvaried import EXPONENT_DEVIATION, directions

_LEAST_WEIGHT = 0.01  # laws with a smaller weight are no alternatives of the model
_NEVER_EXECUTED = "measured, but executed in no configuration"


def models_of(counts: CountModels, metric: str) -> list[Model | NoModel]:
    """Return the model of a metric for each call path; NoModel if the metric was not measured or cannot be modeled.

    Each law predicts a value at twice the largest measured value of each parameter. The model is the law whose value is
    the weighted median; the other laws are its alternatives. Models describe the mean or the sum over the ranks, as the
    values of the experiment do.
    """
    experiment, converter = counts.experiment, _Converter(counts)
    values = experiment.values[metric]
    executed = experiment.executed
    if executed is None:
        executed = np.ones(values.shape[:2], dtype=bool)
    found: list[Model | NoModel] = []
    for path, laws in enumerate(counts.models[metric]):
        problem = counts.problem(metric, path)
        found.append(NoModel(problem) if problem else converter.model(laws, values[path], executed[path]))
    return found


class _Converter:
    """Converts laws of counts to models. It converts equal laws only once."""

    def __init__(self, counts: CountModels) -> None:
        self.names, self.points = tuple(counts.experiment.parameters), counts.experiment.points
        self.per_rank = counts.per_rank
        self._parts: dict[tuple[object, ProcessGrid | None], Form] = {}
        self._models: dict[object, Model] = {}

    def model(self, laws: program.Model, values: Floats, executed: NDArray[np.bool_]) -> Model | NoModel:
        """Return the model of the laws of a call path.

        values: the values of the call path at C configurations with up to R repetitions, shape (C, R); NaN if missing.
        executed: mask (C,) of the configurations at which the call path was executed.
        """
        measured = np.asarray(np.isfinite(values).any(axis=1), dtype=bool)
        if not measured.any():
            return NoModel()
        if not executed[measured].any():
            return NoModel(_NEVER_EXECUTED)
        key = laws.parts, measured.tobytes()
        if key not in self._models:
            try:
                self._models[key] = self._converted(laws, self.points[measured])
            except NotConvertible as error:  # for example, if a parameter is called pd
                return NoModel(f"{error} is not in the grammar of formulas")
        model, means = self._models[key], mean_over_repetitions(values[None])[0]
        notes = dict.fromkeys((*_notes(self.names, self.points, values, measured, executed), *model.notes))
        return replace(model, quality=_quality(model, self.points, means), notes=tuple(notes))

    def _converted(self, laws: program.Model, points: Floats) -> Model:
        weights: dict[Form, float] = {}
        noisy: dict[Form, list[tuple[float, Form]]] = {}
        grids: dict[Form, ProcessGrid | None] = {}
        far = 2.0 * points.max(axis=0)
        for law in laws.cases(far.tolist()):
            parts = [self._part(case.terms, law.grid) for case in law.parts]
            whole = collect(sum(c for c, _ in parts), [term for _, terms in parts for term in terms])
            weights[whole] = weights.get(whole, 0.0) + law.weight
            noisy.setdefault(whole, [(case.noise, own) for case, own in zip(law.parts, parts, strict=True)])
            grids.setdefault(whole, law.grid)
        total = sum(weights.values())
        chosen = self._median(weights, far)
        alternatives = tuple(
            Alternative(weight / total, *form)
            for form, weight in weights.items()
            if form is not chosen and weight / total >= _LEAST_WEIGHT
        )
        return Model(
            self.names,
            *chosen,
            ranges=ranges(points),
            covariance=_covariance(chosen, noisy[chosen], points),
            alternatives=alternatives,
            notes=_grid_notes(chosen, grids[chosen]),
        )

    def _part(self, law: Sequence[tuple[float, str]], grid: ProcessGrid | None) -> Form:
        key = tuple(law), grid
        if key not in self._parts:
            self._parts[key] = form_of(law, self.names, grid, self.per_rank)
        return self._parts[key]

    def _median(self, weights: Mapping[Form, float], far: Floats) -> Form:
        """Return the law whose value at the point `far` (parameters,) is the weighted median."""
        if len(weights) == 1:
            return next(iter(weights))
        values = {form: float(evaluate(self.names, *form, [far.tolist()])[0]) for form in weights}
        below = 0.0
        for form in sorted(weights, key=values.__getitem__):
            below += weights[form]
            if below >= 0.5 * sum(weights.values()):
                return form
        raise AssertionError("the weights of laws are not numbers")


def _notes(
    names: tuple[str, ...], points: Floats, values: Floats, measured: NDArray[np.bool_], executed: NDArray[np.bool_]
) -> tuple[str, ...]:
    """Return notes on effects that the measurements do not determine, and on counts that vary between runs.

    points: shape (C, m). values: shape (C, R). measured, executed: masks (C,) of the configurations at which the call
    path was measured and executed.
    """
    used = points[measured & executed]
    notes = [*not_executed(names, points, measured & ~executed)]
    several = [index for index in range(len(names)) if np.unique(used[:, index]).size > 1]
    if len(used) < 2 or not several:
        many = "one configuration" if len(used) == 1 else f"{len(used)} configurations"
        notes.append(f"constant by necessity: measured in {many}, how it grows is not known")
    else:
        notes += open_notes(names, used)
        if few := [names[index] for index in several if np.unique(used[:, index]).size < 3]:
            notes.append(f"only two values of {', '.join(few)}: how it grows is a guess that nothing checks")
    repetitions = combine(values[None, measured], "robust", of_counts=True)
    if repetitions.differ[0]:
        notes.append(COUNTS_VARY(percent=100 * float(repetitions.scatter[0])))
    return tuple(notes)


def _grid_notes(form: Form, grid: ProcessGrid | None) -> tuple[str, ...]:
    """Return a note that names the process grid if a formula contains its extents."""
    if grid is None or grid.dimensions < 2 or not any(factor.axes for term in form[1] for factor in term.factors):
        return ()
    return (f"{'grid' if grid.source else 'assumed grid'} {grid}",)


def _covariance(whole: Form, parts: Iterable[tuple[float, Form]], points: Floats) -> tuple[tuple[float, ...], ...]:
    """Return the covariance of the coefficients of a sum of laws (`Model.covariance`); () if all entries are 0.

    parts: for each vector in the sum, the relative error of its law, and the constant and the terms of its law. All
    terms of a law have the same error. If there are directions of the parameters in which no configuration changed
    (unvaried.py), the covariance has further rows and columns for the exponents.
    """
    place = {term.shape: row for row, term in enumerate(whole[1], 1)}
    width, parameters = len(place) + 1, points.shape[1]
    coefficients = np.array([whole[0], *(term.coefficient for term in whole[1])])
    result = np.zeros((width * (1 + parameters) + parameters,) * 2)
    for noise, (constant, terms) in parts:
        column = np.zeros(width)
        column[0] = constant
        for term in terms:
            if term.shape in place:  # a term that cancels with another part is left out
                column[place[term.shape]] += term.coefficient
        result[:width, :width] += noise**2 * np.outer(column, column)
    found, centre = directions(points)
    for direction in found:
        moved = np.concatenate([[-float(direction @ centre)], direction])[:, None] * coefficients
        column = np.zeros(len(result))
        column[: moved.size] = EXPONENT_DEVIATION * moved.ravel()
        result += np.outer(column, column)
    if not len(found):
        result = result[:width, :width]
    return tuple(map(tuple, result.tolist())) if result.any() else ()


def _quality(model: Model, points: Floats, values: Floats) -> Quality:
    there = np.isfinite(values)
    measured, fitted = values[there], model.evaluate(points[there])
    size = np.abs(measured) + np.abs(fitted)
    smape = 200.0 * float((np.abs(measured - fitted) / np.where(size > 0, size, 1.0)).mean())
    relative = float(np.sqrt((((measured - fitted) / np.where(measured, measured, 1.0)) ** 2).mean()))
    total = float(((measured - measured.mean()) ** 2).sum())
    r2 = 1.0 - float(((measured - fitted) ** 2).sum()) / total if total else math.nan
    free = measured.size - 1 - len(model.terms)
    adjusted = 1.0 - (1.0 - r2) * (measured.size - 1) / free if free > 0 else math.nan
    return Quality(smape, relative, r2, adjusted, math.nan, measured.size)
