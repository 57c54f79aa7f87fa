# SPDX-License-Identifier: Apache-2.0
"""Predict the counts (effort and communication) of each call path of an experiment from the laws of its vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..class_vectors import Place
from ..experiment import Experiment, FloatArray, mean_over_repetitions
from ..pmnf.model import Prediction
from ..pmnf.model.text import plain
from ..process_grid import ProcessGrid
from .deciding import Deciding, deciding
from .formulas import NotConvertible, form_of
from .laws import Terms, formula
from .products import EXACT
from .program import Model, fit
from .unvaried import EXPONENT_DEVIATION, distance
from .vectors import Vectors, vectors_of

_FEWEST = 3  # smallest number of configurations for models of counts
_LOWEST, _MIDDLE, _HIGHEST = 0.05, 0.5, 0.95  # levels of quantiles
_NORMAL = 1.645  # half-width of the 90 % interval of a normal distribution (standard deviations)
_WORK = ("instructions", "blocks", "visits")  # metrics of the work of a run; the first that was measured is used


@dataclass(frozen=True, eq=False)
class Loop:
    """A class of basic blocks of a call path that are executed equally often, such as a loop body.

    - path: number of the call path. place: place of the class in the source.
    - each: value of the metric per execution.
    - model: the model of the number of executions, summed over the ranks.
    """

    path: int
    place: Place
    each: float
    model: Model


@dataclass(eq=False)
class CountModels:
    """The models of all counts of an experiment. The first access to a model fits all models.

    ranks: name of the parameter that is the number of ranks; None if there is none, or if it does not vary.
    """

    experiment: Experiment
    ranks: str | None

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the metrics that are counts and are summed over locations."""
        known, values = self.experiment.metrics.items(), self.experiment.values
        return tuple(
            name for name, metric in known if metric.is_effort and metric.over_locations == "sum" and name in values
        )

    @cached_property
    def _vectors(self) -> Vectors:
        return vectors_of(self.experiment, self.metrics, self._ranks_of(self.experiment.points))

    @cached_property
    def _found(self) -> list[Model]:
        """Return the models of all vectors. Vectors with the same measured configurations are fitted together."""
        vectors, found = self._vectors, dict[int, Model]()
        groups: dict[bytes, list[int]] = {}
        for number in range(len(vectors.counts)):
            there = vectors.measured.get(number)
            groups.setdefault(b"" if there is None else there.tobytes(), []).append(number)
        for numbers in groups.values():
            found |= zip(numbers, self._fitted(numbers), strict=True)
        return [found[number] for number in range(len(vectors.counts))]

    def _fitted(self, numbers: Sequence[int]) -> list[Model]:
        """Return the models of the vectors with these numbers, which were measured at the same configurations."""
        experiment, vectors = self.experiment, self._vectors
        there = vectors.measured.get(numbers[0], np.ones(len(experiment.points), dtype=bool))
        if not there.any():  # a vector without measurements is 0 everywhere, so all configurations can be used
            there = ~there
        place = {number: row for row, number in enumerate(numbers)}
        return fit(
            experiment.points[there],
            list(experiment.parameters),
            [vectors.counts[number][there] for number in numbers],
            self.ranks,
            experiment.grids,
            [[place[other] for other in vectors.within[number] if other in place] for number in numbers],
            {place[number]: vectors.runs[number][there] for number in numbers if number in vectors.runs},
        )

    @cached_property
    def models(self) -> dict[str, list[Model]]:
        """Return by metric the models of the sums over the ranks, one per call path."""
        found = self._found
        if not found:
            return {name: [] for name in self.metrics}
        nothing = Model(found[0].program, ())
        return {
            name: [
                Model.total((each, found[number]) for each, number in parts) if parts else nothing for parts in of_paths
            ]
            for name, of_paths in self._vectors.parts.items()
        }

    def problem(self, metric: str, path: int) -> str | None:
        """Return why the counts of a call path cannot be modeled; None if they can."""
        return self._vectors.unusable[metric].get(path)

    def loops(self, metric: str) -> list[Loop]:
        """Return the loops that contribute to a metric; [] if the classes of basic blocks were not counted.

        Loops of one call path with the same place and the same law are merged.
        """
        classes = self._vectors.classes
        if classes is None or metric not in classes.effort:
            return []
        together: dict[tuple[object, ...], Loop] = {}
        rows = zip(classes.callpath.tolist(), classes.places, classes.effort[metric].tolist(), strict=True)
        for (path, place, each), model in zip(rows, self._found, strict=False):
            if each and model.parts:
                key = (path, place, model.parts)
                known = together.get(key)
                together[key] = Loop(path, place, each + (known.each if known else 0.0), model)
        return list(together.values())

    def predict(self, point: Mapping[str, float], metric: str) -> tuple[Prediction, ...]:
        """Return the prediction of a metric for each call path, combined over ranks as in the experiment.

        The value is the weighted median of the laws, and the interval contains 90 % of their weight. The interval is
        wider if the point differs from the measured points in a direction in which no configuration changed
        (unvaried.py).
        """
        place = [float(point[name]) for name in self.experiment.parameters]
        share = 1.0 / float(self._ranks_of(np.array([place]))[0])
        low, high = self.experiment.points.min(axis=0), self.experiment.points.max(axis=0)
        beyond = bool((np.array(place) < low).any() or (np.array(place) > high).any())
        wider = math.exp(_NORMAL * EXPONENT_DEVIATION * distance(self.experiment.points, place))
        result = []
        for model in self.models[metric]:
            known = model.at(place)
            lower, middle, upper = (share * max(_whole(known.quantile(q)), 0.0) for q in (_LOWEST, _MIDDLE, _HIGHEST))
            result.append(Prediction(middle, lower / wider, upper * wider, beyond))
        return tuple(result)

    def deciding(self, point: Mapping[str, float], metric: str) -> Deciding | None:
        """Return the run that distinguishes the laws of a metric that disagree at a point; None if the laws agree.

        The counts of the laws in the result are combined over ranks as in the experiment.
        """
        names = list(self.experiment.parameters)
        place = tuple(float(point[name]) for name in names)
        work = next((name for name in _WORK if name in self.models), metric)
        ranks = None if self.ranks is None else names.index(self.ranks)
        found = deciding(self.models[metric], self.models[work], self.experiment.points, place, ranks, self._written)
        if found is None:
            return None
        share = 1.0 / float(self._ranks_of(np.array([place]))[0])
        first, second = ((share * value, law) for value, law in found.laws)
        return replace(found, laws=(first, second))

    def is_exact(self, metric: str, path: int) -> bool:
        """Return whether the likeliest law of a call path reproduces all counts."""
        return self.models[metric][path].exact

    def can_confirm(self, metric: str, path: int, terms: int) -> bool:
        """Return whether enough counts of a call path confirm a formula with `terms` coefficients.

        terms: number of terms, plus 1 for a constant. A formula with two or more coefficients needs at least two more
        different counts above 0 than coefficients. A formula with one coefficient is always confirmed.
        """
        values = mean_over_repetitions(self.experiment.values[metric][path])
        return terms < 2 or np.unique(values[values > 0]).size > terms + 1

    def text(self, metric: str, path: int) -> str:
        """Return the likeliest law of a call path as a formula, combined over ranks as in the experiment."""
        model = self.models[metric][path]
        return self._written(model.terms, model.program.leading(model.parts).grid)

    @property
    def per_rank(self) -> bool:
        """Return whether the values are means over a varying number of ranks. Laws are then divided by this number."""
        return self.experiment.over_ranks == "mean" and self.ranks is not None

    def _written(self, law: Terms, grid: ProcessGrid | None) -> str:
        """Return a law as a formula, divided by the number of ranks if the values are means.

        If a model cannot contain the law, the formula describes the sum over the ranks instead.
        """
        try:
            return plain(*form_of(law, self.experiment.parameters, grid, self.per_rank))
        except NotConvertible:
            return formula(law)

    def _ranks_of(self, points: FloatArray) -> FloatArray:
        """Return for each point the factor from the value in the experiment to the sum over the ranks."""
        if self.ranks is None or not self.per_rank:
            return np.ones(len(points))
        return np.asarray(points[:, list(self.experiment.parameters).index(self.ranks)], dtype=np.float64)


def _whole(count: float) -> float:
    """Return a count without the rounding error of a whole number; NaN if the count is not finite."""
    if not math.isfinite(count):
        return math.nan
    near = round(count)
    return float(near) if abs(count - near) <= EXACT * abs(near) else count


def count_models(experiment: Experiment) -> CountModels | None:
    """Return the models of the counts of an experiment.

    Returns None if the values are maxima over the ranks, if there are fewer than _FEWEST configurations or no counts,
    or if a parameter has a value of 0 or less.
    """
    positive = bool((experiment.points > 0).all())
    if experiment.over_ranks == "max" or experiment.configurations < _FEWEST or not positive:
        return None
    names = list(experiment.parameters)
    varies = "p" in names and bool(np.ptp(experiment.points[:, names.index("p")]))
    found = CountModels(experiment, "p" if varies else None)
    return found if found.metrics else None
