# SPDX-License-Identifier: Apache-2.0
"""What ranks wait for that one rank serves: workers for a master that has more to do than they have.

A branch of the program that one rank takes while all others take another one ends on all of them at about the same
time: when both are done. Without waiting, the one takes M seconds there and each of the others W. So the others wait
for max(0, M - W) seconds, whatever messages they wait in, and from as many ranks on as make M larger than W, that is
M - W: the master is saturated (Amdahl's argument for the service of requests; Kleinrock, Queueing Systems I, 1.1).
Neither is fitted to the waiting: both are times without it. Values are means over all ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..experiment import Experiment, FloatArray, RegionKind, mean_over_repetitions
from ..pmnf.model import Factor, Model, Term, add
from .path_model import WAITING, PathModel, unit
from .prior import Prior
from .rank_parameters import rank_parameters
from .slowdown import LEAST_VALUES
from .times_at import TimesAt, values_left

_Flags = NDArray[np.bool_]
# Waiting in one operation is that for the master where it is at least this part of M - W, and no more than its inverse:
# ranks end one after the other, and wait for the last one in the operation behind the branch.
_PART = 0.7
# Visits that are the same but for rounding.
_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Served:
    """Where a call path waits for one rank that serves all others, and the priors of its waiting there."""

    at: TimesAt
    priors: tuple[Prior, ...]


def served_by_one(experiment: Experiment, models: Mapping[int, PathModel]) -> dict[int, Served]:
    """Return the operations of MPI in which ranks wait for a saturated master, by call path.

    models: of time by call path, without waiting where that was measured. Nothing unless the number of ranks is one of
    the parameters, and M is larger than W at its largest value, and at as many as growth with the ranks needs.
    """
    waits, names = experiment.values.get("wait_time"), rank_parameters(experiment)
    if waits is None or len(names) != 1 or "visits" not in experiment.values:
        return {}
    (name,) = names
    ranks = experiment.points[:, experiment.parameters.index(name)]
    result: dict[int, Served] = {}
    for one, others in _branches(experiment, ranks):
        served = _waiting_of(experiment, models, name, ranks, one, others)
        if served is None:
            continue
        model, counted = served
        mean = np.nan_to_num(mean_over_repetitions(waits))
        for path in others:
            shown = (counted > 0.0) & (mean[path] >= _PART * counted) & (mean[path] * _PART <= counted)
            if experiment.tree.region_of(path).kind is RegionKind.MPI and _saturated(shown, ranks):
                left = values_left(experiment, shown)
                note = f"without {left}, where the rank that serves others waits for them" if left else ""
                at = TimesAt((path,), shown, note)
                sums = ((model,), "c·(M - W)", 0), ((Model((), 1.0), model), "c0 + c1·(M - W)", 1)
                result[path] = Served(
                    at, tuple(Prior(own, WAITING, text, (row,), counted={row: counted}) for own, text, row in sums)
                )
    return result


def _branches(experiment: Experiment, ranks: FloatArray) -> list[tuple[list[int], list[int]]]:
    """Return the call paths in branches that one rank takes, and those in the branches that all others take instead.

    ranks: (C,). Visits tell: means over ranks are 1/p and (p - 1)/p of as many visits at all configurations.
    """
    tree = experiment.tree
    several = ranks > 1
    visits = np.nan_to_num(mean_over_repetitions(experiment.values["visits"]))[:, several] * ranks[several]
    whole = (np.abs(visits - np.round(visits)) < _SAME * np.maximum(visits, 1.0)).all(axis=1) & (visits > 0).all(axis=1)
    result = []
    for one in np.flatnonzero(whole & ~tree.start_and_end).tolist() if several.any() else []:
        if tree.region_of(one).kind is RegionKind.MPI or np.ptp(visits[one]) > 0.0:
            continue
        wanted = visits[one] * (ranks[several] - 1.0)
        same = (np.abs(visits - wanted) <= _SAME * wanted).all(axis=1) & (tree.parent == tree.parent[one])
        roots = [path for path in np.flatnonzero(same).tolist() if tree.region_of(path).kind is not RegionKind.MPI]
        if len(roots) == 1 and (wanted != visits[one]).any():
            result.append((list(tree.below(one)), list(tree.below(roots[0]))))
    return result


def _waiting_of(
    experiment: Experiment,
    models: Mapping[int, PathModel],
    name: str,
    ranks: FloatArray,
    one: list[int],
    others: list[int],
) -> tuple[Model, FloatArray] | None:
    """Return how long ranks wait for the one, on average over all of them: a model, and at the configurations (C,).

    That is (p - 1)/p of M - W, where M is p times the mean of what the one takes, and W p/(p - 1) times that of others.
    None where a call path that takes time has no model.
    """
    entries = {path: entry.model for path, entry in models.items() if path in one or path in others}
    if not all(isinstance(model, Model) for model in entries.values()):
        return None
    known = {path: unit(model) for path, model in entries.items() if isinstance(model, Model)}
    times, waits = (np.nan_to_num(mean_over_repetitions(experiment.values[own])) for own in ("time", "wait_time"))
    busy = np.maximum(times - waits, 0.0)
    if any(busy[path].any() and path not in known for path in (*one, *others)):
        return None
    counted = np.maximum((ranks - 1.0) * busy[one].sum(axis=0) - busy[others].sum(axis=0), 0.0)
    beside = Model((name,), -1.0, (Term(1.0, (Factor(name, Fraction(1)),)),))
    parts = [known[path].times(beside) for path in one if path in known]
    parts += [known[path].scaled(-1.0) for path in others if path in known]
    return add(parts), counted


def _saturated(shown: _Flags, ranks: FloatArray) -> bool:
    """Whether waiting is that for one rank at all configurations of the most ranks, and at enough numbers of ranks."""
    return bool(shown[ranks == ranks.max()].all()) and np.unique(ranks[shown]).size >= min(LEAST_VALUES, 3)
