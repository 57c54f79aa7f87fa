# SPDX-License-Identifier: Apache-2.0
"""Predict with full knowledge of how functions of several parameters are drawn (modeling_layout_sets.normal_form).

The predictor applies Bayes' rule to all structures (the parameters of each product) and to all functions of each
parameter, with the probabilities of drawing them. The coefficients are integrated: they are drawn from their posterior,
and weighted with their prior density. Gibbs sampling collects the forms. It samples one or two parameters at a time and
the structure, from several starts that include the true form. A missed form can only make the predictor too certain.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from modeling_layout_sets import COMMON_POWERS, FALLING, LEAST_SHARE, POWERS, Floats, NormalForm, factor
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
Function = tuple[float, int]
Structure = tuple[tuple[int, ...], ...]
State = tuple[int, tuple[int, ...]]  # number of the structure, and of the function of each parameter
STARTS, SWEEPS, PAIRS_EVERY = 3, 40, 8
"""Starts in addition to the true form, sweeps of each, and every n-th sweep that changes two parameters at a time."""
# Kept forms have a rough evidence within this distance of the best form. Number of draws of coefficients for each form.
# Number of values among which the best prediction is searched.
NEAR, DRAWS, VALUES = 14.0, 400, 1500
MOST_FORMS = 2000
# Added to the squares of columns, as a share of the number of points, because of the limited double precision.
RIDGE = 1e-10


def functions() -> dict[Function, float]:
    """Return the probability of each function of one parameter, as `modeling_layout_sets.draw_function` draws them."""
    found: dict[Function, float] = {}
    for power in FALLING:
        found[power, 0] = 0.15 / len(FALLING)
    for powers, weight in ((COMMON_POWERS, 0.45), (POWERS, 0.4)):
        for power in powers:
            for log, part in enumerate((0.5, 0.35, 0.15)):
                key = (float(power), log) if power or log else (0.0, 1)
                found[key] = found.get(key, 0.0) + weight * part / len(powers)
    return found


@cache
def structures(parameters: int) -> dict[Structure, float]:
    """Return the probability of each structure, as `modeling_layout_sets.draw_products` draws them."""
    found: dict[Structure, float] = defaultdict(float)
    for size in range(parameters + 1):
        for chosen in combinations(range(parameters), size):
            weight = 1.0 if parameters == 1 else 0.85**size * 0.15 ** (parameters - size)
            if parameters == 1 and not size:
                continue
            used = chosen or (0,)
            several = 0.25 if len(used) > 1 else 0.0
            every = [block for length in range(1, len(used) + 1) for block in combinations(used, length)]
            for pair in combinations(every, 2):
                found[tuple(sorted(pair))] += weight * several / (len(every) * (len(every) - 1) / 2)
            for structure, part in _partitions(used).items():
                found[structure] += weight * (1.0 - several) * part
    return dict(found)


def _partitions(used: tuple[int, ...]) -> dict[Structure, float]:
    """Return the partitions of parameters with the probability of each: every place, or a new one, alike."""
    found: dict[Structure, float] = {(): 1.0}
    for number in used:
        longer: dict[Structure, float] = defaultdict(float)
        for blocks, part in found.items():
            for place in range(len(blocks) + 1):
                changed = [*blocks, ()] if place == len(blocks) else list(blocks)
                changed[place] = (*changed[place], number)
                longer[tuple(changed)] += part / (len(blocks) + 1)
        found = longer
    summed: dict[Structure, float] = defaultdict(float)
    for blocks, part in found.items():
        summed[tuple(sorted(blocks))] += part
    return summed


class Fit(NamedTuple):
    """Forms fitted to values by least squares of relative errors.

    explained: (S,) log posterior odds with integrated coefficients, without the prior density of these; density: (S,)
    approximate logarithm of this density; solved: (S, K) coefficients; inverse: (S, K, K) covariance for a deviation of
    1; target: (S, K) columns there; known: (S, K) which columns exist.
    """

    explained: Floats
    density: Floats
    solved: Floats
    inverse: Floats
    target: Floats
    known: Flags


class Known:
    """All forms of functions of `points` (C, m), measured with a relative deviation of means."""

    def __init__(self, points: Floats, corner: Floats, target: Floats, deviation: float, seed: int) -> None:
        self.deviation, self.random = deviation, np.random.default_rng(seed)
        self.parameters = points.shape[1]
        drawn, self.structures = functions(), structures(self.parameters)
        self.keys, self.blocks = list(drawn), list(self.structures)
        self.odds = np.log(list(drawn.values()))
        self.structure_odds = np.log(list(self.structures.values()))
        most = max(len(blocks) for blocks in self.blocks)
        # Whether a product contains a parameter, shape (structures, products, m), and whether the product exists.
        self.part = np.zeros((len(self.blocks), most, self.parameters), bool)
        self.there = np.zeros((len(self.blocks), most), bool)
        for number, blocks in enumerate(self.blocks):
            for place, block in enumerate(blocks):
                self.part[number, place, list(block)] = True
                self.there[number, place] = True
        # Logarithms of all functions at the points and the target, of 1 at the corner: (m, F, C + 1).
        at = np.concatenate([points, target[None]])
        self.logs = np.array(
            [
                [np.log(factor(at[:, i], *key)) - np.log(factor(corner[i : i + 1], *key)) for key in self.keys]
                for i in range(self.parameters)
            ]
        )

    def state(self, form: NormalForm) -> State:
        """Return the state of this form."""
        chosen = tuple(self.keys.index((float(power), log)) for power, log in form.functions)
        return self.blocks.index(tuple(sorted(form.products))), chosen

    def columns(self, structure: Integers, chosen: Integers) -> tuple[Floats, Flags]:
        """Return columns (S, K, C + 1) of states, the constant first, and which of them exist (S, K)."""
        logs = self.logs[np.arange(self.parameters), chosen]  # (S, m, C + 1)
        products = np.exp(np.einsum("skm,smc->skc", self.part[structure].astype(float), logs))
        there = np.concatenate([np.ones((len(structure), 1), bool), self.there[structure]], axis=1)
        columns = np.concatenate([np.ones_like(products[:, :1]), products], axis=1) * there[..., None]
        return columns, there

    def fitted(self, structure: Integers, chosen: Integers, values: Floats) -> Fit:
        """Fit S states to values (C,)."""
        columns, there = self.columns(structure, chosen)
        own = columns[:, :, :-1] / values
        gram = own @ own.swapaxes(1, 2)
        gram[:, np.arange(gram.shape[1]), np.arange(gram.shape[1])] += np.where(there, RIDGE, 1.0)
        right = own.sum(axis=2)
        solved = np.linalg.solve(gram, right[..., None])[..., 0]
        inverse: Floats = np.linalg.inv(gram).astype(np.float64)
        count = there.sum(axis=1)
        squares = np.maximum(own.shape[2] - (solved * right).sum(axis=1), 0.0)
        explained = -0.5 * squares / self.deviation**2 + 0.5 * np.linalg.slogdet(inverse)[1]
        explained += count * np.log(self.deviation * np.sqrt(2.0 * np.pi))
        explained -= (count - 1) * np.log(-np.log(LEAST_SHARE))
        explained += self.structure_odds[structure]
        explained += np.where(self.part[structure].any(axis=1), self.odds[chosen], 0.0).sum(axis=1)
        # If coefficients are below the smallest drawn coefficient, the largest deviation from it counts.
        deviations = np.maximum(self.deviation * np.sqrt(np.einsum("skk->sk", inverse)), 1e-300)
        least = LEAST_SHARE * np.maximum(solved.sum(axis=1, keepdims=True), 0.1 * values.max())
        missing = np.where(there, np.maximum(least - solved, 0.0) / deviations, 0.0).max(axis=1)
        size = np.where(there, np.maximum(solved, np.maximum(least, deviations)), 1.0)
        density = -0.5 * missing**2 - np.log(size).sum(axis=1)
        return Fit(explained, density, solved, inverse, columns[:, :, -1], there)

    def search(self, values: Floats, truth: State) -> dict[State, float]:
        """Return the forms that explain the values (C,), with their rough evidence."""
        found: dict[State, float] = {}
        starts = [truth]
        for _ in range(STARTS):
            structure = int(self.random.choice(len(self.blocks), p=np.exp(self.structure_odds)))
            starts.append(
                (structure, tuple(int(one) for one in self.random.integers(0, len(self.keys), (self.parameters,))))
            )
        for number, start in enumerate(starts):
            structure, chosen = start[0], np.array(start[1])
            for sweep in range(SWEEPS):
                # The values have smaller weights at first, so that a search from an unlikely form finds better forms.
                heat = 1.0 if not number else max(1.0, 40.0 * 0.7**sweep)
                options: list[tuple[int, ...]] = [(i,) for i in range(self.parameters)]
                if sweep % PAIRS_EVERY == PAIRS_EVERY - 1:
                    options += list(combinations(range(self.parameters), 2))
                for changed in options:
                    grids = np.meshgrid(*[np.arange(len(self.keys))] * len(changed), indexing="ij")
                    tried = np.repeat(chosen[None], grids[0].size, axis=0)
                    for place, grid in zip(changed, grids, strict=True):
                        tried[:, place] = grid.ravel()
                    row = self._step(np.full(len(tried), structure), tried, values, heat, found)
                    chosen = tried[row]
                every = np.arange(len(self.blocks))
                structure = self._step(every, np.repeat(chosen[None], len(every), axis=0), values, heat, found)
        best = max(found.values())
        near = {state: own for state, own in found.items() if own > best - NEAR}
        return dict(sorted(near.items(), key=lambda item: -item[1])[:MOST_FORMS])

    def _step(
        self, structure: Integers, chosen: Integers, values: Floats, heat: float, found: dict[State, float]
    ) -> int:
        """Return the index of a drawn state, and keep all states near the best."""
        fit = self.fitted(structure, chosen, values)
        evidence = fit.explained + fit.density
        best = evidence.max()
        for row in np.flatnonzero(evidence > best - NEAR).tolist():
            used = self.part[structure[row]].any(axis=0)
            state = (int(structure[row]), tuple(np.where(used, chosen[row], 0).tolist()))
            found[state] = float(evidence[row])
        odds = np.exp((evidence - best) / heat)
        return int(self.random.choice(len(odds), p=odds / odds.sum()))

    def predict(self, values: Floats, truth: State, tolerance: float) -> tuple[float, float]:
        """Return the best value at the target and the probability that it is within the tolerance."""
        states = list(self.search(values, truth))
        structure, chosen = np.array([s for s, _ in states]), np.array([c for _, c in states])
        fit = self.fitted(structure, chosen, values)
        logs, weights = [], []
        for row, known in enumerate(fit.known):
            root = np.linalg.cholesky(fit.inverse[row][np.ix_(known, known)]) * self.deviation
            draws = fit.solved[row][known] + self.random.standard_normal((DRAWS, len(root))) @ root.T
            total = draws.sum(axis=1, keepdims=True)
            draws = draws[(draws >= LEAST_SHARE * total).all(axis=1) & (total[:, 0] > 0.0)]
            if len(draws):
                logs.append(np.log(draws @ fit.target[row][known]))
                weights.append(fit.explained[row] - np.log(draws).sum(axis=1))
        places, odds = np.concatenate(logs), np.concatenate(weights)
        odds = np.exp(odds - odds.max())
        return _best(places, odds / odds.sum(), tolerance)


def _best(places: Floats, odds: Floats, tolerance: float) -> tuple[float, float]:
    """Return the value within the tolerance of most draws (logarithms, with their odds)."""
    order = places.argsort()
    places, sums = places[order], np.concatenate([[0.0], np.cumsum(odds[order])])
    tried = np.linspace(places[0], places[-1], VALUES) if places[-1] > places[0] else places[:1]
    tried = np.unique(np.concatenate([tried, places[:: max(len(places) // VALUES, 1)]]))
    # |value / truth - 1| <= tolerance: truth between value / (1 + tolerance) and value / (1 - tolerance).
    low = np.searchsorted(places, tried - np.log(1.0 + tolerance))
    high = np.searchsorted(places, tried - np.log(1.0 - tolerance), side="right")
    share = sums[high] - sums[low]
    best = int(share.argmax())
    return float(np.exp(tried[best])), float(share[best])
