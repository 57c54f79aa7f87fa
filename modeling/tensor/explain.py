# SPDX-License-Identifier: Apache-2.0
"""Explain a tensor model: effects of its parameters and of pairs of them, and its extrapolation.

Effects are shares of the variance of log time (Sobol indices), and curves of the mean log time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..experiment import FloatArray
from .columns import ColumnModel, measured_values

SAMPLE = 4096
"""Number of random points over which effects are averaged."""
MOST_VALUES = 33
MOST_BEYOND, POINTS_BEYOND = 8.0, 8
"""An extrapolation is shown up to this multiple of the largest measured value, at this number of points."""
_RANGE = np.finfo(np.float64)  # limits for the ends of intervals, which may be 0 or infinite, before the logarithm


@dataclass(frozen=True)
class Effect:
    """The effect of one parameter on the time.

    values: values of the parameter. logs: for each of them, the mean of ln(time) over all other parameters, minus the
    total mean. share: share of the variance of ln(time) that the parameter explains alone (first-order Sobol index).
    total: share including all interactions with other parameters (total Sobol index).
    """

    parameter: str
    values: tuple[float | str, ...]
    logs: FloatArray
    share: float
    total: float


@dataclass(frozen=True)
class Tried:
    """A model that the selection tried.

    size: number of entries of its factors. rank: number of components. error: MLogQ on held-out rows. kept: whether the
    selection continued with it.
    """

    name: str
    size: int
    rank: int
    error: float
    kept: bool


@dataclass(frozen=True)
class Beyond:
    """The extrapolation beyond the largest value of one parameter.

    values: the first `inside` ones are measured; the others are larger than all measured values. logs: for each value,
    the mean of ln(time) over all other parameters, minus the total mean. low, high: the same for the ends of the 90 %
    intervals. forms: the trends of the extrapolation, as in `TensorModel.extrapolation`, or "positive factors".
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
    """Two parameters, and the share of the variance of ln(time) that their interaction explains."""

    first: str
    second: str
    share: float


def main_effects(model: ColumnModel, seed: int = 0) -> list[Effect]:
    """Return the effects of all parameters, the largest total share first.

    Averages and shares assume that all parameters are independent, and uniform over their measured values (or knots).
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
    """Return all pairs of the parameters `names` with their second-order Sobol indices, the largest share first."""
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
    """Return the extrapolation of the model beyond the largest value of each numeric parameter with several values."""
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
    """Return values above the largest measured value `high`, whole numbers if `whole`.

    The factor beyond is high/low, at most MOST_BEYOND; if `low` is not positive, the range is continued once.
    """
    if low > 0.0:
        places = np.geomspace(high, high * min(high / low, MOST_BEYOND), POINTS_BEYOND + 1)
    else:
        places = np.linspace(high, 2.0 * high - low, POINTS_BEYOND + 1)
    places = np.unique(np.round(places)) if whole else places
    return np.asarray(places[places > high])


def tried_models(model: ColumnModel) -> list[Tried]:
    """Return the models that the selection tried, in order; [] for files of earlier versions."""
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
    """Return values as views show them: numbers, or texts for categories."""
    levels = model.levels.get(name)
    if levels is None:
        return tuple(f"{value:g}" if name in model.categorical else float(value) for value in values)
    return tuple(levels[int(value)] for value in values)
