# SPDX-License-Identifier: Apache-2.0
"""Choosing what to measure next: the search space, and strategies behind one interface.

Constants stand in the file that uses them, those of strategies from papers with their source; where one changes,
benchmarks/selection_study.py and selection_campaign.py must give the same figures again.
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
"""By the name that users give them; the first is the default."""

__all__ = ["STRATEGIES", "State", "Strategy", "Suggestion"]
