# SPDX-License-Identifier: Apache-2.0
"""Choose grid, derived modes, rank and penalties with held-out rows, within a budget of work.

The search is greedy: each step changes one property of the best candidate, runs a few sweeps on the training rows from
the current factors, and is kept if the error on the held-out rows decreases. At the end, the best decomposition is
averaged with further decompositions of the same kind from other random factors, as long as this decreases the error.
Work is counted in operations, not on a clock, so that the same data and `random_state` give the same model on every
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from ..experiment import FloatArray
from ..progress import shares
from .als import Decomposition, Penalty, Rows, Single, solve_mode, started
from .modes import IntArray, Mode, derived_mode

RATE = 3e9
"""Operations per second that convert the budget from seconds to work: one core of a slow machine."""
CALLS = 1.2e6
"""Operations that count for the numpy calls for one mode in a sweep: 0.4 ms."""
GAIN = 0.004
"""Least relative reduction of the error by a step that is kept."""
ALONE_GAIN = 0.04
"""The same for a step after which the size limit does not allow an average of two decompositions."""
RANKS = (4, 8, 16, 24, 32, 48)
SWEEPS, FEW_SWEEPS, MEMBER_SWEEPS, FINAL_SWEEPS = 20, 8, 40, 25
"""Numbers of sweeps: of a decomposition with a new rank, after a change of the current decomposition, of a further
decomposition for the average, and over all rows at the end."""
PROMISING = 1.08
"""A decomposition with a new rank gets the same number of sweeps again if its error is less than this factor times the
best error, because the best decomposition has had more sweeps."""
MOST_MEMBERS = 4
"""Largest number of decompositions in an average."""
MOST_PRODUCTS = 640
"""Largest product of the numbers of modes and components of an average; predictions then take 2 µs per row."""
MOST_DERIVED = 3
LIMITS = {"smoothness": 1e-14, "ridge": 1e-8}
"""Smallest penalties that are tried."""
START = ((4, 1e-10), (4, 1e-10), (16, 1e-8), (16, 1e-6))
"""Initial rank and smoothness of the search for one, two, three, and more modes (docs/design/tensor.md)."""
WIDER_GAIN = 0.02
"""Least relative reduction of the error by a derived mode, which makes later steps more expensive."""
DERIVED_ROWS = 4096
"""Number of rows in the search for derived modes."""


@dataclass
class Budget:
    """The limits of the search: remaining operations, and largest number of entries of the factors (`parameters`)."""

    operations: float
    parameters: int

    def cost(self, modes: Sequence[Mode], rank: int, rows: int, sweeps: int) -> float:
        """Return the operations of `sweeps` sweeps over `rows` rows. The formula was fitted to six data sets."""
        hats = [mode.width * rank for mode in modes]
        per_row = sum(0.36 * hat**2 + 20.0 * hat + 350.0 for hat in hats)
        per_knot = sum(mode.size for mode in modes) * (2.0 * rank**3 + 270.0 * rank**2 + 3.6e4)
        return sweeps * (rows * per_row + per_knot + CALLS * len(modes))


@dataclass(frozen=True)
class Step:
    """One step of the search.

    name: what was changed. parameters: number of entries of the factors. error: mean absolute residual on held-out
    rows, in units of the scaled target; times the scale of the model it is MLogQ. kept: whether the search continued
    with the changed model.
    """

    name: str
    rank: int
    parameters: int
    error: float
    kept: bool


@dataclass
class Candidate:
    """A choice of modes, penalty and rank, with its decompositions and errors.

    fits: the decomposition of the training rows of each fold. members: further decompositions for the average, each
    with one fit per fold. residuals: of the held-out rows of all folds. error: mean absolute residual.
    """

    modes: tuple[Mode, ...]
    penalty: Penalty
    fits: list[Decomposition]
    members: tuple[list[Decomposition], ...] = ()
    error: float = np.inf
    residuals: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def rank(self) -> int:
        """Return the number of components."""
        return self.fits[0].rank

    @property
    def parameters(self) -> int:
        """Return the number of entries of the factors of one decomposition."""
        return self.rank * sum(mode.size for mode in self.modes)


class Search:
    """The greedy search over one data set."""

    def __init__(
        self,
        x: FloatArray,
        target: FloatArray,
        folds: Sequence[tuple[IntArray, IntArray]],
        budget: Budget,
        random: np.random.Generator,
    ) -> None:
        """Create the search over rows x (N, d) with targets (N,), the centred and scaled logarithms of times.

        folds: pairs of the indices of training rows and of held-out rows. `fixed` names what the search may not change:
        "rank", "smoothness", "ridge", "cells", "derived" (modes), "members".
        """
        self.x, self.target, self.folds, self.budget, self.random = x, target, folds, budget, random
        self.steps: list[Step] = []
        self.fixed: frozenset[str] = frozenset()
        self._all = budget.operations
        self._done: Callable[[float], None] = lambda share: None
        self._prepared: tuple[tuple[Mode, ...], list[tuple[Rows, Rows]]] | None = None

    def run(self, first: Candidate) -> Candidate:
        """Return the best candidate that the search finds within the budget, starting from `first`."""
        with shares("choice of the model") as self._done:
            return self._averaged(self._best(first))

    def _best(self, first: Candidate) -> Candidate:
        best = self._fitted(first, SWEEPS)
        self._spend(self._cost(best, SWEEPS))
        self._note("start", best, True)
        best = self._tune(self._refine(self._derive(best)), ("smoothness",))
        tuned = best
        for rank in [rank for rank in RANKS if rank > best.rank and "rank" not in self.fixed]:
            start = best
            for factor in (1.0,) if "smoothness" in self.fixed else (10.0, 1.0):
                penalty = replace(start.penalty, smoothness=start.penalty.smoothness * factor)
                again = replace(self._restarted(start, rank), penalty=penalty)
                best = self._try(f"rank {rank}, smoothness {penalty.smoothness:.0e}", best, again, SWEEPS)
            if best is start:
                break
        return self._tune(best, ("ridge",)) if best is tuned else self._tune(self._refine(best), tuple(LIMITS))

    def _try(self, name: str, best: Candidate, changed: Candidate, sweeps: int, gain: float = GAIN) -> Candidate:
        """Fit `changed`, and return it if its error is lower by the relative `gain`, else `best`.

        Without enough remaining budget, `changed` is not fitted.
        """
        cost = self._cost(changed, sweeps)
        if cost + self._member_cost(changed) > self.budget.operations or changed.parameters > self.budget.parameters:
            return best
        self._spend(cost)
        fitted = self._fitted(changed, sweeps)
        close = best.error * (1.0 - gain) <= fitted.error < best.error * PROMISING
        if sweeps == SWEEPS and close and cost + self._member_cost(changed) <= self.budget.operations:
            self._spend(cost)
            fitted = self._fitted(fitted, sweeps)
        if 2 * best.parameters <= self.budget.parameters < 2 * fitted.parameters:
            gain = max(gain, ALONE_GAIN)
        better = fitted.error < best.error * (1.0 - gain)
        self._note(name, fitted, better)
        return fitted if better else best

    def _averaged(self, best: Candidate) -> Candidate:
        """Average the best candidate with fits from other random factors, as long as the error decreases.

        Other starting factors lead to other local minima.
        """
        while len(best.members) + 1 < MOST_MEMBERS and "members" not in self.fixed:
            count = len(best.members) + 1
            cost, components = self._member_cost(best), best.rank * (count + 1)
            if cost > self.budget.operations or components * len(best.modes) > MOST_PRODUCTS:
                break
            if (count + 1) * best.parameters > self.budget.parameters:
                break
            self._spend(cost)
            other = self._fitted(self._restarted(best, best.rank), MEMBER_SWEEPS)
            residuals = (count * best.residuals + other.residuals) / (count + 1)
            error = float(np.abs(residuals).mean())
            joined = replace(best, members=(*best.members, other.fits), residuals=residuals, error=error)
            better = error < best.error * (1.0 - GAIN)
            self.steps.append(Step(f"average of {count + 1}", components, (count + 1) * best.parameters, error, better))
            if not better:
                break
            best = joined
        return best

    def _member_cost(self, candidate: Candidate) -> float:
        """Return the operations of one more decomposition for the average, including its fit to all rows."""
        final = self.budget.cost(candidate.modes, candidate.rank, len(self.x), FINAL_SWEEPS)
        return self._cost(candidate, MEMBER_SWEEPS) + final

    def _spend(self, cost: float) -> None:
        self.budget.operations -= cost
        self._done(1.0 - self.budget.operations / self._all)

    def _fitted(self, candidate: Candidate, sweeps: int) -> Candidate:
        fits, residuals = [], []
        for decomposition, (train, test) in zip(candidate.fits, self.rows(candidate.modes), strict=True):
            fit = Decomposition(list(decomposition.factors))
            fit.sweep(candidate.modes, train, candidate.penalty, sweeps)
            fits.append(fit)
            residuals.append(test.target - test.predicted(fit.factors))
        joined = np.concatenate(residuals)
        return replace(candidate, fits=fits, residuals=joined, error=float(np.abs(joined).mean()))

    def rows(self, modes: tuple[Mode, ...]) -> list[tuple[Rows, Rows]]:
        """Return the training rows and the held-out rows of each fold, prepared for `modes`."""
        if self._prepared is None or self._prepared[0] is not modes:
            pairs = [
                (Rows(modes, self.x[train], self.target[train]), Rows(modes, self.x[test], self.target[test]))
                for train, test in self.folds
            ]
            self._prepared = (modes, pairs)
        return self._prepared[1]

    def _restarted(self, best: Candidate, rank: int) -> Candidate:
        """Return a candidate of another rank with random factors.

        Adding components to the present factors gives larger errors.
        """
        return replace(best, fits=[Decomposition(started(best.modes, rank, self.random)) for _ in best.fits])

    def _cost(self, candidate: Candidate, sweeps: int) -> float:
        cost = self.budget.cost
        return sum(cost(candidate.modes, candidate.rank, len(train), sweeps) for train, _ in self.folds)

    def _refine(self, best: Candidate) -> Candidate:
        """Divide the cells of all grids in two, repeatedly, as long as the error decreases enough."""
        while "cells" not in self.fixed and not all(mode.indexed for mode in best.modes):
            modes, matrices = [], []
            for mode in best.modes:
                wanted = not mode.indexed and 2 * mode.size - 1 <= len(self.x) // 8
                refined, matrix = mode.refined() if wanted else (mode, np.eye(mode.size))
                modes.append(refined)
                matrices.append(matrix)
            fits = [
                Decomposition([matrix @ factor for matrix, factor in zip(matrices, fit.factors, strict=True)])
                for fit in best.fits
            ]
            cells = max(mode.size for mode in modes) - 1
            finer = self._try(f"{cells} cells", best, replace(best, modes=tuple(modes), fits=fits), FEW_SWEEPS)
            if finer is best or cells == max(mode.size for mode in best.modes) - 1:
                return finer
            best = finer
        return best

    def _tune(self, best: Candidate, names: Sequence[str]) -> Candidate:
        """Change the penalties `names` by factors of ten as long as the error decreases enough.

        The reduction must be larger than by the same number of sweeps without a change.
        """
        before = best.error
        best = self._try("more sweeps", best, best, FEW_SWEEPS)
        gain = max(GAIN, 1.0 - best.error / max(before, 1e-300))
        for name in names:
            for factor in () if name in self.fixed else (0.1, 10.0):
                start = best
                while LIMITS[name] < (value := getattr(best.penalty, name) * factor) < 0.1:
                    penalty = replace(best.penalty, **{name: value})
                    tried = self._try(f"{name} {value:.0e}", best, replace(best, penalty=penalty), FEW_SWEEPS, gain)
                    if tried is best:
                        break
                    best = tried
                if best is not start:
                    break
        return best

    def _derive(self, best: Candidate) -> Candidate:
        """Add products and ratios of two parameters as modes, as long as each reduces the error by WIDER_GAIN."""
        for _ in range(0 if "derived" in self.fixed else MOST_DERIVED):
            found = self._best_derived(best)
            if found is None:
                return best
            mode, factors = found
            fits = [Decomposition([*fit.factors, factor]) for fit, factor in zip(best.fits, factors, strict=True)]
            wider = replace(best, modes=(*best.modes, mode), fits=fits)
            name = f"{mode.parameters[0]}{'*' if mode.signs[1] > 0 else '/'}{mode.parameters[1]}"
            tried = self._try(name, best, wider, FEW_SWEEPS, WIDER_GAIN)
            if tried is best:
                return best
            best = tried
        return best

    def _best_derived(self, best: Candidate) -> tuple[Mode, list[FloatArray]] | None:
        """Return the derived mode that reduces the error of held-out rows most, and its factor for each fold.

        None if no mode reduces the error by WIDER_GAIN.
        """
        parameters = [mode.parameters[0] for mode in best.modes if mode.kind == "numeric" and len(mode.parameters) == 1]
        positive = [parameter for parameter in parameters if self.x[:, parameter].min() > 0]
        there = {(mode.parameters, mode.signs) for mode in best.modes}
        lowest, found = best.error, None
        parts = [(train[:DERIVED_ROWS], test[:DERIVED_ROWS]) for train, test in self.folds]
        values = []
        for fit, (train, test) in zip(best.fits, parts, strict=True):
            both = [Rows(best.modes, self.x[part], self.target[part]) for part in (train, test)]
            values.append([np.prod(np.stack(rows.values(fit.factors)), axis=0) for rows in both])
        for first, second in combinations(positive, 2):
            for sign in (1, -1):
                mode = derived_mode(self.x, first, second, sign)
                if ((first, second), (1, sign)) in there or mode.size < 3:
                    continue
                factors, errors = [], []
                for (train, test), (products, held) in zip(parts, values, strict=True):
                    factor, error = self._gain(mode, best.penalty, train, test, products, held)
                    factors.append(factor)
                    errors.append(error)
                if (error := float(np.mean(errors))) < lowest * (1.0 - WIDER_GAIN):
                    lowest, found = error, (mode, factors)
        return found

    def _gain(
        self, mode: Mode, penalty: Penalty, train: IntArray, test: IntArray, products: Single, held: Single
    ) -> tuple[FloatArray, float]:
        """Return the factor of an additional mode after one update, and the mean error of held-out rows with it.

        products, held: the components (rows, R) of the present model at the training rows and held-out rows.
        """
        rows = Rows((mode,), self.x[train], self.target[train] - products.sum(axis=1))
        basis = rows.bases[0]
        right = (basis.transposed @ (products * rows.target[:, None])).astype(np.float64)
        change = solve_mode(mode, basis.normal(products, None), right, penalty, rows.count)
        other = Rows((mode,), self.x[test], self.target[test] - held.sum(axis=1))
        left = other.target - (held * other.bases[0].at(change)).sum(axis=1)
        return 1.0 + change, float(np.abs(left).mean())

    def _note(self, name: str, candidate: Candidate, kept: bool) -> None:
        self.steps.append(Step(name, candidate.rank, candidate.parameters, candidate.error, kept))
