# SPDX-License-Identifier: Apache-2.0
"""Draw functions, layouts of points and measured data for each seed. No modeler was tuned with them.

A `LayoutSet` contains the input of both modelers and the truth: values at points, and the function at targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Columns (K, C) of a function at points (C, m).
Form = Callable[[Floats], Floats]
Random = np.random.Generator

NOISE = (0.0, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75)
NAMES = ("p", "n", "s", "t", "u")
REPETITIONS = 5
# Targets: one step out, and these multiples of the largest value of every parameter.
FACTORS = (2.0, 16.0)
# Each term of a function is at least this share of its value at the largest corner.
LEAST_SHARE = 0.01
# Number of scattered points per parameter, and number for a single parameter.
SCATTERED, SCATTERED_ALONE = 15, 8
POWERS = (0.25, 1 / 3, 0.5, 2 / 3, 0.75, 0.8, 1, 1.25, 4 / 3, 1.5, 5 / 3, 1.75, 2, 7 / 3, 2.5, 8 / 3, 3)
COMMON_POWERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
FALLING = (-1.0, -0.5, -2 / 3, -1 / 3)


@dataclass(frozen=True, eq=False)
class LayoutSet:
    """N functions measured with noise: points (C, m), values (N, C, R), true values `truth` (N, T) at targets (T, m).

    forms: per function the columns of its true form, () if it has none.
    """

    name: str
    parameters: tuple[str, ...]
    points: Floats
    values: Floats
    targets: Floats
    truth: Floats
    forms: tuple[Form, ...] = ()

    def true_form_predictions(self) -> Floats:
        """Return the predictions of relative least squares with the true form at the targets, (N, T)."""
        found = []
        for form, values in zip(self.forms, self.values.mean(axis=2), strict=True):
            columns, fitted = form(self.points), values
            scale = np.abs(columns).max(axis=1, keepdims=True)
            for _ in range(3):  # weights from noisy values alone would make the fit too low
                weights = 1.0 / np.clip(fitted, 0.5 * values, 2.0 * values)
                own = np.linalg.lstsq((columns / scale * weights).T, values * weights, rcond=None)[0]
                fitted = own @ (columns / scale)
            found.append(own @ (form(self.targets) / scale))
        return np.array(found)


def axes(random: Random, parameters: int, values: int = 5) -> list[Floats]:
    """Return the values of each parameter: powers of two of processes, steps or ratios of sizes."""
    found = [2.0 ** np.arange(values) * random.choice([2.0, 4.0, 8.0, 16.0])]
    for _ in range(1, parameters):
        first = float(random.choice([10.0, 12.0, 20.0, 64.0, 100.0, 1000.0]))
        steps = np.arange(1, values + 1) if random.random() < 0.5 else 2.0 ** np.arange(values)
        found.append(first * steps)
    return found


def arranged(random: Random, layout: str, own: list[Floats]) -> Floats:
    """Return the points (C, m) of a layout over the values of each parameter."""
    grid = np.array(list(product(*own)))
    if layout == "grid":
        return grid
    if layout == "lines":
        return grid[(grid == grid.min(axis=0)).sum(axis=1) >= len(own) - 1]
    count = SCATTERED * len(own) if len(own) > 1 else SCATTERED_ALONE
    low, high = (np.log([edge(column) for column in own]) for edge in (min, max))
    points = np.round(np.exp(random.uniform(low, high, (4 * count, len(own)))))
    different: Floats = np.unique(points, axis=0)
    return different[random.permutation(len(different))[:count]]


def factor(x: Floats, power: float, log: int) -> Floats:
    """Return x^power · log2(x)^log."""
    result: Floats = x**power * np.log2(x) ** log
    return result


def draw_function(random: Random) -> tuple[float, int]:
    """Return the power and the logarithm of a function of one parameter."""
    kind = random.random()
    if kind < 0.15:
        return float(random.choice(FALLING)), 0
    power = float(random.choice(COMMON_POWERS if kind < 0.6 else POWERS))
    log = int(random.choice(3, p=(0.5, 0.35, 0.15)))
    return (power, log) if power or log else (0.0, 1)


def draw_products(random: Random, parameters: int) -> list[tuple[int, ...]]:
    """Return which parameters each product has: sums of disjoint ones, or two that overlap (f + f·g)."""
    used = [number for number in range(parameters) if parameters == 1 or random.random() < 0.85] or [0]
    if len(used) > 1 and random.random() < 0.25:
        every = [block for size in range(1, len(used) + 1) for block in combinations(used, size)]
        chosen = random.choice(len(every), 2, replace=False)
        return [every[number] for number in chosen]
    blocks: list[list[int]] = []
    for number in used:
        place = int(random.integers(0, len(blocks) + 1))
        if place == len(blocks):
            blocks.append([])
        blocks[place].append(number)
    return [tuple(block) for block in blocks]


@dataclass(frozen=True)
class NormalForm:
    """The columns of a function in normal form: a constant and products of functions of one parameter each.

    functions: power and logarithm of each parameter; products: the parameters that each has.
    """

    functions: tuple[tuple[float, int], ...]
    products: tuple[tuple[int, ...], ...]

    def __call__(self, points: Floats) -> Floats:
        """Return the columns (K, C) at points (C, m), the constant first."""
        own = [np.prod([factor(points[:, i], *self.functions[i]) for i in block], axis=0) for block in self.products]
        return np.stack([np.ones(len(points)), *own])


def normal_form(random: Random, parameters: int) -> NormalForm:
    """Draw a function in normal form."""
    functions = [draw_function(random) for _ in range(parameters)]
    return NormalForm(tuple(functions), tuple(draw_products(random, parameters)))


def shares(random: Random, number: int) -> Floats:
    """Return the parts of a function at the largest corner, each at least LEAST_SHARE."""
    while True:
        own = np.exp(random.uniform(np.log(LEAST_SHARE), 0.0, number))
        own /= own.sum()
        if own.min() >= LEAST_SHARE:
            return np.asarray(own, dtype=np.float64)


def targets_of(own: list[Floats]) -> Floats:
    """Return the point one step out, and those beyond the largest values by FACTORS, (T, m)."""
    geometric = [column[1] ** 2 == column[0] * column[2] for column in own]
    step = [2 * c[-1] if ratio else 2 * c[-1] - c[-2] for c, ratio in zip(own, geometric, strict=True)]
    return np.stack([step, *(times * np.array([column[-1] for column in own]) for times in FACTORS)])


def measured(random: Random, exact: Floats, noise: float, repetitions: int = REPETITIONS) -> Floats:
    """Return repetitions (..., R) of exact values with independent noise, uniform in ±`noise`."""
    repeated = np.repeat(exact[..., None], repetitions, axis=-1)
    result: Floats = repeated * (1 + noise * random.uniform(-1, 1, repeated.shape))
    return result


def started(
    layout: str, parameters: int, noise: float, seed: int, constant: bool = False
) -> tuple[Random, list[Floats]]:
    """Return the properties of a set and the values of each parameter, which are drawn first."""
    key = ("grid", "lines", "scattered").index(layout), parameters, round(1000 * noise), int(constant)
    random = np.random.default_rng([seed, *key])
    return random, axes(random, parameters)


def planted_set(layout: str, parameters: int, noise: float, count: int, seed: int, constant: bool = False) -> LayoutSet:
    """Return random functions in normal form, or constants, in one layout."""
    random, own = started(layout, parameters, noise, seed, constant)
    points, targets = arranged(random, layout, own), targets_of(own)
    corner = np.array([[column[-1] for column in own]])
    forms: list[Form] = [lambda at: np.ones((1, len(at)))] * count
    if not constant:
        forms = [normal_form(random, parameters) for _ in range(count)]
    exact, truth = [], []
    for form in forms:
        at_corner = form(corner)[:, 0]
        coefficients = shares(random, len(at_corner)) / at_corner * np.exp(random.uniform(-5.0, 8.0))
        exact.append(coefficients @ form(points))
        truth.append(coefficients @ form(targets))
    name = f"{'constants ' if constant else ''}{layout} m={parameters} {100 * noise:g}%"
    values = measured(random, np.array(exact), noise)
    return LayoutSet(name, NAMES[:parameters], points, values, targets, np.array(truth), tuple(forms))
