# SPDX-License-Identifier: Apache-2.0
"""Time beyond effort: what ranks wait for.

Waiting that was measured is no transfer: the priors of Table I are fitted to what is left of the time, and waiting has
a model of its own. Ranks wait for those that have more to do, or that have been delayed, so it has the order of the
program's computation, or is a constant, and it may grow with the ranks as trees, process grids and rings do, from
nothing for a single rank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ..experiment import Experiment, FloatArray, RegionKind
from ..pmnf.build import qualities
from ..pmnf.calibration import NOISY
from ..pmnf.model import Model, Quality, Term, add, alternatives_with
from ..pmnf.model.term import sort_key
from ..pmnf.modeler import fit_models
from ..pmnf.options import DEFAULT, Options
from .dedicated import dedicated_times
from .imbalance import Imbalance, imbalances
from .measured import centred, fit_measured, one_by_one
from .messages import messages_of
from .one_serves import Served
from .path_model import WAITING, PathModel, shapes, unit
from .pipelines import Growth, stages, told_apart, waiting_growths
from .prior import Prior
from .rank_parameters import rank_parameters
from .slowdown import GROWTHS, LEAST_VALUES
from .waiting_part import waits_of

# Below this part of a call path's time, waiting is noise of the transfer, where there is any.
_LEAST_SHARE = 0.05
_MPI = RegionKind.MPI
# Terms of the program's computation that are nowhere this part of it have no effect on how waiting grows.
_LEAST_PART = 0.01
# Priors that miss waiting by more than the first, relatively, may be of the wrong form. A function among all those of
# PMNF must explain so much more (2 log likelihood): that of the best of some thousand by luck, and of coefficients.
_MISSED, _OTHER_FORM = 0.05, 30.0
_STEEPEST = max(GROWTHS)
# The sum of the models of transfer and waiting may miss the time by so much, relatively, and the model of time alone
# may explain so much more (2 log likelihood). Relative errors below the last are none. benchmarks/separated_waiting.py
_MISFIT, _ALONE, _EXACT = 0.2, 20.0, 1e-3


def transfer_times(experiment: Experiment) -> tuple[Experiment, list[bool]]:
    """Return the experiment with waiting taken out of the time of the call paths that waited, and which these are."""
    waits, paths = experiment.values.get("wait_time"), len(experiment.tree)
    if waits is None:
        return experiment, [False] * paths
    times = experiment.values["time"]
    total, waited = (np.where(np.isfinite(values), values, 0.0).sum(axis=(1, 2)) for values in (times, waits))
    is_mpi = np.array([experiment.tree.region_of(path).kind is _MPI for path in range(paths)])
    least = 0.0 if experiment.exact_times else _LEAST_SHARE
    chosen = is_mpi & (waited > least * total)
    left = times.copy()
    left[chosen] = np.maximum(times[chosen] - np.nan_to_num(waits[chosen]), 0.0)
    return replace(experiment, values={**experiment.values, "time": left}), chosen.tolist()


def with_waiting(
    experiment: Experiment,
    models: Mapping[int, PathModel],
    transfers: Mapping[int, PathModel],
    choices: Sequence[Sequence[Prior]],
    options: Options = DEFAULT,
    served: Mapping[int, Served] = MappingProxyType({}),
) -> dict[int, tuple[PathModel, PathModel]]:
    """Return the models of call paths that waited, transfer and waiting, where that fits better than Table I alone.

    Of each the model of time, and that of the waiting in it.

    models: of the time of all call paths. transfers: the same of those that waited, without waiting (`transfer_times`),
    with the growth that transfers have beyond Table I.
    choices: the priors of all call paths. served: call paths that wait for one rank (`one_serves`).
    """
    if not transfers:
        return {}
    for one in served.values():
        experiment = one.at.only(experiment)
    works = _computations(experiment, models)
    times, _ = dedicated_times(experiment, "time", choices)
    waits = _seen(waits_of(experiment, times), times)
    ranks = rank_parameters(experiment)
    by_growth = {path: _grows_with(experiment, waits[path], ranks) for path in transfers}
    known_grids = [grid for grid in experiment.grids if grid.source]
    uneven = imbalances(experiment, models, options)
    messages = messages_of(experiment, list(transfers), options)
    block = _of_one_visit(experiment, models, works[0][0], options) if messages and known_grids else None
    kinds = {path: (names, messages.get(path)) for path, names in by_growth.items()}
    priors: dict[object, list[Prior]] = {}  # call paths share them, and their columns
    for names, own in set(kinds.values()):
        growths = waiting_growths(names, known_grids, own is not None)
        known = told_apart(growths, experiment.parameters, experiment.points)
        priors[names, own] = [
            replace(prior, penalty=prior.penalty + penalty)
            for work, penalty in works
            for prior in (*waiting_priors(work, known, uneven), *stages(work, own, known))
        ]
        priors[names, own] += stages(block, own, known) if block is not None else []
    chosen = {path: priors[kind] for path, kind in kinds.items()}
    chosen |= {path: [*one.priors] for path, one in served.items()}
    waiting = fit_measured(experiment, centred(waits, options), chosen, one_by_one(waits, options), doubted=True)
    rest = {path: wait for path, wait in waiting.items() if path not in served}
    waiting |= _of_other_form(experiment, waits, rest, by_growth, options)
    centre = centred(times, options).centre
    result = {}
    for path, wait in waiting.items():
        entry, transfer = models[path], transfers[path]
        if not isinstance(entry.model, Model) or not isinstance(transfer.model, Model):
            continue
        whole = add([transfer.model, wait])
        known = centre[path] > 0
        points, values = experiment.points[known], centre[path][known][None]
        count = np.array([1 + len(whole.terms)])
        fitted = whole.evaluate(points)[None]
        (quality,) = qualities(values, fitted, np.array([np.nan]), count)
        (alone,) = qualities(values, entry.model.evaluate(points)[None], np.array([np.nan]), count)
        if is_preferred(quality, alone):
            doubts = alternatives_with(wait, transfer.model)
            whole = replace(
                whole, quality=quality, ranges=entry.model.ranges, alternatives=doubts, notes=entry.model.notes
            )
            time = replace(entry, model=whole, basis=f"{transfer.basis} + {WAITING}", lower=entry.model)
            part = replace(wait, ranges=entry.model.ranges, notes=entry.model.notes)
            result[path] = time, replace(entry, model=part, basis=WAITING, prior="")
    return result


def is_preferred(parts: Quality, alone: Quality) -> bool:
    """Whether to take the sum of the models of transfer and of waiting, and not the model of time alone.

    Both parts were measured. A model of time alone knows less, and often has more freedom. So it must explain clearly
    more where the sum fits, and only a little where the sum misses the time: then one of the parts has the wrong form.
    """
    known, other = (max(one.rms_relative, _EXACT) for one in (parts, alone))
    clearly = 2.0 * parts.points * math.log(known / other) > _ALONE
    return parts.smape < alone.smape or (known <= _MISFIT and not clearly)


def _of_other_form(
    experiment: Experiment,
    waits: FloatArray,
    waiting: Mapping[int, Model],
    by_growth: Mapping[int, tuple[str, ...]],
    options: Options,
) -> dict[int, Model]:
    """Return models of the waiting (N, C, R) of call paths that grows as no process grid, tree or ring does.

    Of the many functions of PMNF some follow any noise, so that one must explain much more than the priors do. It grows
    no faster with the ranks than the steepest of these, and not with numbers of ranks of which few were measured.
    by_growth: the numbers of ranks that call paths may grow with.
    """
    missed = {path: model.quality for path, model in waiting.items() if model.quality is not None}
    paths = [path for path, own in missed.items() if own.rms_relative > _MISSED]
    ranks = rank_parameters(experiment)
    metric, points, parameters = experiment.metric("wait_time"), experiment.points, experiment.parameters
    result = {}
    for path, model in zip(paths, fit_models(points, waits[paths], metric, parameters, options), strict=True):
        if isinstance(model, Model) and model.quality is not None and model.quality.rms_relative > 0.0:
            ratio = missed[path].rms_relative / model.quality.rms_relative
            more = 2.0 * model.quality.points * math.log(ratio)
            if more > _OTHER_FORM and all(
                model.lead(name) <= (_STEEPEST if name in by_growth[path] else (0, 0)) for name in ranks
            ):
                result[path] = model
    return result


def _seen(waits: FloatArray, times: FloatArray) -> FloatArray:
    """Return waiting (N, C, R) without configurations where it is next to nothing of the time of the call path.

    There it is noise of the transfer, and its relative errors say nothing about how it grows. Where too few others are
    left, all are.
    """
    with np.errstate(invalid="ignore"):
        shown = np.nansum(waits, axis=2) >= _LEAST_SHARE * np.nansum(times, axis=2)
    there = (np.nan_to_num(waits) > 0.0).any(axis=2)
    enough = np.count_nonzero(shown & there, axis=1) >= LEAST_VALUES
    return np.where((shown | ~there | ~enough[:, None])[:, :, None], waits, np.nan)


def _computations(experiment: Experiment, models: Mapping[int, PathModel]) -> list[tuple[Model | None, float]]:
    """Return what ranks may wait for, with the penalty of its priors: the computation of the program by its effort, and
    as long as it takes, growth beyond effort included, which must explain more than a coefficient does. None where
    nothing is known of it.
    """
    tree = experiment.tree
    work = [
        (entry.from_effort, entry.model)
        for path, entry in models.items()
        if isinstance(entry.from_effort, Model)
        and isinstance(entry.model, Model)
        and tree.region_of(path).kind is not _MPI
        and not tree.start_and_end[path]
    ]
    if not work:
        return [(None, 0.0)]
    of_effort, grown = (_significant(add(list(own)), experiment) for own in zip(*work, strict=True))
    return [(of_effort, 0.0), *([(grown, NOISY.coefficient)] if shapes(grown) != shapes(of_effort) else [])]


def _of_one_visit(
    experiment: Experiment, models: Mapping[int, PathModel], work: Model | None, options: Options
) -> Model | None:
    """Return what the program computes for each visit of the call path that computes most: a block of a pipeline.

    work: the computation of the program. None unless the visits are a single term of the parameters.
    """
    tree = experiment.tree
    sizes = {
        path: float(Model(model.parameters, 0.0, model.terms).evaluate(experiment.points).mean())
        for path, entry in models.items()
        if isinstance(model := entry.model, Model) and tree.region_of(path).kind is not _MPI
    }
    if work is None or not sizes:
        return None
    visits = experiment.values["visits"][[max(sizes, key=lambda path: sizes[path])]]
    (model,) = fit_models(experiment.points, visits, experiment.metric("visits"), experiment.parameters, options)
    if not isinstance(model, Model) or len(model.terms) != 1 or model.constant:
        return None
    (term,) = model.terms
    if not all(factor.is_plain and not factor.log for factor in term.factors):
        return None
    part = Term(1.0 / term.coefficient, tuple(replace(own, exponent=-own.exponent) for own in term.factors))
    return Model(work.parameters, 0.0, work.terms).times(Model(model.parameters, 0.0, (part,)))


def _significant(model: Model, experiment: Experiment) -> Model:
    """Return a sum without the terms that are nowhere a hundredth of it, but for that of the highest order."""
    parts = [Model(model.parameters, 0.0, (term,)).evaluate(experiment.points) for term in model.terms]
    whole = np.maximum(np.abs(model.evaluate(experiment.points)), 1e-300)
    highest = max(range(len(parts)), key=lambda number: sort_key(model.terms[number]), default=-1)
    kept = [
        term
        for number, (term, part) in enumerate(zip(model.terms, parts, strict=True))
        if number == highest or float((np.abs(part) / whole).max()) >= _LEAST_PART
    ]
    return Model(model.parameters, model.constant, tuple(kept))


def _grows_with(experiment: Experiment, waits: FloatArray, ranks: Set[str]) -> tuple[str, ...]:
    """Return the numbers of ranks of which waiting (C, R) was measured at enough values to see it grow.

    Of oversubscribed runs it is waiting for a processor, too.
    """
    points = experiment.points[(np.nan_to_num(waits) > 0).any(axis=1) & experiment.dedicated]
    return tuple(
        name
        for column, name in enumerate(experiment.parameters)
        if name in ranks and np.unique(points[:, column]).size >= LEAST_VALUES
    )


def waiting_priors(work: Model | None, growths: Sequence[Growth], uneven: Sequence[Imbalance] = ()) -> list[Prior]:
    """Return the priors of waiting: a constant, the computation of the program, and both times growth with ranks.

    What the program computes once, whatever its parameters are, need not be what ranks wait for:
    "growing" is the computation without its constant, which stands beside it. uneven: sums of imbalance, the likeliest
    first, beside which the others must explain more than a coefficient does.
    """
    constant = Model((), 1.0)
    columns = [(constant, "c")] if work is None else [(constant, "c"), (unit(work), "c·computation")]
    growing = None if work is None or not work.terms else replace(unit(work), constant=0.0)
    found = [Prior((column,), WAITING, text) for column, text in columns]
    for number, one in enumerate(uneven):
        known, counted, penalty = one.model, one.counted, NOISY.coefficient if number else 0.0
        found += [
            Prior((known,), WAITING, "c·imbalance", penalty=penalty, counted={0: counted}),
            Prior((constant, known), WAITING, "c0 + c1·imbalance", (1,), penalty=penalty, counted={1: counted}),
        ]
    if growing is not None:
        found.append(Prior((constant, growing), WAITING, "c0 + c1·growing"))
    for growth in growths:
        sums: list[tuple[tuple[Model, ...], str]] = []
        for column, text in columns:
            grown = column.times(growth.model)
            sums += [((grown,), f"{text}·({growth})"), ((column, grown), f"{text} + {text}·({growth})")]
        if growing is not None:
            grown = growing.times(growth.model)
            sums.append(((constant, grown), f"c0 + c1·growing·({growth})"))
            sums.append(((growth.model, grown), f"(c0 + c1·growing)·({growth})"))
        for own, text in sums:
            found.append(Prior(own, WAITING, text, needed=(len(own) - 1,), penalty=growth.penalty))
    return found
