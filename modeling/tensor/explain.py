# SPDX-License-Identifier: Apache-2.0
"""Explain a model: main effects and pairwise effects of its parameters, shares of the variance of log time, and the
extrapolation beyond the measured values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..experiment import FloatArray
from .columns import ColumnModel, measured_values

SAMPLE = 4096
"""Number of points for averages over the other parameters."""
MOST_VALUES = 33
MOST_BEYOND, POINTS_BEYOND = 8.0, 8
"""Largest factor beyond the measured range for which an extrapolation is shown, and the number of its points."""
_RANGE = np.finfo(np.float64)  # larger or smaller ends of intervals would be infinite or 0, without a logarithm


@dataclass(frozen=True)
class Effect:
    """The mean of log time over all other parameters, by values of one parameter, relative to the total mean.

    share: share of the variance of log time that the parameter explains alone (first-order Sobol index). total: share
    including all interactions of the parameter (total Sobol index).
    """

    parameter: str
    values: tuple[float | str, ...]
    logs: FloatArray
    share: float
    total: float


@dataclass(frozen=True)
class Tried:
    """A tried model: its number of entries and components, its error (MLogQ) on held-out rows, whether it was kept."""

    name: str
    size: int
    rank: int
    error: float
    kept: bool


@dataclass(frozen=True)
class Beyond:
    """The mean of log time over all other parameters by values of one parameter, with its 90 % interval.

    It is relative to the total mean. The first `inside` values are measured; the others are larger than all measured
    values. forms: the trends of the extrapolation, with names from `TensorModel.extrapolation`.
    """

    parameter: str
    values: tuple[float, ...]
    inside: int
    logs: FloatArray
    low: FloatArray
    high: FloatArray
    forms: tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """Two parameters, and the share of the variance of log time that their interaction explains."""

    first: str
    second: str
    share: float


def main_effects(model: ColumnModel, seed: int = 0) -> list[Effect]:
    """Return the effects of all parameters, the largest total share first.

    The other parameters are drawn independently and uniformly from the measured values, or from the knots.
    """
    base, again, values = _samples(model, seed)
    logs, logs_again = _logs(model, base), _logs(model, again)
    variance = float(np.var(np.concatenate([logs, logs_again]))) or 1.0
    effects = []
    for number, name in enumerate(model.parameters):
        mixed = base.copy()
        mixed[:, number] = again[:, number]
        changed = _logs(model, mixed)
        # Saltelli et al., "Variance based sensitivity analysis of model output", 2010: table 2, (b) and (f)
        share = float(np.mean(logs_again * (changed - logs))) / variance
        total = float(np.mean((logs - changed) ** 2)) / (2.0 * variance)
        shown = _shown(values[number])
        curve = np.array([_logs(model, _with(base[: SAMPLE // 8], number, value)).mean() for value in shown])
        effects.append(Effect(name, _labels(model, name, shown), curve - logs.mean(), min(max(share, 0.0), 1.0), total))
    return sorted(effects, key=lambda effect: -effect.total)


def pair_effects(model: ColumnModel, names: Sequence[str], seed: int = 0) -> list[Pair]:
    """Return the pairs of some parameters, the largest share first: second-order Sobol indices."""
    base, again, _ = _samples(model, seed)
    logs, logs_again = _logs(model, base), _logs(model, again)
    variance = float(np.var(np.concatenate([logs, logs_again]))) or 1.0
    numbers = {name: model.parameters.index(name) for name in names}

    def explained(columns: Sequence[int]) -> float:
        mixed = base.copy()
        mixed[:, list(columns)] = again[:, list(columns)]
        return float(np.mean(logs_again * (_logs(model, mixed) - logs))) / variance

    single = {name: explained([number]) for name, number in numbers.items()}
    pairs = [
        Pair(first, second, max(0.0, explained([numbers[first], numbers[second]]) - single[first] - single[second]))
        for at, first in enumerate(names)
        for second in names[at + 1 :]
    ]
    return sorted(pairs, key=lambda pair: -pair.share)


def continuations(model: ColumnModel, seed: int = 0) -> list[Beyond]:
    """Return the extrapolation of the model beyond the largest value of each parameter with an order."""
    base, _, values = _samples(model, seed)
    mean = float(_logs(model, base).mean()) + model.model.center_
    result = []
    for number, name in enumerate(model.parameters):
        measured = _shown(values[number])
        if name in model.categorical or len(measured) < 2:
            continue
        beyond = _beyond(float(measured[0]), float(measured[-1]), bool(model.model.whole_[number]))
        shown = np.concatenate([measured, beyond])
        curves = np.array(
            [
                [
                    np.log(np.clip(part, _RANGE.tiny, _RANGE.max)).mean() - mean
                    for part in model.model.predict_interval(_with(base[: SAMPLE // 8], number, at))
                ]
                for at in shown
            ]
        )
        forms = ("positive factors",) if model.model.positive_ is not None else model.model.trend_.forms(number)
        result.append(
            Beyond(name, tuple(shown.tolist()), len(measured), curves[:, 0], curves[:, 1], curves[:, 2], forms)
        )
    return result


def _beyond(low: float, high: float, whole: bool) -> FloatArray:
    """Return values above the largest measured value."""
    if low > 0.0:
        places = np.geomspace(high, high * min(high / low, MOST_BEYOND), POINTS_BEYOND + 1)
    else:
        places = np.linspace(high, 2.0 * high - low, POINTS_BEYOND + 1)
    places = np.unique(np.round(places)) if whole else places
    return np.asarray(places[places > high])


def tried_models(model: ColumnModel) -> list[Tried]:
    """Return the models tried by the selection, in order; empty for models of earlier versions."""
    scale = model.model.scale_
    return [Tried(one.name, one.parameters, one.rank, one.error * scale, one.kept) for one in model.model.steps_]


def _samples(model: ColumnModel, seed: int) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
    random = np.random.default_rng(seed)
    values = [measured_values(model, name) for name in model.parameters]
    base, again = (np.column_stack([random.choice(value, SAMPLE) for value in values]) for _ in range(2))
    return base, again, values


def _logs(model: ColumnModel, x: FloatArray) -> FloatArray:
    return np.log(model.model.predict(x)) - model.model.center_


def _with(x: FloatArray, number: int, value: float) -> FloatArray:
    result = x.copy()
    result[:, number] = value
    return result


def _shown(values: FloatArray) -> FloatArray:
    if len(values) <= MOST_VALUES:
        return values
    return np.asarray(values[np.unique(np.linspace(0, len(values) - 1, MOST_VALUES).astype(int))])


def _labels(model: ColumnModel, name: str, values: FloatArray) -> tuple[float | str, ...]:
    """Return values for views: numbers, or texts of categories."""
    levels = model.levels.get(name)
    if levels is None:
        return tuple(f"{value:g}" if name in model.categorical else float(value) for value in values)
    return tuple(levels[int(value)] for value in values)
