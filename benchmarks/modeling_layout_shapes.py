# SPDX-License-Identifier: Apache-2.0
"""Draw functions of one parameter with other shapes: sums of two terms, saturation, changes of behaviour."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from modeling_layout_sets import LEAST_SHARE, Floats, LayoutSet, axes, measured, targets_of

# Values at x, which was measured from `low` to `high`; the numbers of `draw` are uniform in 0 to 1.
Shape = Callable[[Floats, float, float, Floats], Floats]
NOISE = (0.0, 0.02, 0.05)
_DRAWS = 3
_SETS = 6  # number of sets of parameter values for each shape


def _sum(first: Callable[[Floats], Floats], second: Callable[[Floats], Floats]) -> Shape:
    """Return the sum of two functions, whose parts at `high` are drawn."""

    def values(x: Floats, low: float, high: float, draw: Floats) -> Floats:
        top = np.array([high])
        part = LEAST_SHARE * (1 / LEAST_SHARE - 1) ** draw[0]
        result: Floats = part * first(x) / first(top) + (1 - part) * second(x) / second(top)
        return result

    return values


def _inside(low: float, high: float, part: float) -> float:
    """Return a value that has this part of the logarithmic range below it."""
    return low * (high / low) ** part


def _saturating(x: Floats, low: float, high: float, draw: Floats) -> Floats:
    return 0.05 + draw[1] + x / (x + high / 2 ** (4 * draw[0]))


def _exponential(x: Floats, low: float, high: float, draw: Floats) -> Floats:
    return 1.05 + draw[1] - np.exp(-x / high * 2 ** (4 * draw[0]))


def _valley(x: Floats, low: float, high: float, draw: Floats) -> Floats:
    return 0.2 + draw[1] + np.log2(x / _inside(low, high, 0.2 + 0.6 * draw[0])) ** 2


def _maximum(x: Floats, low: float, high: float, draw: Floats) -> Floats:
    return np.maximum(1.0, (x / _inside(low, high, 0.2 + 0.6 * draw[0])) ** (0.5 + 1.5 * draw[1]))


def _step(x: Floats, low: float, high: float, draw: Floats) -> Floats:
    return 1 + (0.2 + draw[1]) * (x > _inside(low, high, 0.2 + 0.6 * draw[0]))


def _change(x: Floats, low: float, high: float, draw: Floats) -> Floats:
    later = x >= _inside(low, high, 0.3 + 0.4 * draw[0])
    return np.where(later, (1 + draw[1]) * x / high, np.log2(x) / np.log2(high))


SHAPES: dict[str, Shape] = {
    "a/p + b·p": _sum(lambda x: 1 / x, lambda x: x),
    "a/p + b·log p": _sum(lambda x: 1 / x, np.log2),
    "a·p³ + b·p": _sum(lambda x: x**3, lambda x: x),
    "a·p·log p + b·√p": _sum(lambda x: x * np.log2(x), np.sqrt),
    "a·p² + b·log p": _sum(lambda x: x**2, np.log2),
    "saturating": _saturating,
    "exponential saturation": _exponential,
    "valley": _valley,
    "maximum": _maximum,
    "step": _step,
    "change": _change,
    "stairs": lambda x, low, high, draw: draw[0] + np.ceil(x / low / 3),
    "other power": lambda x, low, high, draw: 2 * draw[1] + (x / low) ** (0.1 + 2.8 * draw[0]),
}


def shape_sets(shape: str, noise: float, count: int, seed: int) -> list[LayoutSet]:
    """Return `count` functions of a shape, in several sets, each measured at five to eight separate values."""
    parts = np.array_split(np.arange(count), min(_SETS, count))
    return [_shape_set(shape, noise, len(part), seed, number) for number, part in enumerate(parts)]


def _shape_set(shape: str, noise: float, count: int, seed: int, number: int) -> LayoutSet:
    random = np.random.default_rng([seed, 77, list(SHAPES).index(shape), round(1000 * noise), number])
    (own,) = axes(random, 1, int(random.integers(5, 9)))
    targets, edges = targets_of([own]), (float(own[0]), float(own[-1]))
    size = np.exp(random.uniform(-5.0, 8.0, count))[:, None]
    draws = random.uniform(0, 1, (count, _DRAWS))
    exact, truth = (size * np.array([SHAPES[shape](at, *edges, draw) for draw in draws]) for at in (own, targets[:, 0]))
    values = measured(random, exact, noise)
    return LayoutSet(f"{shape} {100 * noise:g}% {number}", ("p",), own[:, None], values, targets, truth)
