# SPDX-License-Identifier: Apache-2.0
"""Time beyond effort: what takes longer per unit of effort as a parameter grows.

Where the diagnosis finds that time grows faster than effort (`slowdown`), the model is effort × (1 + growth), if that
predicts better by more than its penalty.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..experiment import Experiment, FloatArray, Region, RegionKind
from ..mpi_operations import operation_of
from ..pmnf.calibration import NOISY
from ..pmnf.data.noise import Repetitions
from ..pmnf.model import Factor, Model
from ..pmnf.options import DEFAULT, Options
from .dedicated import dedicated_times
from .fit import fit_where, take
from .measured import centred, fit_measured, one_by_one
from .path_model import PathModel, shapes, unit
from .prior import Prior
from .slowdown import Cause, Slowdown, growth_model, slowdowns

# Models have growth by this factor over the measured numbers of ranks, if it is significant and predicts better: less
# than what is worth a finding of the diagnosis. benchmarks/priors_applications.py
_LEAST_CHANGE = 1.05
# Computation takes longer per unit of effort until no cache holds any of its data, or memory is as shared as it gets:
# what it has beyond effort is bounded, however steep it is where caches overflow. What it calls of the system may take
# longer with each rank. Of data that grow beyond a cache the part that is in it falls as 1/x: where the logarithm
# predicts too much, growth ends so. benchmarks/priors_applications.py
_BOUNDED, _UNBOUNDED, _ENDING = (Fraction(0), 1), (Fraction(1), 0), (Fraction(-1), 0)
# Growth without bound must make errors so many times smaller. benchmarks/priors_applications.py
_MUCH_SMALLER = 0.5


def with_growth(
    experiment: Experiment,
    models: Mapping[int, PathModel],
    options: Options = DEFAULT,
    only: Collection[int] | None = None,
) -> dict[int, PathModel]:
    """Return the models of call paths that slow down, or of `only` these: effort × (1 + growth).

    models: of the time of all call paths. Growth must be significant (`slowdown`), fit better, and predict the two
    largest measured values of its parameter better, each from the smaller ones: what one odd run brings about does not.
    """
    entries = tuple(models[path] for path in range(len(experiment.tree)))
    slow: dict[int, list[Slowdown]] = {}
    for one in slowdowns(experiment, entries, _LEAST_CHANGE):
        if not entries[one.path].has_waiting and (only is None or one.path in only):
            slow.setdefault(one.path, []).append(one)
    if not slow:
        return {}
    times = dedicated_times(experiment, "time")[0]
    repetitions, singles = centred(times, options), one_by_one(times, options)
    slow = _predicting(experiment, repetitions, singles, entries, slow)
    choices = {path: _priors(experiment, entries[path], own) for path, own in slow.items()}
    found = fit_measured(experiment, repetitions, choices, singles)
    result = {}
    for path, model in found.items():
        entry, names = entries[path], sorted({experiment.parameters[one.parameter] for one in slow[path]})
        if isinstance(entry.model, Model) and shapes(model) != shapes(entry.model) and _better(model, entry.model):
            basis = f"{entry.basis} × growth in {', '.join(names)}"
            result[path] = replace(entry, model=replace(model, notes=entry.model.notes), basis=basis, lower=entry.model)
    return result


def _predicting(
    experiment: Experiment,
    repetitions: Repetitions,
    singles: FloatArray | None,
    entries: Sequence[PathModel],
    slow: Mapping[int, Sequence[Slowdown]],
) -> dict[int, list[Slowdown]]:
    """Return the slowdowns that predict the two largest values of their parameter better than effort alone does.

    They have the growth that goes on: that of computation is bounded, unless that is too low at both values, and growth
    without bound predicts them much better, or too high at both, and growth that ends predicts them better. Values are
    medians of repetitions: noise that hits some of them decides nothing.
    """
    if singles is not None:
        centre = np.nan_to_num(np.nanmedian(np.where(repetitions.centre[:, :, None] > 0, singles, 0.0), axis=2))
        repetitions = replace(repetitions, centre=centre)
    several = [one for own in slow.values() for one in own]
    forms = [_forms(experiment, one) for one in several]
    tried = []
    for one, own in zip(several, forms, strict=True):
        alone, *_ = _priors(experiment, entries[one.path], own[:1])
        grown = [_priors(experiment, entries[one.path], [form])[2] for form in own]
        free = (replace(prior, needed=(), least=(0.0, 0.0)) for prior in grown)  # the non-negative fit
        tried += [(one, prior) for prior in (alone, *free)]
    errors = iter(_prediction_errors(experiment, repetitions, singles, tried))
    better: dict[int, list[Slowdown]] = {}
    for own in forms:
        alone_by, by, *others = (next(errors) for _ in range(1 + len(own)))
        chosen, first = own[0], by
        for form, error in zip(own[1:], others, strict=True):
            one_sided = first.too_high if form.power < 0 else first.too_low
            enough = _MUCH_SMALLER if form.power > 0 else 1.0
            if one_sided and error.size < enough * by.size:
                chosen, by = form, error
        if by.size < alone_by.size:
            better.setdefault(chosen.path, []).append(chosen)
    return better


def _forms(experiment: Experiment, one: Slowdown) -> list[Slowdown]:
    """Return a slowdown as it may go on, the likeliest first: that of MPI as it was found."""
    if experiment.tree.region_of(one.path).kind is RegionKind.MPI:
        return [one]
    growths = [_BOUNDED]
    if min(line.low for line in one.lines) > 0.0:
        growths.append(_ENDING)
    if one.cause is Cause.CONTENTION:
        growths.append(_UNBOUNDED)
    return [replace(one, power=power, log=log) for power, log in growths]


@dataclass(frozen=True)
class _PredictionError:
    """Errors at the two largest values of a parameter, each predicted from the smaller ones (logarithms).

    size: both together: of few runs, noise alone decides one of them. too_low, too_high: both predictions are.
    """

    size: float
    too_low: bool
    too_high: bool


def _prediction_errors(
    experiment: Experiment,
    repetitions: Repetitions,
    singles: FloatArray | None,
    tried: Sequence[tuple[Slowdown, Prior]],
) -> list[_PredictionError]:
    """Return the errors of priors of the call paths of slowdowns at the largest values of their parameters."""
    rows: list[tuple[Slowdown, float, Prior]] = []
    for one, prior in tried:
        x = experiment.points[repetitions.centre[one.path] > 0, one.parameter]
        rows += [(one, value, prior) for value in np.unique(x)[-2:].tolist()]
    part = take(repetitions, np.array([one.path for one, *_ in rows], dtype=np.int64))
    before = np.array([experiment.points[:, one.parameter] < value for one, value, _ in rows])
    choices = {row: [prior] for row, (*_, prior) in enumerate(rows)}
    known = part.centre > 0
    own = None if singles is None else singles[[one.path for one, *_ in rows]]
    fits = fit_where(choices, experiment.parameters, experiment.points, part, known & before, singles=own)
    errors = []
    for row, (one, value, _) in enumerate(rows):
        there = known[row] & (experiment.points[:, one.parameter] == value)
        found = fits.get(row)
        predicted = np.nan if found is None else np.maximum(found.model.evaluate(experiment.points[there]), 1e-300)
        errors.append(np.log(predicted / part.centre[row, there]))
    return [
        _PredictionError(
            math.hypot(*(float(np.abs(own).mean()) for own in both)),
            all(float(own.mean()) < 0 for own in both),
            all(float(own.mean()) > 0 for own in both),
        )
        for both in zip(errors[::2], errors[1::2], strict=True)
    ]


def _priors(experiment: Experiment, entry: PathModel, slow: Sequence[Slowdown]) -> list[Prior]:
    """Return effort alone, and effort with the growths of its parameters.

    Another growth than that of an algorithm must explain more than a coefficient does.
    """
    assert isinstance(entry.model, Model)
    form = unit(entry.model)
    found = [Prior((form,), entry.basis, "")]
    products = [form]
    for one in slow:
        name = experiment.parameters[one.parameter]
        growth = _growth(name, one)
        grown = form.times(growth)
        products += [product.times(growth) for product in products]
        ring = _ring(form, name) if _may_be_ring(experiment.tree.region_of(one.path)) else None
        unusual = 0.0 if ring is None else NOISY.coefficient
        found.append(Prior((grown,), entry.basis, "", needed=(0,), penalty=unusual))
        for column, penalty in ((grown, unusual), (ring, 0.0)):
            if column is not None:
                found.append(Prior((form, column), entry.basis, "", needed=(1,), penalty=penalty))
    if len(slow) > 1:
        found.append(Prior(tuple(products), entry.basis, "", needed=tuple(range(1, len(products)))))
    return found


def _growth(name: str, one: Slowdown) -> Model:
    """Return how a slowdown grows with a parameter: growth that ends, from nothing at the least value."""
    growth = growth_model(name, one.power, one.log)
    if one.power >= 0:
        return growth
    least = min(line.low for line in one.lines)
    return Model(growth.parameters, 1.0, growth.scaled(-(least**-one.power)).terms)


def _may_be_ring(region: Region) -> bool:
    """Whether a region is an operation of many ranks, or waits for one; messages and polls of trees are counted."""
    operation = operation_of(region.name) if region.kind is RegionKind.MPI else None
    return (
        operation is not None and operation.kind in ("collective", "persistent", "completion") and not operation.polls
    )


def _ring(model: Model, name: str) -> Model | None:
    """Return the latencies of a collective operation around a ring of ranks in place of a tree; None if it has no tree.

    Libraries pass small data around rings, too, or pad it to a block for each rank (Patarasuk and Yuan, Bandwidth
    optimal all-reduce algorithms for clusters of workstations, J. Parallel Distrib. Comput. 69, 2009): steps are as
    many as ranks where trees have the logarithm of that.
    """
    tree, step = Factor(name, log=1), Factor(name, Fraction(1))
    terms = tuple(
        replace(term, factors=tuple(step if factor == tree else factor for factor in term.factors))
        for term in model.terms
        if tree in term.factors
    )
    return Model(model.parameters, 0.0, terms) if terms else None


def _better(model: Model, other: Model) -> bool:
    return model.quality is not None and other.quality is not None and model.quality.smape < other.quality.smape
