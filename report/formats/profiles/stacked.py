# SPDX-License-Identifier: Apache-2.0
"""Combine profiles of single runs into an experiment."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import Experiment, FloatArray, IntArray, Metric
from quipu.modeling.limits import reading

from ...views import Over
from ..extrap.collect import TreeBuilder
from .folders import Profile


class Stacked:
    """The profiles that a reader has read.

    metrics, tree: of all profiles. values: for each profile, the exclusive values by metric and index of the call path.
    notes: texts for the user.
    """

    def __init__(self, over_ranks: Over) -> None:
        """Create the object without profiles. over_ranks: how to combine the ranks of a profile to one value."""
        self.over_ranks = over_ranks
        self.metrics: dict[str, Metric] = {}
        self.values: list[dict[str, dict[int, float]]] = []
        self.notes: dict[str, None] = {}
        self.tree = TreeBuilder()

    def combined(self, values: FloatArray, ranks: IntArray, metric: Metric) -> float:
        """Return the values of all locations (threads) combined to one number.

        values: shape (locations,). ranks: the rank of each location, from 0, without gaps, shape (locations,).
        """
        largest = metric.over_locations == "max"
        by_rank = np.full(int(ranks.max()) + 1, -np.inf if largest else 0.0)
        (np.maximum if largest else np.add).at(by_rank, ranks, values)
        if largest or self.over_ranks == "max":
            return float(by_rank.max())
        return float(by_rank.mean() if self.over_ranks == "mean" else by_rank.sum())

    def experiment(self, source: Path, profiles: list[Profile], size: int, missing: float = 0.0) -> Experiment:
        """Return the experiment of all profiles. Raises FormatError if they contain no values.

        source: file or folder that the user named. profiles: in the order of `values`. size: bytes of their files.
        missing: the value of a call path that is missing in a profile: 0 (not executed) or NaN (not measured).
        """
        names = tuple(profiles[0].parameters)
        keys = [tuple(profile.parameters.values()) for profile in profiles]
        points = sorted(set(keys))
        if not self.metrics:
            raise FormatError(source, "the profiles contain no values")
        seen: Counter[tuple[float, ...]] = Counter()
        repetition = []
        for key in keys:
            repetition.append(seen[key])
            seen[key] += 1
        shape = (len(self.tree), len(points), max(repetition) + 1)
        with reading(source, size) as cost:
            cost.spend(8 * math.prod(shape) * len(self.metrics))
        where_is = {key: place for place, key in enumerate(points)}
        values = {metric: np.full(shape, np.nan) for metric in self.metrics}
        for key, count, measured in zip(keys, repetition, self.values, strict=True):
            where = where_is[key]
            for metric, by_node in measured.items():
                values[metric][:, where, count] = missing
                values[metric][list(by_node), where, count] = list(by_node.values())
        resolved = source.resolve()
        return Experiment(
            name=resolved.name if source.is_dir() else resolved.stem,
            parameters=names,
            points=np.array(points, dtype=np.float64).reshape(len(points), len(names)),
            tree=self.tree.tree(),
            metrics=self.metrics,
            values=values,
            over_ranks=self.over_ranks,
            notes=tuple(self.notes),
        )
