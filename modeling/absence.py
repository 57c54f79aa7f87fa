# SPDX-License-Identifier: Apache-2.0
"""Predict 0 for call paths that are not executed at some values of a parameter.

- One process has no neighbours. If a call path is not executed at p = 1, but in all other configurations, its
  prediction at p = 1 is 0.
- A program may have a separate branch for one process (no workers, periodic copies). If a call path is executed at
  x = 1, but not at several larger values, its model f becomes f - f·[x > 1]. [x > 1] is 1 for x > 1, otherwise 0.
- If a call path is executed up to x = 27, but not at x = 64, it may not be executed at x = 512, either. The interval
  of a prediction at x = 512 then contains 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .experiment import Experiment, FloatArray
from .pmnf.data.preparation import absent_values, not_executed, ranges
from .pmnf.model import Factor, Model, Term, collect
from .pmnf.uncertainty.doubt import open_notes
from .priors.path_model import PathModel

# Smallest number of different values above 1 without execution for a model f - f·[x > 1].
_LEAST_LARGER = 2
# Weight of the prediction 0 at larger values, if the call path is not executed at the largest measured value.
_NOTHING_BEYOND = 0.5


@dataclass(frozen=True)
class Absence:
    """The values of parameters at which call paths are not executed.

    beyond_one: parameters x for which the call paths are executed at x = 1 only. values: pairs (parameter, value) at
    which the call paths are not executed.
    """

    beyond_one: tuple[str, ...] = ()
    values: tuple[tuple[str, float], ...] = ()

    def holds(self, point: Mapping[str, float]) -> bool:
        """Return whether the call paths are not executed at a point (value by parameter)."""
        beyond = any(point[name] > 1.0 for name in self.beyond_one)
        return beyond or any(point[name] == value for name, value in self.values)

    def present(self, names: tuple[str, ...], points: FloatArray) -> NDArray[np.bool_]:
        """Return at which of the points (C, m) the call paths are executed, shape (C,). names: of the m parameters."""
        rows = [dict(zip(names, row, strict=True)) for row in points.tolist()]
        return np.array([not self.holds(row) for row in rows], dtype=bool)


PRESENT = Absence()
"""No value of a parameter is known at which the call paths are not executed."""


def absence_of(experiment: Experiment, paths: Sequence[int]) -> Absence:
    """Return the parameter values at which none of the call paths `paths` is executed; `PRESENT` if there are none."""
    if experiment.executed is None or not len(paths):
        return PRESENT
    executed = np.asarray(experiment.executed[list(paths)].any(axis=0), dtype=bool)
    if executed.all() or not executed.any():
        return PRESENT
    points = experiment.points
    alone = []
    for name, values in zip(experiment.parameters, points.T, strict=True):
        more = values[values != 1.0]
        if (values[executed] == 1.0).all() and (more > 1.0).all() and np.unique(more).size >= _LEAST_LARGER:
            alone.append(name)
    return Absence(tuple(alone), tuple(absent_values(experiment.parameters, points, ~executed)))


def with_absence(experiment: Experiment, models: Mapping[str, Sequence[PathModel]]) -> dict[str, tuple[PathModel, ...]]:
    """Return the models of metrics (one per call path), changed so that they predict 0 where call paths are absent."""
    result = {name: list(own) for name, own in models.items()}
    executed = np.ones((0, 0), dtype=bool) if experiment.executed is None else experiment.executed
    for path in np.flatnonzero(executed.any(axis=1) & ~executed.all(axis=1)).tolist():
        absence = absence_of(experiment, [path])
        for own in result.values():
            for name in absence.beyond_one:
                own[path] = _at_one(experiment, path, name, own[path])
            if absence.values:
                own[path] = _zero_at(own[path], absence.values)
            if not absence.beyond_one:
                own[path] = _with_alternative_zero(experiment, path, own[path])
    return {name: tuple(own) for name, own in result.items()}


def _zero_at(entry: PathModel, absent: tuple[tuple[str, float], ...]) -> PathModel:
    if not isinstance(entry.model, Model):
        return entry
    lower = None if entry.lower is None else replace(entry.lower, absent=absent)
    return replace(entry, model=replace(entry.model, absent=absent), lower=lower)


def _with_alternative_zero(experiment: Experiment, path: int, entry: PathModel) -> PathModel:
    """Return a model with the alternative 0 if its call path is not executed at the largest value of a parameter."""
    points, executed = experiment.points, experiment.executed
    assert executed is not None
    here, known = executed[path], ~np.isnan(experiment.values["visits"][path]).all(axis=1)
    last = points[here].max(axis=0)
    names = [
        name for name, beyond in zip(experiment.parameters, points[known].max(axis=0) > last, strict=True) if beyond
    ]
    if not names or not isinstance(entry.model, Model):
        return entry
    at = ", ".join(
        f"{name}={value:g}" for name, value in zip(experiment.parameters, last, strict=True) if name in names
    )

    def doubted(model: Model) -> Model:
        notes = (*model.notes, f"not executed beyond {at}: it may do nothing there")
        return replace(model.doubted(_NOTHING_BEYOND, 0.0, ()), notes=notes)

    lower = None if entry.lower is None else doubted(entry.lower)
    return replace(entry, model=doubted(entry.model), lower=lower)


def _at_one(experiment: Experiment, path: int, name: str, entry: PathModel) -> PathModel:
    if not isinstance(entry.model, Model):
        return entry
    points, executed = experiment.points, experiment.executed
    assert executed is not None
    known = ~np.isnan(experiment.values["visits"][path]).all(axis=1)
    said = not_executed(experiment.parameters, points, known & ~executed[path])
    said += open_notes(experiment.parameters, points[executed[path]], only=name)

    def only(model: Model) -> Model:
        constant, terms = _times(alone, model.constant, model.terms)
        forms = [_times(alone, other.constant, other.terms) for other in model.alternatives]
        others = [
            replace(other, constant=form[0], terms=form[1])
            for other, form in zip(model.alternatives, forms, strict=True)
        ]
        notes = (*(note for note in model.notes if note not in said), f"executed at {name}=1 only")
        found = replace(model, constant=constant, terms=terms, ranges=measured, alternatives=tuple(others), notes=notes)
        return replace(found, covariance=_covariance(alone, model, found))

    measured = ranges(points[known])
    alone = (Term(1.0, ()), Term(-1.0, (Factor(name, several=True),)))
    return replace(entry, model=only(entry.model), lower=None if entry.lower is None else only(entry.lower))


def _times(factor: Sequence[Term], constant: float, terms: Sequence[Term]) -> tuple[float, tuple[Term, ...]]:
    """Return the constant and the terms of `factor`, a sum of terms, times a formula."""
    own = [Term(constant, ()), *terms]
    return collect(0.0, [a.times(b) for a in factor for b in own if b.coefficient])


def _covariance(factor: Sequence[Term], before: Model, after: Model) -> tuple[tuple[float, ...], ...]:
    """Return the covariance of a model times `factor`, which is linear in the coefficients of the model `before`."""
    if not before.covariance:
        return ()
    place = {term.shape: number for number, term in enumerate(after.terms, 1)} | {(): 0}
    linear = np.zeros((len(after.terms) + 1, len(before.terms) + 1))
    for column, own in enumerate([Term(1.0, ()), *before.terms]):
        for piece in factor:
            if (row := place.get(piece.times(own).shape)) is not None:
                linear[row, column] += piece.coefficient
    parameters, size = len(before.parameters), len(before.covariance)
    blocks = (size - parameters) // linear.shape[1] if size > linear.shape[1] else 1
    whole = np.kron(np.eye(blocks), linear)
    if blocks > 1:
        growth = np.zeros((len(whole), parameters)), np.zeros((parameters, whole.shape[1]))
        whole = np.block([[whole, growth[0]], [growth[1], np.eye(parameters)]])
    return tuple(map(tuple, (whole @ np.asarray(before.covariance) @ whole.T).tolist()))
