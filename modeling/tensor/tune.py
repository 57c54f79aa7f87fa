# SPDX-License-Identifier: Apache-2.0
"""Find the configuration with the lowest predicted time among combinations of values of the parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..design.space import Constraint
from ..errors import ModelingError
from ..experiment import FloatArray
from ..progress import steps
from .columns import ColumnModel, hidden_pairs, measured_values, parameter_number

MOST_COMBINATIONS = 200_000
"""Up to this number, all combinations are evaluated. Otherwise, this number of random combinations is evaluated, and
the best ones are improved by changing one parameter at a time."""
KEPT = 50
"""Number of best configurations that are kept during the search."""
CHECKED = 2000
"""Number of combinations whose constraints are checked between two reports of progress."""


@dataclass(frozen=True)
class Choice:
    """A configuration with its predicted time and the 90 % interval, low .. high.

    values: by parameter, texts for categories. extrapolated: parameters outside of the measured values. hidden: pairs
    "a*b" of parameters whose combination of values was not measured.
    """

    values: Mapping[str, float | str]
    time: float
    low: float
    high: float
    extrapolated: tuple[str, ...]
    hidden: tuple[str, ...] = ()


def best_configurations(
    model: ColumnModel,
    given: Mapping[str, float],
    candidates: Mapping[str, Sequence[float]],
    constraints: Sequence[str] = (),
    count: int = 5,
    seed: int = 0,
) -> list[Choice]:
    """Return the `count` configurations with the lowest predicted times, the best first.

    given: values of fixed parameters, codes of texts. candidates: values of other parameters; default: the measured
    values. constraints: expressions such as "ppn * tpp <= 128" (see `Constraint`) that configurations must fulfil.
    Raises ModelingError for an unknown parameter, a wrong constraint, or if no configuration fulfils the constraints.
    """
    for name in (*given, *candidates):
        parameter_number(model, name)
    values = [
        np.array([given[name]]) if name in given else np.asarray(candidates.get(name, measured_values(model, name)))
        for name in model.parameters
    ]
    predicates = [Constraint(text, model.parameters, model.levels) for text in constraints]
    size = float(np.prod([float(len(value)) for value in values]))
    random = np.random.default_rng(seed)
    if size <= MOST_COMBINATIONS:
        points = np.stack([part.ravel() for part in np.meshgrid(*values, indexing="ij")], axis=1)
    else:
        points = np.column_stack([random.choice(value, MOST_COMBINATIONS) for value in values])
    best = _fastest(model, points, predicates)
    if not len(best):
        raise ModelingError(f"no configuration fulfils {' and '.join(constraints)}: allow more values or relax them")
    if size > MOST_COMBINATIONS:
        best = _improved(model, best, values, predicates)
    return _choices(model, best[:count])


def _improved(
    model: ColumnModel, best: FloatArray, values: Sequence[FloatArray], predicates: Sequence[Constraint]
) -> FloatArray:
    """Return the fastest points after changes of one parameter at a time, repeated as long as the fastest improves."""
    lowest = np.inf
    while (now := float(model.model.predict(best[:1])[0])) < lowest:
        lowest = now
        changed = [best]
        for number, value in enumerate(values):
            part = np.repeat(best, len(value), axis=0)
            part[:, number] = np.tile(value, len(best))
            changed.append(part)
        best = _fastest(model, np.unique(np.concatenate(changed), axis=0), predicates)
    return best


def _fastest(model: ColumnModel, points: FloatArray, predicates: Sequence[Constraint]) -> FloatArray:
    """Return the fastest points that fulfil all predicates, at most `KEPT`, the fastest first.

    Points with unmeasured combinations of values are returned only if no other point fulfils the predicates.
    """
    found: list[int] = []
    hidden: list[int] = []
    order = np.argsort(model.model.predict(points), kind="stable")
    for begin in steps("configurations", range(0, len(order), CHECKED)):
        part = order[begin : begin + CHECKED]
        flags = [bool(pairs.any()) for pairs in model.model.hidden(points[part])]
        for row, unsupported in zip(part.tolist(), flags, strict=True):
            values = dict(zip(model.parameters, points[row].tolist(), strict=True))
            if len(found) < KEPT and all(predicate(values) for predicate in predicates):
                (hidden if unsupported else found).append(row)
        if len(found) == KEPT:
            break
    return points[found or hidden[:KEPT]]


def _choices(model: ColumnModel, points: FloatArray) -> list[Choice]:
    times, low, high = model.model.predict_interval(points)
    outside, hidden = model.model.extrapolated(points), hidden_pairs(model, points)
    result = []
    for row, point in enumerate(points):
        values = {name: _label(model, name, value) for name, value in zip(model.parameters, point, strict=True)}
        names = tuple(name for at, name in enumerate(model.parameters) if outside[row, at])
        result.append(Choice(values, float(times[row]), float(low[row]), float(high[row]), names, tuple(hidden[row])))
    return result


def _label(model: ColumnModel, name: str, value: float) -> float | str:
    levels = model.levels.get(name)
    return float(value) if levels is None or not 0 <= value < len(levels) else levels[int(value)]
