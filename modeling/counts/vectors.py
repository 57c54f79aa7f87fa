# SPDX-License-Identifier: Apache-2.0
"""Collect the vectors of an experiment: counts at all configurations, summed over the ranks.

A metric of a call path is a sum of vectors. The vectors are the executions of classes of basic blocks if these are
known (class_vectors.py), otherwise the metric itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..class_vectors import ClassVectors
from ..experiment import CallTree, Experiment, FloatArray, mean_over_repetitions

_CALLERS = 3  # a count may be a function of the visits of its call path and the callers, so many in total
_LARGEST = 1e60  # larger numbers are no counts
_ROUNDING = 1e-9  # relative rounding error of sums over classes


@dataclass(eq=False)
class Vectors:
    """The vectors of an experiment. A vector is given by its number, its place in `counts`.

    - counts: each of shape (configurations,), 0 where nothing was measured.
    - within: for each vector, the vectors of which it may be a function: visits of its call path, of the callers, of
      the callees, and of earlier callees of its caller, and the class that contains it.
    - runs: for some vectors, the value of each run, shape (configurations, repetitions); NaN if missing.
    - parts: by metric, for each call path: pairs (factor, vector) whose sum is the metric.
    - unusable: by metric, for some call paths, the reason why their counts cannot be modeled.
    - measured: for vectors that were not measured at all configurations: a mask (configurations,) of where they were.
    - classes: the classes whose executions are the first vectors; None if there are none.
    """

    counts: list[FloatArray] = field(default_factory=list)
    within: list[tuple[int, ...]] = field(default_factory=list)
    runs: dict[int, FloatArray] = field(default_factory=dict)
    parts: dict[str, list[list[tuple[float, int]]]] = field(default_factory=dict)
    unusable: dict[str, dict[int, str]] = field(default_factory=dict)
    measured: dict[int, NDArray[np.bool_]] = field(default_factory=dict)
    classes: ClassVectors | None = None


def vectors_of(experiment: Experiment, metrics: Collection[str], ranks: FloatArray) -> Vectors:
    """Return the vectors of metrics that are counts.

    ranks: (configurations,), the factors that convert values of the experiment to sums over the ranks. Metrics that the
    compiler pass counts are sums over the classes of a call path, if the classes are known and account for all counts.
    Every other metric has one vector per call path.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        means = {name: mean_over_repetitions(experiment.values[name]) for name in metrics}
    unusable = {name: _unusable(own) for name, own in means.items()}
    for name, paths_of in unusable.items():
        means[name][list(paths_of)] = np.nan
    measured = {name: _without_tiny(own) * ranks for name, own in means.items()}
    paths = len(experiment.tree)
    result = Vectors(parts={name: [[] for _ in range(paths)] for name in metrics}, unusable=unusable)
    classes = experiment.classes.vectors if experiment.classes is not None else None
    explained: dict[str, NDArray[np.bool_]] = {}
    if classes is not None and classes.ranks.size == len(experiment.points):
        share = ranks / classes.ranks if experiment.over_ranks == "mean" else np.ones(len(ranks))
        counts = classes.counts * share
        result.counts.extend(counts)
        result.classes = classes
        known = [name for name in metrics if name in classes.effort]
        explained = {name: _explained(measured[name], classes, counts, classes.effort[name]) for name in known}
        for name in known:
            for row, (path, each) in enumerate(
                zip(classes.callpath.tolist(), classes.effort[name].tolist(), strict=True)
            ):
                if explained[name][path] and each:
                    result.parts[name][path].append((each, row))
    owner = result.classes.callpath.tolist() if result.classes is not None else []
    outer = result.classes.within.tolist() if result.classes is not None else []
    visits: dict[int, int] = {}
    for name, values in measured.items():
        for path in range(paths):
            if name not in explained or not explained[name][path]:
                result.parts[name][path] = [(1.0, len(result.counts))]
                if name == "visits":
                    visits[path] = len(result.counts)
                owner.append(path)
                outer.append(-1)
                if not (there := np.isfinite(means[name][path])).all():
                    result.measured[len(result.counts)] = there
                runs = np.where(there[:, None], experiment.values[name][path], np.nan)
                result.runs[len(result.counts)] = _without_tiny(runs, np.nan) * ranks[:, None]
                result.counts.append(values[path])
    near = [_near(experiment.tree, path, visits) for path in range(paths)]
    for path, around in zip(owner, outer, strict=True):
        callers, others = near[path]
        result.within.append((*callers[:1], *([around] if around >= 0 else []), *callers[1:], *others))
    return result


def _without_tiny(counts: FloatArray, missing: float = 0.0) -> FloatArray:
    """Return counts with 0 for numbers too close to 0 to be counts, and `missing` where nothing was measured."""
    usable = np.isfinite(counts)
    return np.where(usable, np.where(usable & (np.abs(counts) < 1.0 / _LARGEST), 0.0, counts), missing)


def _unusable(counts: FloatArray) -> dict[int, str]:
    """Return the reasons why counts (paths, configurations) cannot be modeled, for the call paths that have one."""
    with np.errstate(invalid="ignore"):
        negative = (counts < 0).any(axis=1)
        large = (np.isinf(counts) | (np.abs(counts) > _LARGEST)).any(axis=1)
    found = dict.fromkeys(np.flatnonzero(negative).tolist(), "a measured count is below 0")
    return found | dict.fromkeys(np.flatnonzero(large).tolist(), f"a measured count is beyond {_LARGEST:g}")


def _near(tree: CallTree, path: int, visits: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """Return the vectors of visits near a call path, in two lists: of itself and its callers; of others.

    The others are its callees, and the earlier callees of its caller, the last one first. visits: the vector of visits
    of each call path that has one.
    """
    if not visits:
        return [], []
    callers = [visits[above] for above in tree.ancestry(path)[::-1][:_CALLERS] if above in visits]
    parent = int(tree.parent[path])
    before = [other for other in (tree.children[parent] if parent >= 0 else tree.roots) if other < path]
    return callers, [visits[other] for other in (*tree.children[path], *before[::-1]) if other in visits]


def _explained(measured: FloatArray, classes: ClassVectors, counts: FloatArray, each: FloatArray) -> NDArray[np.bool_]:
    """Return for each call path (paths,) whether its classes account for all counts of a metric.

    measured: (paths, configurations); counts: (classes, configurations), executions; each: (classes,), value of the
    metric per execution.
    """
    sums = np.zeros(measured.shape)
    np.add.at(sums, classes.callpath, counts * each[:, None])
    return np.asarray((np.abs(sums - measured) <= _ROUNDING * (1.0 + measured)).all(axis=1), dtype=bool)
