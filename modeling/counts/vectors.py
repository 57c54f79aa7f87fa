# SPDX-License-Identifier: Apache-2.0
"""Collect the vectors of an experiment. A vector is one count at all configurations, summed over the ranks.

A metric of a call path is a sum of vectors. If the executions of classes of basic blocks were counted
(class_vectors.py), these executions are the vectors. Otherwise, the metric itself is the only vector.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..class_vectors import ClassVectors
from ..experiment import CallTree, Experiment, FloatArray, mean_over_repetitions

_CALLERS = 3  # visits of so many call paths may explain a count: of the call path itself, its caller, and the next
_LARGEST = 1e60  # largest number that is a count
_ROUNDING = 1e-9  # relative rounding error of sums over classes


@dataclass(eq=False)
class Vectors:
    """The vectors of an experiment. The number of a vector is its index in `counts`.

    - counts: the vectors, each of shape (configurations,); 0 where nothing was measured.
    - within: for each vector, the numbers of vectors that may explain it. These are the visits of its call path, of the
      callers, of the callees, and of earlier callees of its caller, and the executions of the class that contains it.
    - runs: for some vectors, the value of each run, shape (configurations, repetitions); NaN if missing.
    - parts: by metric, for each call path: pairs (factor, number of a vector). The metric is Σ factor · vector.
    - unusable: by metric, for some call paths, the reason why their counts cannot be modeled.
    - measured: for vectors that were not measured at all configurations, a mask (configurations,) of the measured ones.
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

    A metric that the compiler pass counts is a sum over the classes of a call path, if the classes account for all of
    its counts. Every other metric has one vector per call path.

    ranks: the factors from values of the experiment to sums over the ranks, shape (configurations,).
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
    """Return counts with 0 in place of numbers below 1 / _LARGEST, and `missing` in place of infinity and NaN."""
    usable = np.isfinite(counts)
    return np.where(usable, np.where(usable & (np.abs(counts) < 1.0 / _LARGEST), 0.0, counts), missing)


def _unusable(counts: FloatArray) -> dict[int, str]:
    """Return by call path the reason why its counts cannot be modeled. counts: shape (paths, configurations)."""
    with np.errstate(invalid="ignore"):
        negative = (counts < 0).any(axis=1)
        large = (np.isinf(counts) | (np.abs(counts) > _LARGEST)).any(axis=1)
    found = dict.fromkeys(np.flatnonzero(negative).tolist(), "a measured count is below 0")
    return found | dict.fromkeys(np.flatnonzero(large).tolist(), f"a measured count is beyond {_LARGEST:g}")


def _near(tree: CallTree, path: int, visits: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """Return two lists of vectors of visits: of a call path and its callers, and of other call paths near it.

    The other call paths are its callees, and the earlier callees of its caller (the last of these first).

    visits: by call path, the number of its vector of visits, if it has one.
    """
    if not visits:
        return [], []
    callers = [visits[above] for above in tree.ancestry(path)[::-1][:_CALLERS] if above in visits]
    parent = int(tree.parent[path])
    before = [other for other in (tree.children[parent] if parent >= 0 else tree.roots) if other < path]
    return callers, [visits[other] for other in (*tree.children[path], *before[::-1]) if other in visits]


def _explained(measured: FloatArray, classes: ClassVectors, counts: FloatArray, each: FloatArray) -> NDArray[np.bool_]:
    """Return a mask (paths,) of the call paths whose classes account for all counts of a metric.

    - measured: the metric, shape (paths, configurations).
    - counts: the executions of the classes, shape (classes, configurations).
    - each: value of the metric per execution, shape (classes,).
    """
    sums = np.zeros(measured.shape)
    np.add.at(sums, classes.callpath, counts * each[:, None])
    return np.asarray((np.abs(sums - measured) <= _ROUNDING * (1.0 + measured)).all(axis=1), dtype=bool)
