# SPDX-License-Identifier: Apache-2.0
"""Which further run tells apart the laws that disagree at a target."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..rank_numbers import rank_counts
from .distribution import Floats
from .laws import Case, Place, formula
from .program import Model, Program

Point = tuple[float, ...]

_DISAGREE = 0.01  # of the total at the target: laws that are less apart agree
_DECIDES = 0.5  # of how far laws are apart: a run that leaves more decides nothing
_NEARLY = 0.1  # the same: of runs that leave so much more than the best, the one with the least work is taken
_MOST_WORK = 0.5  # of the work at the target
_MOST_VECTORS, _MOST_POINTS = 12, 60
_TERMS = 3  # of a formula that are shown
_ROUNDING = 1e-6  # relative difference of counts that a run tells apart


@dataclass(frozen=True)
class Deciding:
    """Laws that disagree at a target, and the run that tells them apart.

    path: the call path whose laws are apart most; laws: the likeliest one and the next that is apart from it, by its
    count at the target, summed over the ranks, and its formula. apart: expected difference from the mean of the laws,
    of the total. point: of the run, None if none with less work decides; work: of it, as a share of that at the target.
    """

    path: int
    laws: tuple[tuple[float, str], tuple[float, str]]
    apart: float
    point: Point | None
    work: float


def deciding(
    models: Sequence[Model], work: Sequence[Model], points: Floats, target: Point, ranks: int | None
) -> Deciding | None:
    """Return what decides between the laws of counts of call paths; None if they agree.

    models: of a metric, per call path; work: of the effort, per call path; points: (configurations, parameters) that
    were measured; ranks: the parameter that is the number of ranks.
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
    laws = _furthest(cases[key], tables[key], paths[path])
    if laws is None:
        return None
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
    """Return configurations that were not measured: measured values, and those that continue them up to the target.

    If there are many, other parameters than the first two have their smallest value or that of the target.
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
    """Return values of a size between the largest measured one and that of the target, each twice the one before."""
    found, value = [], 2 * known[-1]
    while value < wanted:
        found.append(value)
        value *= 2
    return [*found, wanted]


def _cases(program: Program, key: bytes) -> list[tuple[int, Case]]:
    """Return the laws of a vector under all grids, each with the number of its grid; weights are 1 together."""
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
    """Return the weights of laws (cases,), and what they predict (cases, points)."""
    places: Mapping[int, list[Place]] = {
        number: [program.grids[number].place(point) for point in points] for number in {number for number, _ in cases}
    }
    values = np.array([[case.value(place) for place in places[number]] for number, case in cases])
    return np.array([case.weight for _, case in cases]), values


def _spread(weights: Floats, values: Floats) -> float:
    """Return how far laws are from their mean at the last of the points, on average."""
    last = values[:, -1]
    return float(weights @ np.abs(last - weights @ last / weights.sum()))


def _left(cases: Sequence[tuple[int, Case]], weights: Floats, values: Floats, number: int) -> float:
    """Return how far laws would be apart if it were known what they predict at one of the points."""
    noise = np.array([max(case.noise, _ROUNDING) for _, case in cases])
    order = np.argsort(values[:, number], kind="stable")
    there, near = values[order, number], noise[order]
    gaps = np.diff(there) > np.maximum(near[1:], near[:-1]) * np.maximum(np.abs(there[1:]), 1.0)
    group = np.append(0, np.cumsum(gaps))
    return sum(_spread(weights[own], values[own]) for own in (order[group == k] for k in range(int(group[-1]) + 1)))


def _furthest(
    cases: Sequence[tuple[int, Case]], table: tuple[Floats, Floats], factor: float
) -> tuple[tuple[float, str], tuple[float, str]] | None:
    """Return the likeliest law and the likeliest one that is apart from it at the last point; None without one."""
    weights, values = table
    last = values[:, -1] * factor
    first, *others = np.argsort(-weights, kind="stable").tolist()
    apart = [k for k in others if abs(last[k] - last[first]) > _DISAGREE * max(abs(last[first]), 1.0)]
    if not apart:
        return None

    def law(k: int) -> tuple[float, str]:
        terms = cases[k][1].scaled(factor).terms
        return float(last[k]), formula(terms[:_TERMS]) + " + …" * (len(terms) > _TERMS)

    return law(first), law(apart[0])
