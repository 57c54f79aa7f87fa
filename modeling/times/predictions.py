# SPDX-License-Identifier: Apache-2.0
"""Predict time at a point: amount of work × time per unit of work.

The laws of counts predict the amounts of work, calls and bytes at the point. The measured times determine:

- for computation, the kind of work that the time follows (instructions, or bytes and visits), and the time per unit of
  this work, as a function of the amount of work and of the number of ranks that share a memory (`rates`),
- for MPI, the time per call, step and byte, and the waiting (`communication`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from statistics import NormalDist
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..counts.distribution import Distribution
from ..counts.predictions import CountModels
from ..experiment import Experiment, FloatArray, RegionKind, mean_over_repetitions
from ..pmnf.model import Prediction
from ..priors.dedicated import dedicated_times
from ..priors.path_model import PathModel
from ..priors.slowdown import LEAST_VALUES
from ..priors.untimed import timed_owners, with_times_at_callers
from .communication import Transfer, table_amounts, transfers
from .counted import predicted, predicted_counts
from .rates import INSTRUCTION, KINDS, NOISES, Rate, Work, rates

_LEAST_SHARE = 5e-4  # call paths below this share of the time of the program are not used to estimate the noise
_ROUNDS = 30  # number of iterations of `_how_often`
_FEWEST = 3  # smallest number of configurations for models of time
_QUANTILES = np.array([NormalDist().inv_cdf((level + 0.5) / 21) for level in range(21)])
_RANGE = (0.15, 0.7, 0.15)  # weights of the lower end, the value and the upper end of a predicted amount of work
_LOWEST, _HIGHEST = 0.05, 0.95
_COUNTED = ("instructions", "visits", "bytes_loaded", "bytes_stored")
_EXCHANGED = ("visits", "bytes_sent", "bytes_received", "comm_size")
# The kinds of work: each is a sum of the counts in _COUNTED with these coefficients.
_BYTES = "bytes"
_KINDS = {"instructions": (1.0, 1.0, 0.0, 0.0), _BYTES: (0.0, 1.0, 1.0, 1.0)}


_EXPLAINED = "time by instructions and memory"


class Explained(Protocol):
    """The time of the instructions and memory accesses of a call path, computed from a description of the machine."""

    @property
    def measured(self) -> FloatArray:
        """Return the seconds at the configurations, shape (configurations,)."""

    def at(self, point: Mapping[str, float]) -> Prediction:
        """Return the seconds at a point."""


@dataclass(frozen=True, eq=False)
class TimeModels:
    """The rates of the call paths of a tree.

    places: for each call path of the tree that the runs with times contain, its number in these runs.
    """

    learned: Rates
    places: Mapping[int, int]

    def predict(self, point: Mapping[str, float]) -> dict[int, Prediction]:
        """Return the times (seconds) of the call paths with rates at a point, with 90 % intervals."""
        known = self.learned.predict(point)
        return {path: known[own] for path, own in self.places.items() if own in known}

    def text(self, path: int) -> str:
        """Return the likeliest rate of a call path: "0.12 ns · instructions"; "" if it has none."""
        own = self.places.get(path)
        return "" if own is None else self.learned.text(own)

    def at_paths(self, paths: Sequence[int]) -> TimeModels:
        """Return these models for a tree that consists of these call paths, in this order."""
        return TimeModels(
            self.learned, {new: self.places[path] for new, path in enumerate(paths) if path in self.places}
        )


@dataclass(eq=False)
class Rates:
    """The rates of an experiment. The first use fits them.

    - experiment: the runs with times, changed by `with_times_at_callers`: a call path has times in all runs or in none.
    - counts: laws of the counts of all runs.
    - formulas: by metric, the models of the counts, one per call path of the tree of `counts`.
    - paths: for each call path of `experiment`, its number in the tree of `counts`, shape (call paths,).
    - explained: for some call paths, the time that a description of the machine explains. This time takes the place of
      the work of the call path.
    - alone: whether only the call paths in `explained` have rates.
    """

    experiment: Experiment
    counts: CountModels
    formulas: Mapping[str, Sequence[PathModel]]
    paths: NDArray[np.int64]
    explained: Mapping[int, Explained] = field(default_factory=dict)
    alone: bool = False

    @cached_property
    def rates(self) -> dict[int, list[Rate]]:
        """Return the posteriors of the rates of call paths that compute, one for each noise level, work and kind."""
        times, _ = dedicated_times(self.experiment, "time")
        seconds = np.nan_to_num(mean_over_repetitions(times))
        whole = seconds[~self.experiment.tree.start_and_end].sum(axis=0)
        share = np.divide(seconds, whole, out=np.zeros_like(seconds), where=whole > 0).max(axis=1)
        works = {path: self._works(path) for path in self._computing}
        loud = [path for path in works if share[path] >= _LEAST_SHARE]
        fits = {path: dict(enumerate(self._fit(times[path], works[path], noise) for noise in NOISES)) for path in loud}
        fits = {path: own for path, own in fits.items() if own[0]}
        how_often = _how_often([[_evidence(found) for found in own.values()] for own in fits.values()])
        usual = int(np.argmax(how_often.sum(axis=1)))
        result = {}
        for path, work in works.items():
            own = fits.get(path) or {usual: self._fit(times[path], work, NOISES[usual])}
            known = [
                replace(rate, ln_weight=rate.ln_weight + float(np.log(how_often[level, rate.kind])))
                for level, found in own.items()
                for rate in found
            ]
            if known:
                result[path] = known
        return result

    @cached_property
    def transfers(self) -> dict[int, tuple[list[Transfer], list[Transfer]]]:
        """Return for each MPI call path two lists of posteriors: for one rank, and for several ranks.

        The result is empty if LEAST_VALUES or more different numbers of ranks were measured. Formulas then model how
        the waiting grows with the ranks.
        """
        experiment, ranks = self.experiment, self._ranks
        dedicated = experiment.dedicated
        if self.alone or np.unique(ranks[dedicated]).size >= LEAST_VALUES or not self.rates:
            return {}
        times, _ = dedicated_times(experiment, "time")
        if (dedicated & (ranks > 1)).any():
            times = np.where(dedicated[:, None], times, np.nan)
        seconds = np.nan_to_num(mean_over_repetitions(times))
        paths = [
            path
            for path in np.flatnonzero(seconds.any(axis=1) & ~experiment.tree.start_and_end).tolist()
            if experiment.tree.region_of(path).kind is RegionKind.MPI
        ]
        counts = {name: np.zeros_like(seconds) for name in _EXCHANGED}
        for name in counts.keys() & experiment.values.keys():
            counts[name] = np.nan_to_num(mean_over_repetitions(experiment.values[name]))
        computed = seconds[list(self.rates)].sum(axis=0) * (1.0 - 1.0 / ranks)
        result = {}
        for path, known in table_amounts(experiment.tree, counts, paths).items():
            every = np.vstack([known, np.where(known[0] > 0, computed, 0.0)]).T
            alone, several = (transfers(times[path][own], every[own], ranks[own]) for own in (ranks == 1, ranks > 1))
            if alone or several:
                result[path] = (alone or several, several or alone)
        return result

    def predict(self, point: Mapping[str, float]) -> dict[int, Prediction]:
        """Return the time (seconds) of each call path with a rate or with posteriors of MPI at a point."""
        place = [float(point[name]) for name in self.experiment.parameters]
        low, high = self.experiment.points.min(axis=0), self.experiment.points.max(axis=0)
        beyond = bool((np.array(place) < low).any() or (np.array(place) > high).any())
        work = self._amounts(point)
        work[_EXPLAINED] = [(0.0, 0.0, 0.0)] * len(self.paths)
        for path, own in self.explained.items():
            found = own.at(point)
            work[_EXPLAINED][path] = (found.lower / INSTRUCTION, found.value / INSTRUCTION, found.upper / INSTRUCTION)
        ranks = float(point[self.counts.ranks]) if self.counts.ranks is not None else float(self._ranks.max())
        result = {}
        for path, rates_of in self.rates.items():
            known = _distribution(rates_of, {name: own[path] for name, own in work.items()}, ranks)
            result[path] = _prediction(known, beyond)
        computed = sum(one.value for one in result.values()) * (1.0 - 1.0 / ranks)
        for path, exchanged in self._exchanged(point).items():
            known = _of_transfers(self.transfers[path][ranks > 1], exchanged, computed, ranks)
            result[path] = _prediction(known, beyond)
        return result

    def text(self, path: int) -> str:
        """Return the likeliest rate of a call path as text, or the likeliest coefficients of MPI; "" without both."""
        if path in self.transfers:
            return max(self.transfers[path][1], key=lambda own: own.ln_weight).text
        if path not in self.rates:
            return ""
        likeliest = max(self.rates[path], key=lambda rate: rate.ln_weight)
        if path in self.explained:
            return f"{likeliest.seconds / INSTRUCTION:.3g} · {_EXPLAINED}"
        return f"{likeliest.seconds * 1e9:.3g} ns · {likeliest.work.name}"

    @cached_property
    def _ranks(self) -> FloatArray:
        """Return the number of ranks of each configuration, shape (configurations,).

        Without a parameter for the number of ranks, it is the size of the largest communicator.
        """
        experiment = self.experiment
        if self.counts.ranks is not None:
            return np.asarray(experiment.points[:, experiment.parameters.index(self.counts.ranks)])
        sizes = np.nan_to_num(experiment.values.get("comm_size", np.ones((1, experiment.configurations, 1))))
        return np.asarray(np.maximum(sizes.max(axis=(0, 2)), 1.0))

    @cached_property
    def _owners(self) -> NDArray[np.int64]:
        experiment = self.experiment
        return timed_owners(experiment.tree, experiment.values["time"], experiment.values.get("visits"))

    @cached_property
    def _computing(self) -> list[int]:
        """Return the call paths with counted instructions and a separate time, except MPI and OpenMP."""
        tree = self.experiment.tree
        counted = np.nan_to_num(self._measured["instructions"]).any(axis=1)
        kinds = (RegionKind.MPI, RegionKind.OPENMP)
        return [
            path
            for path in np.flatnonzero(counted & (self._owners == np.arange(len(tree)))).tolist()
            if tree.region_of(path).kind not in kinds and (not self.alone or path in self.explained)
        ]

    @cached_property
    def _measured(self) -> dict[str, FloatArray]:
        """Return the counts in _COUNTED by name, shape (call paths, configurations).

        The counts of a call path without times are added to the caller that contains its time.
        """
        known = self.experiment.values
        nothing = np.zeros((len(self.experiment.tree), self.experiment.configurations))
        return {
            name: self._at_owners(np.nan_to_num(mean_over_repetitions(known[name]))) if name in known else nothing
            for name in _COUNTED
        }

    def _at_owners(self, counts: FloatArray) -> FloatArray:
        result = np.zeros_like(counts)
        np.add.at(result, self._owners, counts)
        return result

    def _works(self, path: int) -> list[Work]:
        if path in self.explained:
            return [Work(_EXPLAINED, self.explained[path].measured / INSTRUCTION)]
        rows = np.array([self._measured[name][path] for name in _COUNTED])
        return [Work(name, np.array(factors) @ rows) for name, factors in _KINDS.items()]

    def _fit(self, times: FloatArray, works: list[Work], noise: float) -> list[Rate]:
        seconds = np.nan_to_num(mean_over_repetitions(times))
        largest = int(np.argmax(seconds))
        moved = sum(float(work.measured[largest]) for work in works if work.name == _BYTES)
        bandwidth = moved / seconds[largest] if seconds[largest] > 0 else 0.0
        return rates(times, works, self._ranks, bandwidth, noise)

    def _amounts(self, point: Mapping[str, float]) -> dict[str, list[tuple[float, float, float]]]:
        """Return the predicted amounts of each kind of work at a point, by the name of the kind.

        For each call path: lower end of the interval, value, upper end.
        """
        rows = np.array([self._at_owners(self._predicted(name, point)) for name in _COUNTED])
        found = {name: np.tensordot(factors, rows, 1) for name, factors in _KINDS.items()}
        return {name: [tuple(row) for row in own.tolist()] for name, own in found.items()}

    def _exchanged(self, point: Mapping[str, float]) -> dict[int, FloatArray]:
        """Return the predicted calls, steps and bytes of the call paths in `transfers` at a point.

        For each call path: shape (3, 3). Rows: calls, steps, bytes. Columns: lower end of the interval, value, upper
        end.
        """
        if not self.transfers:
            return {}
        counts = {name: np.nan_to_num(self._predicted(name, point)) for name in _EXCHANGED}
        return table_amounts(self.experiment.tree, counts, list(self.transfers))

    def _predicted(self, name: str, point: Mapping[str, float]) -> FloatArray:
        """Return the lower end, the value and the upper end of the prediction of a count, shape (call paths, 3).

        They are 0 for a metric that was not counted.
        """
        if name not in self.formulas:
            return np.zeros((len(self.paths), 3))
        wanted = {parameter: float(point[parameter]) for parameter in self.counts.experiment.parameters}
        every: Sequence[Prediction]
        if name in self.counts.models:
            every = predicted_counts(self.counts, name, self.formulas[name], wanted)
        else:
            every = [predicted(entry.model, tuple(wanted.values())) for entry in self.formulas[name]]
        return np.array([[every[there].lower, every[there].value, every[there].upper] for there in self.paths])


def _prediction(known: Distribution, beyond: bool) -> Prediction:
    lower, middle, upper = known.quantiles(np.array([_LOWEST, 0.5, _HIGHEST])).tolist()
    return Prediction(middle, lower, upper, beyond)


def _evidence(found: list[Rate]) -> list[float]:
    """Return the natural logarithm of the evidence of each kind of rate; the evidence is a sum over the works."""
    return [
        float(np.logaddexp.reduce([rate.ln_weight for rate in found if rate.kind == kind]))
        for kind in range(len(KINDS))
    ]


def _how_often(evidence: Sequence[Sequence[Sequence[float]]]) -> NDArray[np.float64]:
    """Return the frequency of each pair of noise level and kind of rate, shape (noises, kinds); the sum is 1.

    The method is empirical Bayes by expectation maximization over the call paths. Each noise level has one
    pseudo-observation, with kinds as frequent as in KINDS.

    evidence: natural logarithm of the evidence by call path, noise level and kind.
    """
    expected = np.tile(KINDS, (len(NOISES), 1))
    result = expected / expected.sum()
    for _ in range(_ROUNDS if evidence else 0):
        known = np.array(evidence) + np.log(result)
        weights = np.exp(known - known.max(axis=(1, 2), keepdims=True))
        counted = expected + (weights / weights.sum(axis=(1, 2), keepdims=True)).sum(axis=0)
        result = counted / counted.sum()
    return np.asarray(result)


def _distribution(found: list[Rate], amounts: Mapping[str, tuple[float, float, float]], ranks: float) -> Distribution:
    """Return the distribution of the time of a call path that computes (seconds).

    It is a mixture over the rates, and over the lower end, the value and the upper end of the amount of work.

    found: the posteriors of the rate. amounts: by the name of the work, lower end, value and upper end.
    """
    top = max(rate.ln_weight for rate in found)
    parts = []
    for rate in found:
        weight = math.exp(rate.ln_weight - top)
        if weight < 1e-4:
            continue
        for share, amount in zip(_RANGE, amounts[rate.work.name], strict=True):
            if amount <= 0:
                parts.append((weight * share, Distribution(0.0)))
                continue
            mean, deviation = rate.at(amount, ranks)
            parts.append((weight * share, Distribution(rate.start + np.exp(mean + deviation * _QUANTILES))))
    return Distribution.mixture(parts)


def _of_transfers(found: list[Transfer], exchanged: FloatArray, computed: float, ranks: float) -> Distribution:
    """Return the distribution of the time of an MPI call path (seconds).

    exchanged: shape (3, 3), as returned by `Rates._exchanged`. computed: seconds of computation × (1 - 1 / ranks).
    """
    top = max(own.ln_weight for own in found)
    parts = []
    for own, (share, column) in product(found, zip(_RANGE, exchanged.T, strict=True)):
        weight = share * math.exp(own.ln_weight - top)
        if column[0] > 0:
            mean, deviation = own.at(np.append(column, computed), ranks)
            parts.append((weight, Distribution(np.exp(mean + deviation * _QUANTILES))))
        else:
            parts.append((weight, Distribution(0.0)))
    return Distribution.mixture(parts)


def time_models(
    experiment: Experiment,
    counts: CountModels | None,
    formulas: Mapping[str, Sequence[PathModel]],
    explained: Mapping[int, Explained] = MappingProxyType({}),
) -> TimeModels | None:
    """Return the models of the times of an experiment.

    Returns None without laws of counts, times or instructions, with fewer than three configurations, if the number of
    threads varies, or if computation was simulated by effort (the formulas of its times are exact). Returns None, too,
    if loops were not counted and `explained` is empty.

    - counts, formulas: laws and models of all runs, including count-only runs.
    - explained: for some call paths of the runs with times, the time that a description of the machine explains. If
      loops were not counted, only these call paths have rates.
    """
    timed = with_times_at_callers(experiment.of_time)
    paths = np.arange(len(timed.tree)) if experiment.timed is None else experiment.timed.paths
    if counts is None or "time" not in timed.values or timed.configurations < _FEWEST or timed.exact_times:
        return None
    classes = counts.experiment.classes
    every = classes is not None and classes.vectors is not None
    if not every and not explained:
        return None
    if "instructions" not in timed.values or _threads_vary(timed):
        return None
    places = {path: own for own, path in enumerate(paths.tolist())}
    return TimeModels(Rates(timed, counts, formulas, paths, explained, not every), places)


def _threads_vary(experiment: Experiment) -> bool:
    """Return whether the number of threads differs between configurations.

    Threads share the work of a call path, so the time per unit of work would depend on their number.
    """
    threads = experiment.values.get("threads")
    return threads is not None and bool(np.ptp(np.nan_to_num(threads).max(axis=(0, 2))) > 0)
