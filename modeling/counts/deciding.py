# SPDX-License-Identifier: Apache-2.0
"""Recommend a further run if the laws (formulas) of a count disagree at a target.

The laws reproduce the measured counts, but predict different counts at the target. The recommended run is a smaller
configuration at which the laws predict different counts, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..process_grid import ProcessGrid
from ..rank_numbers import rank_counts
from .distribution import Floats
from .laws import Case, Place, Terms, formula
from .program import Model, Program

Point = tuple[float, ...]

# Spread: expected distance of the laws from their mean at the target, as a part of the total count.
_DISAGREE = 0.01  # no run is recommended up to this spread; two laws differ if they differ by more than this part
_DECIDES = 0.5  # a recommended run reduces the spread to this part or less
_NEARLY = 0.1  # a run with less work is preferred if it leaves at most this part of the spread more than the best run
_MOST_WORK = 0.5  # largest work of a run, as a part of the work at the target
_MOST_VECTORS, _MOST_POINTS = 12, 60  # largest number of vectors, and of candidates for the run
_TERMS = 3  # largest number of terms of a law in the result
_ROUNDING = 1e-6  # smallest relative difference of counts that a run can distinguish


@dataclass(frozen=True)
class Deciding:
    """Laws that disagree at a target, and the run that distinguishes them.

    - path: number of the call path with the largest multiple of the vector whose laws disagree most.
    - laws: the likeliest law of this vector, and the likeliest law that differs from it at the target. Each is a pair:
      the count at the target (summed over the ranks), and the formula.
    - apart: expected distance of the laws of all call paths from their mean at the target, as a part of the total.
    - point: the recommended configuration; None if no run with at most half of the work at the target is good enough.
    - work: work of the run, as a part of the work at the target; 0 without a run.
    """

    path: int
    laws: tuple[tuple[float, str], tuple[float, str]]
    apart: float
    point: Point | None
    work: float


def deciding(
    models: Sequence[Model],
    work: Sequence[Model],
    points: Floats,
    target: Point,
    ranks: int | None,
    written: Callable[[Terms, ProcessGrid | None], str] = lambda law, grid: formula(law),
) -> Deciding | None:
    """Return the run that distinguishes the laws of a metric at a target; None if the laws agree.

    - models: the models of the metric, one per call path.
    - work: the models of the effort by which the work of a run is measured, one per call path.
    - points: the measured configurations, shape (configurations, parameters).
    - target: one value per parameter.
    - ranks: index of the parameter that is the number of ranks; None if there is none.
    - written: function that returns a law under a process grid as a formula.
    """
    program = models[0].program
    total = Model.total((1.0, model) for model in models)
    value = total.at(target).quantile(0.5)
    open_keys = sorted(
        ((_width(program, key, factor, target), key, factor) for key, factor in total.parts), reverse=True
    )
    open_keys = [entry for entry in open_keys if entry[0] > 0][:_MOST_VECTORS]
    if not open_keys or value <= 0:
        return None
    candidates = _candidates(points, target, ranks)
    places = [*candidates, target]
    cases = {key: _cases(program, key) for _, key, _ in open_keys}
    tables = {key: _table(program, key, cases[key], places) for key in cases}
    before = {key: factor * _spread(*tables[key]) for _, key, factor in open_keys}
    apart = sum(before.values()) / value
    if apart <= _DISAGREE:
        return None
    key = max(before, key=lambda entry: before[entry])
    paths = {path: dict(model.parts)[key] for path, model in enumerate(models) if key in dict(model.parts)}
    path = max(paths, key=lambda entry: paths[entry])
    apart_laws = _furthest(cases[key], tables[key], paths[path])
    if apart_laws is None:
        return None
    (first, one), (second, other) = apart_laws
    laws = (first, _shown(program, one, written)), (second, _shown(program, other, written))
    effort = Model.total((1.0, model) for model in work)
    whole = effort.at(target).quantile(0.5)
    left = []
    for number, point in enumerate(candidates):
        share = effort.at(point).quantile(0.5) / whole if whole > 0 else 1.0
        if share <= _MOST_WORK:
            after = sum(part * _left(cases[k], *tables[k], number) for _, k, part in open_keys)
            left.append((after / value / apart, share, point))
    best = min(left, default=None)
    if best is None or best[0] > _DECIDES:
        return Deciding(path, laws, apart, None, 0.0)
    _, share, point = min((entry for entry in left if entry[0] <= best[0] + _NEARLY), key=lambda entry: entry[1])
    return Deciding(path, laws, apart, point, share)


def _width(program: Program, key: bytes, factor: float, target: Point) -> float:
    known = program.predict(((key, factor),), target)
    return known.quantile(0.95) - known.quantile(0.05)


def _candidates(points: Floats, target: Point, ranks: int | None) -> list[Point]:
    """Return the configurations of possible runs, the smallest first, at most _MOST_POINTS.

    The values of a parameter are its measured values, and further values up to the value at the target. Only the
    number of ranks and one other parameter have all these values (without a number of ranks: two parameters). Other
    parameters have their smallest value and the value at the target.
    """
    columns = []
    for number, wanted in enumerate(target):
        known = sorted(set(points[:, number].tolist()))
        more = [float(value) for value in rank_counts(known, wanted)] if number == ranks else _further(known, wanted)
        columns.append([*known, *(value for value in more if value not in known)])
    order = sorted(range(len(columns)), key=lambda number: number != ranks)
    for number in order[2:]:
        columns[number] = sorted({columns[number][0], target[number]})
    measured = {tuple(point) for point in points.tolist()} | {target}
    every = [point for point in itertools.product(*columns) if point not in measured]
    low = points.min(axis=0)
    return sorted(every, key=lambda point: float(np.log(np.array(point) / low).sum()))[:_MOST_POINTS]


def _further(known: Sequence[float], wanted: float) -> list[float]:
    """Return the largest value of `known` times 2, 4, 8 …, as long as it is below `wanted`, and then `wanted`."""
    found, value = [], 2 * known[-1]
    while value < wanted:
        found.append(value)
        value *= 2
    return [*found, wanted]


def _cases(program: Program, key: bytes) -> list[tuple[int, Case]]:
    """Return the laws of a vector under all process grids, as pairs (number of the grid, law). Weights sum to 1."""
    shares = program.shares(((key, 1.0),))
    total = sum(share for _, share in shares)
    return [
        (number, case.scaled(1.0, share / total))
        for number, share in shares
        for case in program.grids[number].laws[key].each()
    ]


def _table(
    program: Program, key: bytes, cases: Sequence[tuple[int, Case]], points: Sequence[Point]
) -> tuple[Floats, Floats]:
    """Return the weights (cases,) of laws, and their predictions (cases, points)."""
    places: Mapping[int, list[Place]] = {
        number: [program.grids[number].place(point) for point in points] for number in {number for number, _ in cases}
    }
    values = np.array([[case.value(place) for place in places[number]] for number, case in cases])
    return np.array([case.weight for _, case in cases]), values


def _spread(weights: Floats, values: Floats) -> float:
    """Return the expected distance of laws from their mean at the last point. Arguments: the results of `_table`."""
    last = values[:, -1]
    return float(weights @ np.abs(last - weights @ last / weights.sum()))


def _left(cases: Sequence[tuple[int, Case]], weights: Floats, values: Floats, number: int) -> float:
    """Return the expected distance of the laws at the last point from their mean after a run at point `number`.

    The laws form groups that predict equal counts for the run, up to the errors of the laws. The run excludes all
    groups but one. The result is the sum of the distances within each group.
    """
    noise = np.array([max(case.noise, _ROUNDING) for _, case in cases])
    order = np.argsort(values[:, number], kind="stable")
    there, near = values[order, number], noise[order]
    gaps = np.diff(there) > np.maximum(near[1:], near[:-1]) * np.maximum(np.abs(there[1:]), 1.0)
    group = np.append(0, np.cumsum(gaps))
    return sum(_spread(weights[own], values[own]) for own in (order[group == k] for k in range(int(group[-1]) + 1)))


def _furthest(
    cases: Sequence[tuple[int, Case]], table: tuple[Floats, Floats], factor: float
) -> tuple[tuple[float, tuple[int, Case]], tuple[float, tuple[int, Case]]] | None:
    """Return the likeliest law, and the likeliest law that differs from it at the last point.

    Each result is a pair: the count at the last point times `factor`, and the law with the number of its grid. The
    result is None if no law differs.
    """
    weights, values = table
    last = values[:, -1] * factor
    first, *others = np.argsort(-weights, kind="stable").tolist()
    apart = [k for k in others if abs(last[k] - last[first]) > _DISAGREE * max(abs(last[first]), 1.0)]
    if not apart:
        return None

    def law(k: int) -> tuple[float, tuple[int, Case]]:
        number, case = cases[k]
        return float(last[k]), (number, case.scaled(factor))

    return law(first), law(apart[0])


def _shown(program: Program, law: tuple[int, Case], written: Callable[[Terms, ProcessGrid | None], str]) -> str:
    """Return the first terms of a law as a formula. law: pair (number of the process grid, law)."""
    number, case = law
    return written(case.terms[:_TERMS], program.grids[number].grid) + " + …" * (len(case.terms) > _TERMS)
