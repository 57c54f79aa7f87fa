# SPDX-License-Identifier: Apache-2.0
"""Model the time that ranks wait.

Measured waiting is not a part of the transfer. The priors of Table I are therefore fitted to time without waiting, and
waiting has a separate model. Ranks wait for ranks that have more work or are delayed. Waiting therefore has the order
of the computation of the program, or is a constant. It may also grow with the ranks like trees, process grids and
rings, from 0 for a single rank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from ..experiment import Experiment, FloatArray, RegionKind
from ..pmnf.build import qualities
from ..pmnf.calibration import NOISY
from ..pmnf.model import Model, Quality, add, alternatives_with
from ..pmnf.options import DEFAULT, Options
from .dedicated import dedicated_times
from .imbalance import Imbalance, imbalances
from .measured import centred, fit_measured, one_by_one
from .path_model import WAITING, PathModel, unit
from .pipelines import Growth, distinct_growths, message_sizes, stages, waiting_growths
from .prior import Prior
from .rank_parameters import rank_parameters
from .slowdown import LEAST_VALUES
from .waiting_part import waits_of

# Share of the time of a call path; smaller waiting is noise of the transfer.
_LEAST_SHARE = 0.05
# Accepted relative error of the sum of the models of transfer and waiting; accepted advantage of the model of time
# alone (2 log likelihood); smaller relative errors are ignored. Source: benchmarks/separated_waiting.py
_MISFIT, _ALONE, _EXACT = 0.2, 20.0, 1e-3


def transfer_times(experiment: Experiment) -> tuple[Experiment, list[bool]]:
    """Return the experiment with waiting subtracted from the time of call paths, and which call paths waited."""
    waits, paths = experiment.values.get("wait_time"), len(experiment.tree)
    if waits is None:
        return experiment, [False] * paths
    times = experiment.values["time"]
    total, waited = (np.where(np.isfinite(values), values, 0.0).sum(axis=(1, 2)) for values in (times, waits))
    is_mpi = np.array([experiment.tree.region_of(path).kind is RegionKind.MPI for path in range(paths)])
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
) -> dict[int, tuple[PathModel, PathModel]]:
    """Return the models of call paths that waited, as transfer plus waiting, if this fits better than Table I alone.

    Returns the model of time and the model of waiting of each call path.

    models: of the time of all call paths. transfers: models of the time without waiting (`transfer_times`) of the call
    paths that waited, including growth beyond Table I. choices: the priors of all call paths.
    """
    if not transfers:
        return {}
    times, _ = dedicated_times(experiment, "time", choices)
    waits = waits_of(experiment, times)
    chosen = _choices(experiment, models, {path: waits[path] for path in transfers}, options)
    waiting = fit_measured(experiment, centred(waits, options), chosen, one_by_one(waits, options), doubted=True)
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


def _choices(
    experiment: Experiment, models: Mapping[int, PathModel], waits: Mapping[int, FloatArray], options: Options
) -> dict[int, list[Prior]]:
    """Return the priors of waiting (C, R) of call paths."""
    work, ranks = _computation(experiment, models), rank_parameters(experiment)
    known_grids = [grid for grid in experiment.grids if grid.source]
    uneven = imbalances(experiment, models, options)
    sizes = message_sizes(experiment, list(waits), options)
    kinds = {path: (_grows_with(experiment, own, ranks), sizes.get(path)) for path, own in waits.items()}
    priors: dict[object, list[Prior]] = {}  # call paths share them, and their columns
    for names, size in set(kinds.values()):
        growths = waiting_growths(names, known_grids, size is not None)
        known = distinct_growths(growths, experiment.parameters, experiment.points)
        priors[names, size] = [*waiting_priors(work, known, uneven), *stages(work, size, known)]
    return {path: priors[kind] for path, kind in kinds.items()}


def is_preferred(parts: Quality, alone: Quality) -> bool:
    """Return whether to select the sum of the models of transfer and waiting instead of the model of time alone.

    Both parts were measured. A model of time alone has less information, and often more freedom. It must therefore be
    clearly better if the sum fits. If the sum misses the time, one part has the wrong form, and a small improvement
    suffices.
    """
    known, other = (max(one.rms_relative, _EXACT) for one in (parts, alone))
    clearly = 2.0 * parts.points * math.log(known / other) > _ALONE
    return parts.smape < alone.smape or (known <= _MISFIT and not clearly)


def _computation(experiment: Experiment, models: Mapping[int, PathModel]) -> Model | None:
    """Return the model of the computation for which ranks may wait; None if it is unknown."""
    tree = experiment.tree
    work = [
        entry.model
        for path, entry in models.items()
        if isinstance(entry.model, Model)
        and tree.region_of(path).kind is not RegionKind.MPI
        and not tree.start_and_end[path]
    ]
    return unit(add(work)) if work else None


def _grows_with(experiment: Experiment, waits: FloatArray, ranks: Set[str]) -> tuple[str, ...]:
    """Return the numbers of ranks with enough measured values of waiting (C, R) to determine its growth.

    In oversubscribed runs, waiting contains waiting for a processor.
    """
    points = experiment.points[(np.nan_to_num(waits) > 0).any(axis=1) & experiment.dedicated]
    return tuple(
        name
        for column, name in enumerate(experiment.parameters)
        if name in ranks and np.unique(points[:, column]).size >= LEAST_VALUES
    )


def waiting_priors(work: Model | None, growths: Sequence[Growth], uneven: Sequence[Imbalance] = ()) -> list[Prior]:
    """Return the priors of waiting: a constant, the computation of the program, and both times growth with ranks.

    "growing" is the computation without its constant: ranks need not wait for computation that happens once, and the
    constant is a separate column. uneven: sums of imbalance, the likeliest first; other priors must then improve the
    fit by more than a coefficient.
    """
    constant = Model((), 1.0)
    columns = [constant] if work is None else [constant, work]
    growing = None if work is None or not work.terms else replace(work, constant=0.0)
    found = [Prior((column,), WAITING, "") for column in columns]
    for number, one in enumerate(uneven):
        penalty = NOISY.coefficient if number else 0.0
        found.append(Prior((one.model,), WAITING, "", penalty=penalty, counted={0: one.counted}))
        found.append(Prior((constant, one.model), WAITING, "", (1,), penalty=penalty, counted={1: one.counted}))
    if growing is not None:
        found.append(Prior((constant, growing), WAITING, ""))
    for growth in growths:
        sums: list[tuple[Model, ...]] = []
        for column in columns:
            grown = column.times(growth.model)
            sums += [(grown,), (column, grown)]
        if growing is not None:
            grown = growing.times(growth.model)
            sums += [(constant, grown), (growth.model, grown)]
        found += [Prior(own, WAITING, "", needed=(len(own) - 1,), penalty=growth.penalty) for own in sums]
    return found
