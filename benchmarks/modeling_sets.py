# SPDX-License-Identifier: Apache-2.0
"""Provide planted functions to model: the reference sets from a folder, and other sets from a seed."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.pmnf.hypotheses.library import EXPONENTS, LOGARITHMS

Floats = NDArray[np.float64]
Exponents = tuple[Fraction, int]
# The parameters and their five values of a thousand functions without tuning. The last value is one step out.
AXES: dict[str, list[float]] = {
    "p": [4, 8, 16, 32, 64, 128],
    "n": [10, 20, 30, 40, 50, 60],
    "s": [1000, 2000, 3000, 4000, 5000, 6000],
    "t": [2, 4, 6, 8, 10, 12],
}
REPETITIONS = 5


@dataclass(frozen=True, eq=False)
class PlantedSet:
    """N functions measured with noise: points (C, m), values (N, C, R), true values `far` (N,) at `target` (m,).

    leads: per function the true (i, j) of each parameter. products: per function whether its terms are multiplied.
    """

    name: str
    parameters: tuple[str, ...]
    points: Floats
    values: Floats
    target: Floats
    far: Floats
    leads: list[list[Exponents]]
    products: list[bool]

    @property
    def targets(self) -> Floats:
        """The target as a list of one, (1, m)."""
        return self.target[None]

    def lines_only(self) -> PlantedSet:
        """Return the set restricted to points at which at most one parameter is above its smallest value."""
        keep = (self.points == self.points.min(axis=0)).sum(axis=1) >= len(self.parameters) - 1
        return replace(self, name=f"{self.name}-lines", points=self.points[keep], values=self.values[:, keep])

    def true_columns(self, number: int, points: Floats) -> Floats:
        """Return the columns of the true form of one function at points, (K, C)."""
        leads = self.leads[number]
        parts = [factor(points[:, index], *lead) for index, lead in enumerate(leads)]
        if self.products[number]:
            return np.stack([np.ones(len(points)), np.prod(parts, axis=0)])
        return np.stack([np.ones(len(points)), *(part for part, lead in zip(parts, leads, strict=True) if any(lead))])

    def true_form_predictions(self) -> Floats:
        """Return the predictions of relative least squares with the true form at the target, (N,)."""
        centre = self.values.mean(axis=2)
        found = []
        for number, values in enumerate(centre):
            columns = self.true_columns(number, self.points)
            scale = columns.max(axis=1, keepdims=True)
            coefficients = np.linalg.lstsq((columns / scale / values).T, np.ones(len(values)), rcond=None)[0]
            found.append(float(coefficients @ (self.true_columns(number, self.target[None]) / scale)[:, 0]))
        return np.array(found)


def factor(x: Floats, exponent: Fraction, log: int) -> Floats:
    """Return x^exponent · log2(x)^log."""
    result: Floats = x ** float(exponent) * np.log2(x) ** log
    return result


def reference_sets(folder: Path) -> list[PlantedSet]:
    """Return the sets p1, p2, p3 of a folder (NAME.json.gz in Extra-P's format and NAME_truth.json.gz)."""
    found = []
    for path in sorted(folder.glob("p?.json.gz")):
        name = path.name.removesuffix(".json.gz")
        data = json.loads(gzip.decompress(path.read_bytes()))
        truth = {t["callpath"]: t for t in json.loads(gzip.decompress((folder / f"{name}_truth.json.gz").read_bytes()))}
        rows = data["measurements"]
        points = [entry["point"] for entry in next(iter(rows.values()))["time"]]
        own = [truth[callpath] for callpath in rows]
        found.append(
            PlantedSet(
                name,
                tuple(data["parameters"]),
                np.array(points, dtype=float),
                np.array([[entry["values"] for entry in metrics["time"]] for metrics in rows.values()]),
                np.array(own[0]["eval_point"], dtype=float),
                np.array([t["truth"] for t in own]),
                [[(Fraction(i), int(j)) for _, i, j in t["terms"]] for t in own],
                [t["kind"] == "mul" for t in own],
            )
        )
    if not found:
        raise SystemExit(f"{folder}: no reference sets (p1.json.gz …); give their folder with --data")
    return found


def fresh_set(parameters: int, noise: float, count: int, seed: int) -> PlantedSet:
    """Return random functions, half of them sums and half products, with noise uniform in ±`noise` on a dense grid."""
    random = np.random.default_rng([seed, parameters, round(1000 * noise)])
    names = tuple(AXES)[:parameters]
    points = np.array(list(product(*(AXES[name][:5] for name in names))), dtype=float)
    target = np.array([AXES[name][5] for name in names], dtype=float)
    everywhere = np.concatenate([points, target[None]])
    choices = [(i, j) for i in EXPONENTS for j in LOGARITHMS if i or j]
    exact, leads, products = [], [], []
    for number in range(count):
        own = [choices[k] for k in random.integers(0, len(choices), parameters)]
        parts = [
            random.uniform(1, 1000) * factor(column, *lead) for column, lead in zip(everywhere.T, own, strict=True)
        ]
        multiply = bool(number % 2)
        exact.append(random.uniform(1, 1000) + (np.prod(parts, axis=0) if multiply else np.sum(parts, axis=0)))
        leads.append(own)
        products.append(multiply)
    table = np.array(exact)
    measured = np.repeat(table[:, :-1, None], REPETITIONS, axis=2)
    measured = measured * (1 + noise * random.uniform(-1, 1, measured.shape))
    name = f"{parameters}p-{100 * noise:g}%"
    return PlantedSet(name, names, points, measured, target, table[:, -1], leads, products)
