# SPDX-License-Identifier: Apache-2.0
"""Options of modeling, and the reason for a missing model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..process_grid import ProcessGrid
from .data.noise import Aggregation
from .hypotheses.library import Library

Selector = Literal["evidence", "smape", "extra-p"]
SELECTORS: tuple[Selector, ...] = ("evidence", "smape", "extra-p")


@dataclass(frozen=True, slots=True)
class NoModel:
    """The reason why a call path has no model."""

    reason: str = "not measured"


@dataclass(frozen=True)
class Options:
    """How to model.

    library: the hypotheses.
    aggregation: how repetitions become one value.
    nonnegative: whether costs are sums of non-negative parts, which noisy values of a cost are fitted to.
    growth_penalty: how much evidence a cost must show for each term and each two units of its exponent before it
        counts as growth; in units of twice the logarithm of the likelihood, 0 for no preference.
    selector: how the hypothesis of a cost is chosen: by "evidence" (evidence.score; the default, and the only one with
        alternatives), by the lowest cross-validated "smape", or by the rule of "extra-p", for comparison.
    grids: what the process grid of the program may be, the likeliest first; counts may depend on it. ranked: their
        order counts; else that which most call paths follow comes first.
    at_largest: the coefficients of a cost are fitted to the largest values of the parameters more than to others, as
        is best where no form explains the values (fit/largest.py); for the selector "evidence". also_at_largest: such
        models are wanted besides, of costs whose model misses the values (Fits.nearest).
    """

    library: Library = field(default_factory=Library)
    aggregation: Aggregation = "robust"
    nonnegative: bool = True
    growth_penalty: float = 0.0
    selector: Selector = "evidence"
    grids: tuple[ProcessGrid, ...] = ()
    ranked: bool = False
    at_largest: bool = False
    also_at_largest: bool = False


DEFAULT = Options()
