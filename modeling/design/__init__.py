# SPDX-License-Identifier: Apache-2.0
"""Choose the next measurements: the search space, and strategies with one interface (docs/selection.md).

"Ritter et al." with sections and equations is the paper "Cost-Effective Empirical Performance Modeling". Constants are
in the file that uses them. After a change of a constant, benchmarks/selection_study.py and selection_campaign.py must
give the same figures.
"""

from __future__ import annotations

from collections.abc import Callable

from .gaussian import ExpectedImprovement, GaussianProcess, Hybrid
from .orders import CheapestFirst, FullMatrix, GridRuns, RandomRuns, SingleRuns
from .posterior import Posterior
from .state import State, Strategy, Suggestion

STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "posterior": Posterior,
    "cpf": CheapestFirst,
    "cpf2": lambda: CheapestFirst(2),
    "gpr": GaussianProcess,
    "hybrid": Hybrid,
    "bayes": ExpectedImprovement,
    "single": SingleRuns,
    "random": RandomRuns,
    "grid": GridRuns,
    "full": FullMatrix,
}
"""Strategies by their names in options and files; the first is the default."""

__all__ = ["STRATEGIES", "State", "Strategy", "Suggestion"]
