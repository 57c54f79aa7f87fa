# SPDX-License-Identifier: Apache-2.0
"""Predictions of the effort and communication of an experiment, per call path, by the laws of its counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..class_vectors import ClassVectors
from ..experiment import Experiment, FloatArray, mean_over_repetitions
from ..pmnf.model import Prediction
from .program import Model, fit

_LOWEST, _MIDDLE, _HIGHEST = 0.05, 0.5, 0.95
_CALLERS = 4  # call paths from one upwards whose visits may be a factor of its counts, and one
_ROUNDING = 1e-9  # of sums over classes
_FEWEST = 3  # configurations that laws need


@dataclass(eq=False)
class CountModels:
    """The counts of an experiment, which are modeled together when the first of them is asked for.

    ranks: the parameter that is the number of ranks, None if there is none.
    """

    experiment: Experiment
    ranks: str | None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that are counts, and add up."""
        known = self.experiment.metrics.items()
        values = self.experiment.values
        return tuple(
            name for name, metric in known if metric.is_effort and metric.over_locations == "sum" and name in values
        )

    @cached_property
    def models(self) -> dict[str, list[Model]]:
        """What is known of each metric, per call path; counts are sums over the ranks.

        What the pass counts is the sum over the classes of a call path, where the classes are known and account for
        all of it; everything else is one vector per call path.
        """
        experiment = self.experiment
        factor = self._ranks_of(experiment.points)
        measured = {
            name: np.nan_to_num(mean_over_repetitions(experiment.values[name])) * factor for name in self.metrics
        }
        classes = experiment.classes.vectors if experiment.classes is not None else None
        vectors: list[FloatArray] = []
        within: list[tuple[int, ...]] = []
        explained: dict[str, NDArray[np.bool_]] = {}
        if classes is not None and classes.ranks.size == len(experiment.points):
            share = factor / classes.ranks if experiment.over_ranks == "mean" else 1.0
            counts = classes.counts * share
            explained = {
                name: _explained(values, classes, counts, classes.effort[name])
                for name, values in measured.items()
                if name in classes.effort
            }
            vectors.extend(counts)
        rows = len(vectors)
        numbers: dict[tuple[str, int], int] = {}
        for name, values in measured.items():
            for path, counts_of_path in enumerate(values):
                if name not in explained or not explained[name][path]:
                    numbers[name, path] = len(vectors)
                    vectors.append(counts_of_path)
        callers = [
            [
                numbers["visits", above]
                for above in experiment.tree.ancestry(path)[:-_CALLERS:-1]
                if ("visits", above) in numbers
            ]
            for path in range(len(experiment.tree))
        ]
        if classes is not None and rows:
            for path, outer in zip(classes.callpath.tolist(), classes.within.tolist(), strict=True):
                within.append((*callers[path][:1], *([outer] if outer >= 0 else []), *callers[path][1:]))
        within += [tuple(callers[path]) for _, path in numbers]
        found = fit(experiment.points, list(experiment.parameters), vectors, self.ranks, experiment.grids, within)
        result = {}
        for name in self.metrics:
            own: dict[int, list[tuple[float, Model]]] = {}
            if name in explained and classes is not None:
                for row, (path, each) in enumerate(
                    zip(classes.callpath.tolist(), classes.effort[name].tolist(), strict=True)
                ):
                    if explained[name][path]:
                        own.setdefault(path, []).append((each, found[row]))
            nothing = Model(found[0].program, ())
            result[name] = [
                found[numbers[name, path]]
                if (name, path) in numbers
                else Model.total(own[path])
                if path in own
                else nothing
                for path in range(len(experiment.tree))
            ]
        return result

    def predict(self, point: Mapping[str, float], metric: str) -> tuple[Prediction, ...]:
        """Return the predictions of a metric per call path, combined over ranks as the experiment does it.

        The value is the median of what the laws say, the interval has 90 % of their weight.
        """
        place = [float(point[name]) for name in self.experiment.parameters]
        share = 1.0 / float(self._ranks_of(np.array([place]))[0])
        low, high = self.experiment.points.min(axis=0), self.experiment.points.max(axis=0)
        beyond = bool((np.array(place) < low).any() or (np.array(place) > high).any())
        result = []
        for model in self.models[metric]:
            known = model.at(place).scaled(share)
            lower, middle, upper = (max(known.quantile(part), 0.0) for part in (_LOWEST, _MIDDLE, _HIGHEST))
            result.append(Prediction(middle, lower, upper, beyond))
        return tuple(result)

    def is_exact(self, metric: str, path: int) -> bool:
        """Return whether the likeliest law of a call path reproduces all that was counted."""
        return self.models[metric][path].exact

    def text(self, metric: str, path: int) -> str:
        """Return the likeliest law of a call path as a formula."""
        law = self.models[metric][path].text
        mean = self.experiment.over_ranks == "mean" and self.ranks is not None
        return f"({law})/{self.ranks}" if mean and law != "0" else law

    def _ranks_of(self, points: FloatArray) -> FloatArray:
        """Return by how much the values of configurations are less than sums over the ranks."""
        if self.ranks is None or self.experiment.over_ranks != "mean":
            return np.ones(len(points))
        return np.asarray(points[:, list(self.experiment.parameters).index(self.ranks)], dtype=np.float64)


def _explained(measured: FloatArray, classes: ClassVectors, counts: FloatArray, each: FloatArray) -> NDArray[np.bool_]:
    """Return the call paths (paths,) whose classes account for all that was measured (paths, configurations)."""
    sums = np.zeros(measured.shape)
    np.add.at(sums, classes.callpath, counts * each[:, None])
    return np.asarray((np.abs(sums - measured) <= _ROUNDING * (1.0 + measured)).all(axis=1), dtype=bool)


def count_models(experiment: Experiment) -> CountModels | None:
    """Return the models of counts of an experiment; None if it has none that add up over ranks, or too few points."""
    positive = bool((experiment.points > 0).all())
    if experiment.over_ranks == "max" or experiment.configurations < _FEWEST or not positive:
        return None
    found = CountModels(experiment, "p" if "p" in experiment.parameters else None)
    return found if found.metrics else None
