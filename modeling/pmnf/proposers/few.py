"""Search for exact models of counts where a parameter has three values.

Three values of p leave no freedom to a sum of two functions and a constant, so the lines along p say nothing. Where the
functions of the other parameters are known (n and n², say), the counts at each p give the coefficients of these, and
each coefficient is a function of p by itself: one function times a number, which two further values confirm, or two
functions, or one and a constant, which one confirms. So (n/√p + 2)² is found at p = 4, 9, 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import EXACT_PAIR_COMPLEXITY, FEW_NOTHING, FEW_TOLERANCE, FEW_VALUES
from ..fit.fitter import fit, fit_hypotheses
from ..hypotheses.library import Atom
from ..hypotheses.pool import Pool, merge, nothing, spread, stack, to_pool
from ..hypotheses.tables import Specification, Tables, tensor

# Atoms of one parameter, -1 for a constant.
_Functions = tuple[int, ...]


@dataclass(frozen=True)
class FewValues:
    """One parameter with three values.

    tables: the atoms at the measured points. parameter: its number. points: (C, m).
    """

    points: FloatArray
    tables: Tables
    parameter: int

    def run(
        self,
        values: FloatArray,
        weights: FloatArray,
        rounding: FloatArray,
        atoms: list[Specification],
        known: NDArray[np.bool_],
    ) -> tuple[Pool, NDArray[np.bool_]]:
        """Return exact models of call paths, and which have one, (N,); none if the parameter has other than 3 values.

        values, weights: (N, C). rounding: (N,), the largest weighted residual. atoms: by parameter (N, 3), -1 for none.
        known: (N,), where all of the other parameters' atoms are known and a model is wanted.
        """
        models: dict[int, list[tuple[int, Pool]]] = {}
        if len(atoms) > 1 and np.unique(self.points[:, self.parameter]).size == FEW_VALUES:
            for path in np.flatnonzero(known).tolist():
                own = [np.where(number == self.parameter, -1, a[[path]]) for number, a in enumerate(atoms)]
                products = tensor(own, [int((chosen >= 0).sum()) for chosen in own])[0]
                pool = self._model(values[path], weights[path], products, float(rounding[path]))
                if pool is not None:
                    models.setdefault(pool.specification.shape[2], []).append((path, pool))
        pools, found = [nothing(known.size, len(atoms))], np.zeros_like(known)
        for same_width in models.values():
            rows = np.zeros_like(known)
            rows[[path for path, _ in same_width]] = True
            pools.append(spread(stack([pool for _, pool in same_width]), rows))
            found |= rows
        return merge(pools, 1), found

    def _model(self, values: FloatArray, weights: FloatArray, others: Specification, rounding: float) -> Pool | None:
        """Return the exact model of counts (C,), None if there is none that the counts support.

        others: (Q, m), all products of the functions of the other parameters.
        """
        places = self._places
        columns = np.concatenate([np.ones((1, len(values))), self.tables.design(others)])
        if min(place.size for place in places) <= len(columns):
            return None
        fits = [fit(columns[None, :, place], values[None, place], weights[None, place]) for place in places]
        if max(float(found.worst[0, 0]) for found in fits) > rounding:
            return None
        coefficients = np.stack([found.coefficients[0, 0] for found in fits], axis=1)  # (1 + Q, 3)
        terms: list[NDArray[np.int16]] = []
        constant = False
        for number, (own, column) in enumerate(zip(coefficients, columns, strict=True)):
            if np.abs(own[:, None] * column * weights).max() <= FEW_NOTHING:
                continue
            functions = self._functions(own, self._evidence(values, own, column))
            if functions is None:
                return None
            product = others[number - 1] if number else np.full(others.shape[1], -1, dtype=np.int16)
            for atom in functions:
                term = product.copy()
                term[self.parameter] = atom
                constant |= bool((term < 0).all())
                terms.append(term)
        terms = [term for term in terms if (term >= 0).any()]
        if not terms or len(terms) + constant >= len(values):
            return None
        fitted = fit_hypotheses(
            self.tables, np.stack(terms)[None, None], values[None], weights[None], False, constant=constant
        )
        return to_pool(fitted, np.full((1, 1), -1e9), 1) if fitted.worst[0, 0] <= rounding else None

    @cached_property
    def _places(self) -> list[NDArray[np.int64]]:
        """The points at each of the three values."""
        positions = self.points[:, self.parameter]
        return [np.flatnonzero(positions == p) for p in np.unique(positions)]

    @cached_property
    def _families(self) -> list[_Family]:
        table = self.tables.columns[self.parameter][:, [place[0] for place in self._places]]
        order = np.append(self.tables.order_of(self.parameter), 0.0)
        return [_family(sets, table, order) for sets in _sets(self.tables.atoms[self.parameter])]

    def _evidence(self, values: FloatArray, own: FloatArray, column: FloatArray) -> float:
        """Return what one value tells: the logarithm of the variation with this parameter over the resolution."""
        resolution = 1.0 if (values == np.round(values)).all() else 1e-9 * np.abs(values).max()
        variation = np.ptp(own) * np.abs(column).max()
        return float(np.log(max(variation / resolution, 1.0)))

    def _functions(self, own: FloatArray, evidence: float) -> _Functions | None:
        """Return the simplest functions whose sum has these three values, None if they tell of none."""
        tolerance = FEW_TOLERANCE * np.abs(own).max()
        if np.ptp(own) <= tolerance:
            return (-1,)
        tried = 0
        for family in self._families:
            found = family.inverse @ own
            deviation = np.abs((family.design @ found[..., None])[..., 0] - own).max(axis=1)
            lead = np.take_along_axis(found, family.lead[:, None], axis=1)[:, 0]
            matching = np.flatnonzero((deviation <= tolerance) & (lead > 0) & (family.freedom > 0))
            if matching.size:
                first = matching[0]
                supported = family.freedom[first] * evidence >= np.log(tried + first + 1) + 1.0
                return tuple(family.sets[first].tolist()) if supported else None
            tried += family.tried
        return None


@dataclass(frozen=True)
class _Family:
    """Sets of K functions at the three values, simplest first; those that cannot be told apart there are left out.

    sets: (S, K). design: (S, 3, K). inverse: (S, K, 3), of least squares. lead: (S,) which function grows fastest.
    freedom: (S,) values that confirm. tried: sets there were.
    """

    sets: NDArray[np.int64]
    design: FloatArray
    inverse: FloatArray
    lead: NDArray[np.int64]
    freedom: NDArray[np.int64]
    tried: int


def _family(sets: NDArray[np.int64], table: FloatArray, order: FloatArray) -> _Family:
    design = table[sets].transpose(0, 2, 1)
    gram = design.transpose(0, 2, 1) @ design
    kept = np.linalg.cond(gram) < 1e12
    design, own = design[kept], sets[kept]
    inverse = np.linalg.solve(gram[kept], design.transpose(0, 2, 1))
    # where all functions are zero, as logarithms are at 1, nothing is left to confirm
    freedom = (design != 0).any(axis=2).sum(axis=1) - sets.shape[1]
    return _Family(own, design, inverse, order[own].argmax(axis=1), freedom, len(sets))


@lru_cache(maxsize=128)
def _sets(atoms: tuple[Atom, ...]) -> tuple[NDArray[np.int64], ...]:
    """Return single functions, and sums of one and a constant (-1) or of two, simplest first, (S, 1) and (S, 2)."""
    cost = np.array([*(atom.cost for atom in atoms), 0.0])
    cheap = [*np.flatnonzero(cost[:-1] <= EXACT_PAIR_COMPLEXITY).tolist(), -1]
    result = []
    for sets in (np.arange(len(atoms))[:, None], np.array(list(combinations(cheap, 2)), dtype=np.int64).reshape(-1, 2)):
        result.append(sets[np.argsort(cost[sets].sum(axis=1), kind="stable")])
    return tuple(result)
