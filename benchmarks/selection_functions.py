# SPDX-License-Identifier: Apache-2.0
"""Draw planted functions and noise for the study of selection strategies (selection_study.py)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from modeling_sets import Floats

# The values of the published evaluation: number of processes, and sizes of the problem. The last value is one step out.
AXES = (
    [4, 8, 16, 32, 64, 128],
    [10, 20, 30, 40, 50, 60],
    [1000, 2000, 3000, 4000, 5000, 6000],
    [10, 12, 14, 16, 18, 20],
)
EXPONENTS = (
    0,
    1 / 4,
    1 / 3,
    1 / 2,
    2 / 3,
    3 / 4,
    4 / 5,
    1,
    5 / 4,
    4 / 3,
    3 / 2,
    5 / 3,
    7 / 4,
    2,
    9 / 4,
    7 / 3,
    5 / 2,
    8 / 3,
    11 / 4,
    3,
)
LOGARITHMS = (0, 1, 2)
LEAST_SHARE = 0.01  # smallest share of each term at both corners; smaller terms could not be found
NAMES = "abcd"
REPETITIONS = 4
_TERM = re.compile(r"([a-d])\*\*([\d.]+)\*math\.log2\([a-d]\)\*\*(\d)")


@dataclass(frozen=True, eq=False)
class Planted:
    """One function on the grid of m parameters: true values (N,) of the points, and one at the target."""

    values: Floats
    far: float


def grid(parameters: int) -> tuple[Floats, Floats]:
    """Return the points (5^m, m) that can be measured, and the target (m,)."""
    points = np.array(list(product(*(axis[:5] for axis in AXES[:parameters]))), dtype=float)
    return points, np.array([axis[5] for axis in AXES[:parameters]], dtype=float)


def drawn(parameters: int, count: int, seed: int) -> list[Planted]:
    """Return random functions, half of them c0 + Σ and half c0 + Π of c·x^a·log2(x)^b, coefficients up to 1000."""
    random = np.random.default_rng([seed, parameters])
    points, target = grid(parameters)
    everywhere = np.vstack([points, target])
    found: list[Planted] = []
    while len(found) < count:
        columns = [
            random.uniform(0, 1000) * x ** random.choice(EXPONENTS) * np.log2(x) ** random.choice(LOGARITHMS)
            for x in everywhere.T
        ]
        terms = [np.full(len(everywhere), random.uniform(0, 1000))]
        terms += [np.prod(columns, axis=0)] if len(found) % 2 else columns
        values = np.sum(terms, axis=0)
        if all(min(term[0] / values[0], term[-2] / values[-2]) >= LEAST_SHARE for term in terms[1:]):
            found.append(Planted(values[:-1], float(values[-1])))
    return found


def published(file: Path, count: int) -> list[Planted]:
    """Return the first functions of a file of the published evaluation: Python expressions of a, b, c, d."""
    found = []
    for text in json.loads(file.read_text())[:count]:
        parameters = len(set(re.findall(r"\b([a-d])\*\*", text)))
        points, target = grid(parameters)
        values = np.array([_value(text, point) for point in np.vstack([points, target])])
        found.append(Planted(values[:-1], float(values[-1])))
    return found


def _value(text: str, point: Floats) -> float:
    """Return c0 + Σ or c0 + Π of an expression at a point; products bind their coefficients."""

    def factor(match: re.Match[str]) -> str:
        x = float(point[NAMES.index(match[1])])
        return repr(x ** float(match[2]) * math.log2(x) ** int(match[3]))

    filled = _TERM.sub(factor, text)
    return math.fsum(math.prod(map(float, part.split("*"))) for part in filled.replace("e+", "e").split("+"))


def noisy(values: Floats, noise: float, kind: str, seed: Sequence[int]) -> Floats:
    """Return repetitions (N, 4) of true values (N,): within ±`noise`, independent for each value.

    kind: "uniform", or "mixed": each a draw of a Gaussian, uniform, exponential or Poisson component, whose scales are
    such that the uniform one has the range that the others have two standard deviations of.
    """
    random = np.random.default_rng(seed)
    shape = (len(values), REPETITIONS)
    uniform = random.uniform(-1.0, 1.0, shape)
    if kind == "uniform":
        return np.asarray(values[:, None] * (1.0 + noise * uniform))
    parts = [
        random.normal(0.0, 0.5, shape),
        uniform,
        random.exponential(0.5, shape) - 0.5,
        (random.poisson(4.0, shape) - 4.0) / 4.0,
    ]
    chosen = np.choose(random.integers(0, len(parts), shape), parts)
    return np.asarray(values[:, None] * np.maximum(1.0 + noise * chosen, 0.01))
