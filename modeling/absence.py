"""Call paths that are not executed at some values of a parameter: what is predicted there is 0.

One process has no neighbours: a call path that was executed at no configuration with p = 1, and at all others, does
nothing there. And a program that has a path of its own for one process (no workers, periodic copies) does not reach it
with more: a call path that is executed at x = 1, and at none of several larger values of x, has the model
f - f·[x > 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .by_visits import Sum, covariance_through, put_in
from .experiment import Experiment
from .pmnf.data.preparation import absent_values, not_executed, ranges
from .pmnf.doubt import open_notes
from .pmnf.model import Factor, Model, Term
from .priors.path_model import PathModel

# So many larger values of a parameter must show that nothing is executed there.
_LEAST_LARGER = 2


def of_one_process(experiment: Experiment, models: Sequence[PathModel]) -> tuple[PathModel, ...]:
    """Return the models of a metric, 0 beyond 1 for call paths that are executed nowhere else; one per call path."""
    executed = experiment.executed
    if executed is None:
        return tuple(models)
    result = list(models)
    known = ~np.isnan(experiment.values["visits"]).all(axis=2)
    for column, name in enumerate(experiment.parameters):
        one = experiment.points[:, column] == 1.0
        more = known & ~one
        larger = experiment.points[:, column]
        for path in np.flatnonzero((executed & one).any(axis=1) & ~(executed & ~one).any(axis=1)).tolist():
            if (larger[more[path]] > 1.0).all() and np.unique(larger[more[path]]).size >= _LEAST_LARGER:
                result[path] = _at_one(experiment, path, name, result[path])
    return tuple(result)


def where_absent(experiment: Experiment, models: Sequence[PathModel]) -> tuple[PathModel, ...]:
    """Return the models of a metric, 0 at values of a parameter that explain where call paths were not executed."""
    executed = experiment.executed
    if executed is None:
        return tuple(models)
    missing = np.asarray(~np.isnan(experiment.values["visits"]).all(axis=2) & ~executed, dtype=bool)
    result = list(models)
    for path in np.flatnonzero(executed.any(axis=1) & missing.any(axis=1)).tolist():
        found = absent_values(experiment.parameters, experiment.points, missing[path])
        if found:
            result[path] = _zero_at(result[path], tuple(found))
    return tuple(result)


def _zero_at(entry: PathModel, absent: tuple[tuple[str, float], ...]) -> PathModel:
    if not isinstance(entry.model, Model):
        return entry
    lower = None if entry.lower is None else replace(entry.lower, absent=absent)
    return replace(entry, model=replace(entry.model, absent=absent), lower=lower)


def _at_one(experiment: Experiment, path: int, name: str, entry: PathModel) -> PathModel:
    if not isinstance(entry.model, Model):
        return entry
    points, executed = experiment.points, experiment.executed
    assert executed is not None
    known = ~np.isnan(experiment.values["visits"][path]).all(axis=1)
    said = not_executed(experiment.parameters, points, known & ~executed[path])
    said += tuple(note for note in open_notes(experiment.parameters, points[executed[path]]) if f" {name}:" in note)

    def only(model: Model) -> Model:
        constant, terms = put_in(alone, model.constant, model.terms)
        forms = [put_in(alone, other.constant, other.terms) for other in model.alternatives]
        others = [
            replace(other, constant=form[0], terms=form[1])
            for other, form in zip(model.alternatives, forms, strict=True)
        ]
        notes = (*(note for note in model.notes if note not in said), f"executed at {name}=1 only")
        found = replace(model, constant=constant, terms=terms, ranges=measured, alternatives=tuple(others), notes=notes)
        return replace(found, covariance=covariance_through(alone, model, found))

    measured = ranges(points[known])
    alone = Sum((0.0, ()), (1.0, (Term(-1.0, (Factor(name, several=True),)),)))
    return replace(entry, model=only(entry.model), lower=None if entry.lower is None else only(entry.lower))
