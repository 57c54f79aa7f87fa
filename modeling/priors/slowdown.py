# SPDX-License-Identifier: Apache-2.0
"""Find where time grows faster than effort, and how.

A call path whose time follows its effort takes the same time per unit of effort at every configuration. For each call
path with a prior (effort, Table I), slowdown is r = time / (time expected from effort). It is examined along every
parameter: r = a + b·g(x), with separate a and b for each line of points in x, and one slowly growing g for all lines. A
significant slowdown gets a cause: MPI waits or is congested, memory and caches are shared, or caches no longer hold the
data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

import numpy as np
from scipy import special

from ..errors import ModelingError
from ..experiment import Experiment, FloatArray, IntArray, RegionKind
from ..mpi_operations import operation_of
from ..pmnf.data.lines import lines
from ..pmnf.model import Factor, Model, Term
from .path_model import PathModel
from .rank_parameters import rank_parameters
from .variances import CommonVariance, common_variance

# Possible growth of slowdown: trees, process grids of two and three dimensions, rings. If several fit equally well, the
# first is selected.
GROWTHS = tuple(
    (Fraction(power), log) for power, log in (("0", 1), ("1/3", 0), ("1/2", 0), ("1", 0), ("2/3", 0), ("0", 2))
)
# Log-likelihood by which a growth must be better than an earlier one. Accepted share of false findings in the program
# (F-tests against no slowdown). Smallest factor by which slowdown must change over the measured range.
_BETTER, _BY_LUCK, _LEAST_CHANGE = 2.0, 0.01, 1.2
# Smallest number of values of a parameter on a line.
LEAST_VALUES = 4
# Number of the largest values on a line that show its slowdown.
_SLOWEST = 2
# Rounds with weights relative to the fit, and the smallest fit as a share of the mean.
_ROUNDS, _LEAST_FIT = 4, 0.02
# Share of the largest value on a line; points with less effort or time do not show the ratio.
_LEAST_VALUE = 1e-6


class Cause(Enum):
    """Cause of time that grows faster than effort."""

    WAITING = "waiting"
    CONTENTION = "contention"
    CACHE = "cache effects"


@dataclass(frozen=True)
class Line:
    """Slowdown along one line of configurations: a + b·g(x) for x from `low` to `high`.

    others: values of the other parameters, in their order. least: the smallest measured slowdown.
    """

    others: tuple[float, ...]
    low: float
    high: float
    least: float
    a: float
    b: float


@dataclass(frozen=True)
class Slowdown:
    """Growth of the time per unit of effort of a call path with one parameter, on every line of configurations.

    parameter: its index. power, log: g(x) = x^power · log2(x)^log. growth: g as text. significance, wait_share: as in
    Finding.
    """

    path: int
    cause: Cause
    parameter: int
    power: Fraction
    log: int
    growth: str
    significance: float
    wait_share: float
    lines: tuple[Line, ...]

    def factors(self, target: tuple[float, ...]) -> tuple[float, float, float]:
        """Return the slowdown at the largest and smallest measured x, and at a point, on the line nearest to it."""
        others = [math.log(max(x, 1e-300)) for column, x in enumerate(target) if column != self.parameter]

        def distance(line: Line) -> float:
            return sum(abs(math.log(max(x, 1e-300)) - y) for x, y in zip(line.others, others, strict=True))

        line = min(self.lines, key=distance)
        places = np.array([line.high, line.low, max(target[self.parameter], line.low)])
        now, first, there = (line.a + line.b * Factor("x", self.power, self.log).evaluate(places)).tolist()
        return now, max(first, 0.5 * line.least), there


def slowdowns(
    experiment: Experiment, models: Sequence[PathModel], least_change_with_ranks: float = _LEAST_CHANGE
) -> list[Slowdown]:
    """Return the call paths of the program whose time grows faster than effort.

    models: of exclusive time, one per call path; values that a model leaves out below its range (one process, another
    branch of the program) are not part of a line. least_change_with_ranks: smallest factor of the change over the
    measured range of a number of ranks. Computation that is simulated by effort has neither caches nor contention.
    Raises ModelingError if there are no times.
    """
    if "time" not in experiment.values:
        raise ModelingError(f"{experiment.name}: contains no times to diagnose; measure without --counts")
    ranks = rank_parameters(experiment)
    measured = experiment.values["time"]
    time = np.full(measured.shape[:2], np.nan)
    known = np.isfinite(measured).any(axis=2)
    time[known] = np.nanmean(np.where(np.isfinite(measured), measured, np.nan)[known], axis=1)
    usable = experiment.dedicated
    time[:, ~usable] = np.nan
    paths, expected = [], []
    for path, entry in enumerate(models):
        from_effort = entry.from_effort
        if isinstance(from_effort, Model) and not entry.is_from_time_alone and not experiment.tree.start_and_end[path]:
            if experiment.exact_times and experiment.tree.region_of(path).kind is not RegionKind.MPI:
                continue
            if from_effort.ranges:
                time[path, (experiment.points < [low for low, _ in from_effort.ranges]).any(axis=1)] = np.nan
            paths.append(path)
            expected.append(np.maximum(from_effort.evaluate(experiment.points), 0.0))
    if not paths:
        return []
    ratios = _ratios(time[paths], np.array(expected))
    found: list[tuple[int, int, int, tuple[Line, ...], float]] = []
    tests = 0
    for column in range(len(experiment.parameters)):
        along = lines(experiment.points, column)
        changes = _changes(ratios, along)
        tested = np.flatnonzero(np.isfinite(changes)).tolist()
        tests += len(tested)
        parts = {row: _Lines.of(experiment.points, column, along, ratios[row]) for row in tested}
        least = np.array([[part.variance, part.freedom] for part in parts.values()]).reshape(-1, 2)
        common = common_variance(least[:, 0], least[:, 1])
        least_change = least_change_with_ranks if experiment.parameters[column] in ranks else _LEAST_CHANGE
        for row in np.flatnonzero(changes >= least_change).tolist():
            fitted = parts[row].growth(common)
            if fitted is not None:
                found.append((paths[row], column, *fitted))
    found.sort(key=lambda one: one[:2])
    false_discoveries = _false_discoveries([one[-1] for one in found], tests)
    result = []
    for (path, column, growth, its_lines, _), by_luck in zip(found, false_discoveries, strict=True):
        if by_luck <= _BY_LUCK:
            name, share = experiment.parameters[column], _wait_share(experiment, path, lines(experiment.points, column))
            cause, text = _cause(experiment, path, name in ranks, share), str(growth_model(name, *GROWTHS[growth]))
            result.append(Slowdown(path, cause, column, *GROWTHS[growth], text, by_luck, share, its_lines))
    return result


def _false_discoveries(chances: list[float], tests: int) -> list[float]:
    """Return for each probability of a false finding the share of false findings at this level, at most 1.

    Source: Benjamini and Hochberg, "Controlling the false discovery rate", J. R. Stat. Soc. B 57 (1995). For the best
    finding, this is the probability that the whole program has a false finding.
    """
    order = np.argsort(chances)
    shares = np.array(chances)[order] * tests / np.arange(1, len(chances) + 1)
    result = np.empty(len(chances))
    result[order] = np.minimum(np.minimum.accumulate(shares[::-1])[::-1], 1.0)
    return result.tolist()


def growth_model(name: str, power: Fraction, log: int) -> Model:
    """Return the growth of slowdown with a parameter, one of `GROWTHS`, as a model."""
    return Model((name,), 0.0, (Term(1.0, (Factor(name, power, log),)),))


def _ratios(time: FloatArray, expected: FloatArray) -> FloatArray:
    """Return time per effort (N, C); NaN where it is undefined."""
    largest = np.nanmax(time, axis=1, keepdims=True, initial=0.0)
    known = np.isfinite(time) & (time > _LEAST_VALUE * largest)
    known &= expected > _LEAST_VALUE * expected.max(axis=1, keepdims=True, initial=0.0)
    ratios: FloatArray = np.where(known, time, np.nan) / np.where(known, expected, 1.0)
    return ratios


def _changes(ratios: FloatArray, along: list[IntArray]) -> FloatArray:
    """Return the change of each ratio (N, C) from the first to the last point of lines, median over the lines.

    NaN if no line has enough points.
    """
    changes = np.full((len(along) + 1, len(ratios)), np.nan)
    rows = np.arange(len(ratios))
    for number, line in enumerate(along):
        part = ratios[:, line]
        known = np.isfinite(part)
        first, last = known.argmax(axis=1), len(line) - 1 - known[:, ::-1].argmax(axis=1)
        change = part[rows, last] / part[rows, first]
        changes[number] = np.where(known.sum(axis=1) >= LEAST_VALUES, change, np.nan)
    result: FloatArray = np.full(len(ratios), np.nan)
    some = np.isfinite(changes).any(axis=0)
    result[some] = np.nanmedian(changes[:, some], axis=0)
    return result


@dataclass(frozen=True, eq=False)
class _Lines:
    """The ratio of one call path on the lines of one parameter with enough points.

    without: the sum of squared relative deviations from a constant.
    """

    others: FloatArray
    places: list[FloatArray]
    values: list[FloatArray]
    without: float
    _fits: dict[int, tuple[FloatArray, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, points: FloatArray, column: int, along: list[IntArray], ratio: FloatArray) -> _Lines:
        """Return the lines of a parameter with a ratio (C,), NaN where unknown."""
        usable = [line[np.isfinite(ratio[line])] for line in along]
        usable = [line for line in usable if line.size >= LEAST_VALUES]
        values = [ratio[line] for line in usable]
        places = [points[line, column] for line in usable]
        without = sum(float(((r / r.mean() - 1.0) ** 2).sum()) for r in values)
        others = np.delete(points, column, axis=1)[[line[0] for line in usable]]
        return cls(others, places, values, without)

    def fit(self, growth: int) -> tuple[FloatArray, float]:
        """Return the coefficients (L, 2) of a growth, and the sum of squared relative deviations from it."""
        if growth not in self._fits:
            coefficients, squares = _fit(self.places, self.values, growth)
            self._fits[growth] = coefficients, max(squares, 1e-18 * sum(map(len, self.values)))
        return self._fits[growth]

    @property
    def freedom(self) -> float:
        """Return the degrees of freedom after the fit of a growth."""
        return float(sum(map(len, self.values)) - 2 * len(self.values))

    @property
    def variance(self) -> float:
        """Return the relative variance around the first growth; around the best growth it would be too small."""
        return self.fit(0)[1] / self.freedom

    def _alike(self, growth: int, common: CommonVariance) -> float:
        """Return the probability of such a growth on all lines without slowdown, relative to means."""
        parts = [r / r.mean() - 1.0 for r in self.values]
        steps = [Factor("x", *GROWTHS[growth]).evaluate(x) for x in self.places]
        steps = [g - g.mean() for g in steps]
        squares = sum(float((g**2).sum()) for g in steps)
        along = sum(float(g @ part) for g, part in zip(steps, parts, strict=True))
        explained, own = along**2 / squares, self.freedom + len(self.values) - 1.0
        variance, freedom = common.moderated(max(self.without - explained, 0.0) / own, own)
        return float(special.fdtrc(1, freedom, explained / variance)) if variance > 0.0 else 0.0

    def growth(self, common: CommonVariance) -> tuple[int, tuple[Line, ...], float] | None:
        """Return the growth of the ratio: index, lines, and probability without slowdown; None if not on most lines."""
        known, count = common.freedom * common.variance, common.freedom + sum(map(len, self.values))
        best = 0
        for growth in range(1, len(GROWTHS)):
            if 0.5 * count * math.log((known + self.fit(best)[1]) / (known + self.fit(growth)[1])) > _BETTER:
                best = growth
        coefficients, squares = self.fit(best)
        if float(np.mean(coefficients[:, 1] > 0)) < 0.75:
            return None
        variance, freedom = common.moderated(squares / self.freedom, self.freedom)
        statistic = (self.without - squares) / len(self.values) / variance
        apart = float(special.fdtrc(len(self.values), freedom, max(statistic, 0.0)))
        significance = 2.0 * min(apart, self._alike(best, common))
        found = [
            Line(tuple(others), float(x.min()), float(x.max()), float(r.min()), float(a), float(b))
            for others, x, r, (a, b) in zip(
                self.others.tolist(), self.places, self.values, coefficients.tolist(), strict=True
            )
        ]
        return best, tuple(found), significance


def _fit(places: list[FloatArray], values: list[FloatArray], growth: int) -> tuple[FloatArray, float]:
    """Return (a, b) of every line, and the sum of squared deviations relative to the fit.

    Noise is multiplicative, so the least squares are reweighted with the fit.
    """
    result, total = [], 0.0
    for x, r in zip(places, values, strict=True):
        design = np.stack([np.ones_like(x), Factor("x", *GROWTHS[growth]).evaluate(x)], axis=1)
        fitted = np.full_like(r, r.mean())
        for _ in range(_ROUNDS):
            weights = 1.0 / np.maximum(fitted, _LEAST_FIT * r.mean())
            coefficients, *_ = np.linalg.lstsq(design * weights[:, None], r * weights, rcond=None)
            fitted = design @ coefficients
        total += float((((r - fitted) / np.maximum(fitted, _LEAST_FIT * r.mean())) ** 2).sum())
        result.append(coefficients)
    return np.array(result), total


def _wait_share(experiment: Experiment, path: int, along: list[IntArray]) -> float:
    """Return the share of waiting in the time where the slowdown along lines is largest; NaN if not measured.

    Uses the median over the upper ends of the lines, so that one odd run has no effect. Waiting is only measured in
    some operations (docs/design/mpi-waiting.md). An operation without any waiting was not measured.
    """
    waits, times = experiment.values.get("wait_time"), experiment.values["time"][path]
    if waits is None or not np.nan_to_num(waits[path]).any():
        return math.nan
    known = np.isfinite(times) & (np.nan_to_num(times) > 0.0) & np.isfinite(waits[path])
    known &= experiment.dedicated[:, None]
    shares = np.where(known, waits[path], np.nan) / np.where(known, times, 1.0)
    there = [line[known[line].any(axis=1)] for line in along]
    ends = [shares[line[-_SLOWEST:]].ravel() for line in there if line.size >= LEAST_VALUES]
    found = np.concatenate(ends) if ends else np.empty(0)
    return float(np.nanmedian(found)) if found.size else math.nan


def _cause(experiment: Experiment, path: int, by_ranks: bool, wait_share: float) -> Cause:
    """Return the cause: operations that may wait do wait, unless measurements show that they do not.

    Programs that poll (MPI_Test, MPI_Iprobe) wait, too: no single call waits, but all unsuccessful calls together do.
    """
    region = experiment.tree.region_of(path)
    if region.kind is not RegionKind.MPI:
        return Cause.CONTENTION if by_ranks else Cause.CACHE
    operation = operation_of(region.name)
    if math.isfinite(wait_share):
        waits = wait_share >= 0.5
    else:
        waits = operation is None or operation.waits_for_others or operation.polls
    return Cause.WAITING if waits else Cause.CONTENTION
