# SPDX-License-Identifier: Apache-2.0
"""`TensorModel`: a tensor-completion model of positive times, with the interface of scikit-learn regressors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..experiment import FloatArray
from ..progress import steps
from .additive import PENALTIES, additive_factors, choose_additive
from .als import Decomposition, Penalty, Rows, Single, averaged, factor_at, started
from .folds import FINE_FOLDS, held_out_folds, independent
from .frames import numbers_in
from .intervals import spread_of
from .modes import LARGEST, IntArray, Mode, few_values, modes_of, too_large
from .positive import PositiveFactors, fit_positive
from .selection import FINAL_SWEEPS, RANKS, RATE, START, SWEEPS, Budget, Candidate, Search, Step
from .support import Support, support_of
from .threads import on_one_thread
from .trend import FORMS, choose_trend
from .unseen import category_half_width, differs_from_constant, without_logarithm

SEARCH_ROWS, BUDGET_ROWS = 24_000, 12_000
"""Largest number of rows for the choice of hyper-parameters (the model is then fitted to all rows), and number of rows
above which the budget of this choice grows in proportion."""
PART_SWEEPS = 50
"""Number of sweeps over all rows that start from the factors of a fit to a part of the rows."""
LOOSENING = 0.8
"""Penalties relative to the number of rows n decrease like n to the power of minus this, as n^(-4/5) for smoothing
splines (Wahba, "Spline models for observational data", 1990, chapter 4)."""
MEMORY_ROWS = 1 << 18
"""Largest number of rows that are prepared in memory at the same time."""
KEPT_ROWS = 8192
"""Number of earlier rows that `partial_fit` fits in addition to new ones."""
CHUNK = 2048
LEAST_ROWS, FEWEST_ROWS = 12, 4
"""With fewer rows than the first number, the model is log-additive; with fewer than the second, no rows are held out,
so the error is not known."""
ADDITIVE_WORK = 1.5e8
"""Log-additive models are also tried if rows · (number of all knots)² is at most this number (1 s of work)."""
LOSSES = ("log", "mlogq2")
EXTRAPOLATIONS = ("auto", *FORMS)
MOST_LOG = 700.0
"""Largest magnitude of the logarithm of predicted times, so that exp does not overflow."""


class TensorModel(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A sum of products of functions of the parameters (CP decomposition), fitted to the logarithm of times.

    The functions are piecewise linear on a grid. Every row is fitted at its position between the knots of the grid.

    Parameters
    ----------
    categorical : indices of the columns whose values have no order.
    spacing : "auto", or for each column "auto", "uniform" or "geometric".
    knots : None, or for each column None or the knots of its grid, in its units.
    rank : number of components; None: chosen with held-out rows. Held-out rows also choose grids, derived modes, and
        the number of averaged decompositions.
    smoothness, ridge : weights of the penalties; None: chosen with held-out rows.
    derive : whether products and ratios of two parameters may become modes.
    loss : "log": robust squared error of the logarithm; "mlogq2": positive factors of the time itself, by an
        interior-point Newton method (Hutter and Solomonik, SC '23, 5.3).
    extrapolation : continuation outside of the measured values: "hold" (the outermost value), "linear" (in logarithms),
        "damped" (linear with a decreasing slope), "logarithmic" (a power of the logarithm), "powers" (a sum of powers
        with positive coefficients); "auto": chosen with rows near the edge (trend.py).
    time_budget : limit of the selection in seconds of a slow core. Operations are counted, so that the result does not
        depend on the machine.
    max_bytes : largest size of the stored model.
    random_state : seed of the starting factors and of the held-out rows.

    Attributes after a fit: `modes_`, `factors_` (one array (knots, `rank_`) per mode), `rank_` (number of components of
    all averaged decompositions), `penalty_`, `steps_` (steps of the selection), `error_` (MLogQ of held-out rows, NaN
    if it is not known), `trend_` (extrapolation), `spread_` (intervals), `support_` (measured combinations), `low_`,
    `high_` (measured range of each column), `whole_` (which columns contain only whole numbers), `values_` (measured
    values of each column with few values), `seen_` (number of rows).
    """

    modes_: tuple[Mode, ...]
    factors_: list[FloatArray]
    values_: tuple[FloatArray, ...]
    rank_: int
    penalty_: Penalty
    steps_: list[Step]
    seen_: int

    def __init__(
        self,
        categorical: Sequence[int] = (),
        spacing: str | Sequence[str] = "auto",
        knots: Sequence[Sequence[float] | None] | None = None,
        rank: int | None = None,
        smoothness: float | None = None,
        ridge: float | None = None,
        derive: bool = True,
        loss: str = "log",
        extrapolation: str = "auto",
        time_budget: float = 8.0,
        max_bytes: int = 65536,
        random_state: int | None = 0,
    ) -> None:
        self.categorical = categorical
        self.spacing = spacing
        self.knots = knots
        self.rank = rank
        self.smoothness = smoothness
        self.ridge = ridge
        self.derive = derive
        self.loss = loss
        self.extrapolation = extrapolation
        self.time_budget = time_budget
        self.max_bytes = max_bytes
        self.random_state = random_state

    @on_one_thread
    def fit(self, X: Any, y: Any) -> TensorModel:
        """Fit to rows X (N, d) with times y > 0 (N,). Raises ValueError for invalid numbers, times and options."""
        x, times = validate_data(self, numbers_in(X), numbers_in(y), dtype=np.float64, y_numeric=True)
        _check_times(times)
        _check_places(x)
        self._check_options(x.shape[1])
        logs = np.log(times.astype(np.float64))
        random = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        self.low_, self.high_ = x.min(axis=0), x.max(axis=0)
        self.whole_, self.values_ = (x == np.round(x)).all(axis=0), few_values(x)
        self.center_, self.scale_ = float(np.median(logs)), float(logs.std()) or 1.0
        self.steps_ = []
        self.positive_: PositiveFactors | None = None
        target = (logs - self.center_) / self.scale_
        modes = modes_of(x, tuple(self.categorical), self._spacing(x.shape[1]), self._knots(x.shape[1]))
        rows = random.permutation(len(x))[:SEARCH_ROWS]
        held, residuals, starts = self._choose(modes, x, target, rows, random)
        self._fit_factors(x, target, starts, len(rows), random)
        self.error_ = float(np.abs(residuals).mean() * self.scale_) if len(residuals) else float("nan")
        alone = independent(x[held], self.categorical)
        self.spread_ = spread_of(self.modes_, x[held][alone], residuals[alone] * self.scale_)
        self.trend_ = choose_trend(self.extrapolation, self.modes_, x[rows], logs[rows])
        if self.loss == "mlogq2" and self.modes_:
            self.positive_ = fit_positive(self.modes_, x, logs, self.rank_, self.penalty_.ridge, random)
        self.support_ = self._supported(x[rows], logs[rows])
        self._remember(x, logs, random)
        return self

    @on_one_thread
    def partial_fit(self, X: Any, y: Any) -> TensorModel:
        """Add rows X (N, d) with times y > 0 (N,). Raises ValueError for invalid numbers and times.

        Grids and categories are extended, and some sweeps over old and new rows improve the factors. Hyper-parameters
        are not chosen again, unless a parameter varies that was constant until now.
        """
        if not hasattr(self, "modes_"):
            return self.fit(X, y)
        x, times = validate_data(self, numbers_in(X), numbers_in(y), dtype=np.float64, y_numeric=True, reset=False)
        _check_times(times)
        _check_places(x)
        logs = np.log(times.astype(np.float64))
        self.values_ = few_values(x, self.values_)
        random = np.random.default_rng(self.seen_)
        if not hasattr(self, "_kept"):  # a loaded model: its predictions replace the unknown rows of its fit
            self._kept = self._rehearsal(random)
        old_x, old_logs = self._kept
        x, logs = np.concatenate([old_x, x]), np.concatenate([old_logs, logs])
        self.low_, self.high_ = np.minimum(self.low_, x.min(axis=0)), np.maximum(self.high_, x.max(axis=0))
        self.whole_ = self.whole_ & (x == np.round(x)).all(axis=0)
        known = {mode.parameters[0] for mode in self.modes_}
        if any(np.ptp(x[:, column]) > 0 and column not in known for column in range(x.shape[1])):
            self._remember(x, logs, random)
            return self._refit(x, logs)  # a parameter that was constant until now
        grown = [mode.extended(x) for mode in self.modes_]
        self.modes_ = tuple(mode for mode, _ in grown)
        factors = [matrix @ factor for (_, matrix), factor in zip(grown, self.factors_, strict=True)]
        if self.modes_:
            rows = Rows(self.modes_, x, (logs - self.center_) / self.scale_)
            fit = Decomposition(factors)
            fit.sweep(self.modes_, rows, self.penalty_, SWEEPS // 2)
            self.factors_ = fit.factors
        if self.positive_ is not None:
            self.positive_ = fit_positive(self.modes_, x, logs, self.rank_, self.penalty_.ridge, random)
        self.support_ = self._supported(x, logs)
        self._remember(x, logs, random)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the predicted time of each row X (N, d), shape (N,), in the unit of the times of the fit."""
        check_is_fitted(self, "modes_")
        x = validate_data(self, numbers_in(X), dtype=np.float64, reset=False)
        return np.exp(self._logs(x))

    def predict_interval(self, X: Any, confidence: float = 0.9) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return predicted times and the lower and upper ends of their intervals, shape (N,) each.

        confidence: probability of the interval, between 0 and 1; ValueError otherwise.

        - Outside of the measured values, the interval widens with the distance, at the rate of the error that the
          extrapolation had in tests within the measured rows (trend.py).
        - For an unmeasured combination of two parameters it is wider, too (support.py).
        - For an unmeasured category it contains the scatter between the measured categories (unseen.py).
        - It is 0 to infinity for another value of a constant parameter, and for a number of 0 or below if all measured
          numbers of the parameter are positive.
        """
        check_is_fitted(self, "modes_")
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence must be between 0 and 1, not {confidence}")
        x = validate_data(self, numbers_in(X), dtype=np.float64, reset=False)
        logs = self._logs(x)
        inside = self._clipped(x)
        half = self.spread_.half_width(inside, confidence)
        half = np.hypot(half, category_half_width(self.modes_, x, logs, self._logs, confidence))
        half[without_logarithm(x, self.low_, self._unordered()).any(axis=1)] = np.inf
        half[differs_from_constant(x, self.low_, self.high_)] = np.inf
        below, above = self.support_.doubt(inside, logs if (inside == x).all() else self._logs(inside), half)
        doubt = self.trend_.doubt(x, self.low_, self.high_)
        with np.errstate(over="ignore"):
            return np.exp(logs), np.exp(logs - below - doubt), np.exp(logs + above + doubt)

    def extrapolated(self, X: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return whether each value of X (N, d) is outside of the measured range, or no measured category."""
        check_is_fitted(self, "modes_")
        x = validate_data(self, numbers_in(X), dtype=np.float64, reset=False)
        outside = (x < self.low_) | (x > self.high_)
        for mode in self.modes_:
            if mode.kind == "categorical":
                outside[:, mode.parameters[0]] = ~np.isin(x[:, mode.parameters[0]], mode.knots)
        return np.asarray(outside)

    def hidden(self, X: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return (N, pairs): whether each pair of parameters in `support_.pairs` has an unmeasured combination.

        Values outside of the measured range count as the nearest measured values.
        """
        check_is_fitted(self, "modes_")
        return self.support_.hidden(self._clipped(validate_data(self, numbers_in(X), dtype=np.float64, reset=False)))

    def _logs(self, x: FloatArray) -> FloatArray:
        inside = self._clipped(x)
        x = np.where(without_logarithm(x, self.low_, self._unordered()), inside, x)
        result = np.empty(len(x))
        for begin in steps("predicted parts of the rows", range(0, len(x), CHUNK)):
            part = inside[begin : begin + CHUNK]
            result[begin : begin + CHUNK] = self.support_.bounded(part, self._inside(part))
        moved = np.flatnonzero(np.any(inside != x, axis=1))
        if len(moved):
            if self.positive_ is not None:
                result[moved] = self.positive_.logs(self.modes_, x[moved])
            else:
                result[moved] += self.trend_.step(inside[moved], x[moved])
        return np.clip(result, -MOST_LOG, MOST_LOG)

    def _inside(self, x: FloatArray) -> FloatArray:
        if self.positive_ is not None:
            return self.positive_.logs(self.modes_, x)
        if not self.modes_:
            return np.full(len(x), self.center_)
        product: Single | None = None
        for mode, factor in zip(self.modes_, self.factors_, strict=True):
            values = factor_at(mode, factor.astype(np.float32), x)
            product = values if product is None else np.multiply(product, values, out=product)
        assert product is not None
        return np.asarray(self.center_ + self.scale_ * product.sum(axis=1).astype(np.float64))

    def _supported(self, x: FloatArray, logs: FloatArray) -> Support:
        additive = self.additive_ and self.positive_ is None
        return support_of(self.modes_, x, logs, None if additive else self._inside)

    def _clipped(self, x: FloatArray) -> FloatArray:
        low, high = self.low_.copy(), self.high_.copy()
        unordered = self._unordered()
        low[unordered], high[unordered] = -np.inf, np.inf
        return np.clip(x, low, high)

    def _unordered(self) -> list[int]:
        """Return the categorical columns that vary."""
        return [mode.parameters[0] for mode in self.modes_ if mode.kind == "categorical"]

    def _choose(
        self, modes: tuple[Mode, ...], x: FloatArray, target: FloatArray, rows: IntArray, random: np.random.Generator
    ) -> tuple[IntArray, FloatArray, list[list[FloatArray]]]:
        """Choose modes, penalty, and whether the model is log-additive, with rows number `rows`.

        Returns held-out rows, their residuals, and the starting factors of each decomposition that is averaged.
        """
        rank, smoothness = START[min(len(modes), len(START)) - 1] if modes else (1, 1.0)
        limit = max(1, self.max_bytes // 5 - 400)  # 4 bytes per entry; the rest is for the descriptions of modes
        sizes = sum(mode.size for mode in modes) or 1
        rank = self.rank or max(1, min(rank, 1 + len(x) // 40, limit // sizes))
        penalty = Penalty(self.ridge or 1e-4, self.smoothness or smoothness)
        self.modes_, self.penalty_, self.rank_, self.factors_ = modes, penalty, rank, []
        starts: list[list[FloatArray]] = []
        self.additive_ = False
        if not modes:
            return (rows, target[rows], []) if len(x) >= FEWEST_ROWS else (rows[:0], np.empty(0), [])
        if len(x) < FEWEST_ROWS:
            self.penalty_, self.additive_ = PENALTIES[-1], True
            return rows[:0], np.empty(0), []
        budget = Budget(RATE * self.time_budget * 0.8 * max(1.0, len(rows) / BUDGET_ROWS), limit)
        folds = held_out_folds(x[rows], self.categorical)
        if len(folds) * budget.cost(modes, rank, len(rows), SWEEPS) > budget.operations:
            folds = folds[:1]
        search = Search(x[rows], target[rows], folds, budget, random)
        search.fixed = (
            frozenset(name for name in ("rank", "smoothness", "ridge") if getattr(self, name) is not None)
            | ({"cells"} if self.knots is not None else set())
            | (set() if self.derive else {"derived"})
            | (set() if self.rank is None else {"members"})
        )
        held = rows[np.concatenate([test for _, test in search.folds])]
        residuals = np.full(len(held), np.inf)
        if len(x) >= LEAST_ROWS or {"rank", "smoothness", "ridge"} & search.fixed:
            fits = [Decomposition(started(modes, rank, random)) for _ in search.folds]
            best = search.run(Candidate(modes, penalty, fits))
            self.modes_, self.penalty_, self.steps_ = best.modes, best.penalty, search.steps
            starts, residuals = [fits[0].factors for fits in (best.fits, *best.members)], best.residuals
        if len(rows) * sizes**2 <= ADDITIVE_WORK and not {"rank", "smoothness", "ridge"} & search.fixed:
            simple, others = choose_additive(modes, x[rows], target[rows], search.folds)
            if np.abs(others).mean() < np.abs(residuals).mean():
                self.modes_, self.penalty_, self.additive_ = modes, simple, True
                # With four folds, a fit would lack a quarter of the rows, so its errors would be too large.
                fine = held_out_folds(x[rows], self.categorical, FINE_FOLDS)
                _, residuals = choose_additive(modes, x[rows], target[rows], fine, (simple,))
                held = rows[np.concatenate([test for _, test in fine])]
        return held, residuals, starts

    def _fit_factors(
        self,
        x: FloatArray,
        target: FloatArray,
        starts: list[list[FloatArray]],
        searched: int,
        random: np.random.Generator,
    ) -> None:
        """Fit the factors to all rows, from starting factors that were fitted to `searched` rows."""
        if not self.modes_:
            return
        if self.additive_:
            self.factors_, self.rank_ = additive_factors(self.modes_, x, target, self.penalty_), len(self.modes_)
            return
        part = np.arange(len(x)) if len(x) <= MEMORY_ROWS else np.sort(random.permutation(len(x))[:MEMORY_ROWS])
        rows = Rows(self.modes_, x[part], target[part])
        members = []
        looser = (searched / len(x)) ** LOOSENING
        penalty = Penalty(self.penalty_.ridge * looser, self.penalty_.smoothness * looser)
        for factors in starts:
            fit = Decomposition(list(factors))
            fit.sweep(self.modes_, rows, penalty, FINAL_SWEEPS if searched == len(x) else PART_SWEEPS)
            if len(part) < len(x):
                fit.sweep_parts(self.modes_, x, target, penalty, MEMORY_ROWS)
            members.append(fit.factors)
        self.factors_ = averaged(members)
        self.rank_ = self.factors_[0].shape[1]

    def _refit(self, x: FloatArray, logs: FloatArray) -> TensorModel:
        return self.fit(x, np.exp(logs))

    def _remember(self, x: FloatArray, logs: FloatArray, random: np.random.Generator) -> None:
        """Keep a random sample of the rows for `partial_fit`."""
        kept = random.permutation(len(x))[:KEPT_ROWS]
        self._kept = (x[kept], logs[kept])
        self.seen_ = len(x)

    def _rehearsal(self, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        x = np.tile(self.low_, (min(KEPT_ROWS, max(self.seen_, 1)), 1))
        for mode in self.modes_:
            if len(mode.parameters) == 1:
                places = (
                    random.choice(mode.knots, len(x))
                    if mode.indexed
                    else random.uniform(mode.knots[0], mode.knots[-1], len(x))
                )
                x[:, mode.parameters[0]] = np.exp(places) if mode.logarithmic else places
        x = self._clipped(x)
        supported = ~self.support_.hidden(x).any(axis=1)
        x = x[supported] if supported.any() else x
        return x, self._logs(x)

    def _check_options(self, columns: int) -> None:
        if wrong := [column for column in self.categorical if not 0 <= column < columns]:
            raise ValueError(f"categorical={wrong[0]}: there are columns 0 to {columns - 1}")
        for name, values in (("loss", LOSSES), ("extrapolation", EXTRAPOLATIONS)):
            if getattr(self, name) not in values:
                raise ValueError(f"{name}={getattr(self, name)!r}: choose one of {', '.join(values)}")
        if self.rank is not None and not 1 <= self.rank <= 4 * RANKS[-1]:
            raise ValueError(f"rank={self.rank}: must be from 1 to {4 * RANKS[-1]}")
        self._spacing(columns)
        self._knots(columns)

    def _spacing(self, columns: int) -> list[bool | None]:
        given = [self.spacing] * columns if isinstance(self.spacing, str) else list(self.spacing)
        meaning = {"auto": None, "uniform": False, "geometric": True}
        if len(given) != columns or not set(given) <= set(meaning):
            raise ValueError(f"spacing={self.spacing!r}: for each of {columns} columns auto, uniform or geometric")
        return [meaning[one] for one in given]

    def _knots(self, columns: int) -> list[FloatArray | None]:
        if self.knots is None:
            return [None] * columns
        if len(self.knots) != columns:
            raise ValueError(f"knots: for each of {columns} columns None or a list of values")
        return [None if one is None else np.asarray(one, dtype=np.float64) for one in self.knots]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def _check_places(x: FloatArray) -> None:
    if wrong := too_large(x):
        raise ValueError(f"column {wrong[0]} holds values beyond {LARGEST:g}, whose squares overflow: use another unit")


def _check_times(times: FloatArray) -> None:
    if not np.all(times > 0):
        raise ValueError(f"times must be positive, but {int(np.sum(times <= 0))} are not: leave these rows out")
