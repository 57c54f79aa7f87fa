# SPDX-License-Identifier: Apache-2.0
"""The vectors of an experiment: what is modeled, and of which of them each metric of a call path is the sum."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..class_vectors import ClassVectors
from ..experiment import CallTree, Experiment, FloatArray, mean_over_repetitions

_CALLERS = 3  # call paths from one upwards whose visits its counts may follow
_ROUNDING = 1e-9  # of sums over classes


@dataclass(eq=False)
class Vectors:
    """Counts summed over the ranks, each (configurations,).

    within: for each vector others that it may follow: visits of its call path, its callers, what it calls, and what its
    caller called before, and the class around it. runs: by vector, its single runs (configurations, repetitions).
    parts: metric → for each call path the vectors that add up to it, and how many times each. classes: those whose rows
    are the first vectors, None if there are none.
    """

    counts: list[FloatArray] = field(default_factory=list)
    within: list[tuple[int, ...]] = field(default_factory=list)
    runs: dict[int, FloatArray] = field(default_factory=dict)
    parts: dict[str, list[list[tuple[float, int]]]] = field(default_factory=dict)
    classes: ClassVectors | None = None


def vectors_of(experiment: Experiment, metrics: Collection[str], ranks: FloatArray) -> Vectors:
    """Return the vectors of metrics that are counts. ranks: (configurations,), by which values are multiplied.

    What the pass counts is the sum over the classes of a call path, where the classes are known and account for all of
    it; everything else is one vector per call path.
    """
    measured = {name: np.nan_to_num(mean_over_repetitions(experiment.values[name])) * ranks for name in metrics}
    paths = len(experiment.tree)
    result = Vectors(parts={name: [[] for _ in range(paths)] for name in metrics})
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
                result.runs[len(result.counts)] = experiment.values[name][path] * ranks[:, None]
                result.counts.append(values[path])
    near = [_near(experiment.tree, path, visits) for path in range(paths)]
    for path, around in zip(owner, outer, strict=True):
        callers, others = near[path]
        result.within.append((*callers[:1], *([around] if around >= 0 else []), *callers[1:], *others))
    return result


def _near(tree: CallTree, path: int, visits: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """Return the vectors of visits of a call path and its callers; of what it calls, and its caller called before."""
    callers = [visits[above] for above in tree.ancestry(path)[::-1][:_CALLERS] if above in visits]
    parent = int(tree.parent[path])
    before = [other for other in (tree.children[parent] if parent >= 0 else tree.roots) if other < path]
    return callers, [visits[other] for other in (*tree.children[path], *before[::-1]) if other in visits]


def _explained(measured: FloatArray, classes: ClassVectors, counts: FloatArray, each: FloatArray) -> NDArray[np.bool_]:
    """Return the call paths (paths,) whose classes account for all that was measured (paths, configurations)."""
    sums = np.zeros(measured.shape)
    np.add.at(sums, classes.callpath, counts * each[:, None])
    return np.asarray((np.abs(sums - measured) <= _ROUNDING * (1.0 + measured)).all(axis=1), dtype=bool)
