# SPDX-License-Identifier: Apache-2.0
"""The [search] table of a campaign file: choose runs for a prediction, instead of all points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from quipu.modeling.design import STRATEGIES
from quipu.modeling.design.program import Budget
from quipu.modeling.design.space import Constraint
from quipu.modeling.documents import Positive, typed
from quipu.modeling.errors import FormatError, ModelingError

_PATIENCE = 3
"""Default number of batches without improvement after which a search ends. It is λ of the termination criterion of
Ritter et al., section III (titles of papers: docs/methods.md)."""


@dataclass(frozen=True)
class SearchPlan:
    """The options with which a search chooses the runs of a campaign.

    - target: the point to predict, by parameter.
    - budget: limit of the cost of all runs.
    - strategy: a name in `STRATEGIES`. batch: number of runs before the models are fitted again.
    - constraints: conditions that points must fulfil, see `Constraint`.
    - ranks: the parameter that is the number of ranks; "1" if runs have one rank; "" to detect it from the names.
    - patience: the search ends after this number of batches without improvement of the prediction; 0: no limit.
    """

    target: dict[str, float]
    budget: Budget
    strategy: str
    batch: int
    constraints: tuple[str, ...]
    ranks: str
    patience: int


@dataclass
class _Table:
    budget: str | Annotated[float, msgspec.Meta(gt=0, le=1e300)]
    strategy: str = "posterior"
    batch: Positive = 4
    constraints: list[str] = field(default_factory=list)
    ranks: str = ""
    patience: Annotated[int, msgspec.Meta(ge=0, le=1000)] = _PATIENCE
    target: dict[str, Annotated[float, msgspec.Meta(gt=0, le=1e300)]] = field(default_factory=dict)


_KEYS = {"target", "budget", "strategy", "batch", "constraints", "ranks", "patience"}


def read_search(
    table: object, parameters: Sequence[str], source: object, declared: Mapping[str, float] | None = None
) -> SearchPlan:
    """Return the content of the table. Raises FormatError with `source` (the file) and the wrong key.

    parameters: names of the parameters. declared: the table [target] of the file; None or empty: no such table.

    [search]
    target = {p = 1024, n = 6000}        # the point to predict; not allowed if the file has a table [target]
    budget = "10%"                       # of the cost of all points and repetitions; or core hours: 2.5
    strategy = "posterior"               # optional, like all following keys
    batch = 4                            # runs before the models are fitted again
    constraints = ["is_cube(p)", "n % 10 == 0"]  # only points that fulfil all of them are candidates
    ranks = "p"                          # the parameter that is the number of ranks; "1" if there is none
    patience = 3                         # end after 3 batches without improvement; 0: only at the end of the budget
    """
    if not isinstance(table, dict):
        raise FormatError(source, "search: should be a table: [search]")
    if unknown := sorted(table.keys() - _KEYS):
        raise FormatError(source, f"search.{unknown[0]} is unknown; [search] has {', '.join(sorted(_KEYS))}")
    found = typed(table, _Table, source, "search")
    if declared and found.target:
        raise FormatError(source, "search.target: the table [target] also gives the target: remove one of them")
    target = found.target or dict(declared or {})
    if set(target) != set(parameters):
        names = ", ".join(parameters) or "no parameter"
        raise FormatError(source, f"search.target needs a value for each of: {names}")
    if found.strategy not in STRATEGIES:
        raise FormatError(
            source, f"search.strategy: {found.strategy!r} is unknown; choose one of {', '.join(STRATEGIES)}"
        )
    if found.ranks not in ("", "1", *parameters):
        raise FormatError(source, f"search.ranks: {found.ranks!r} is neither a parameter nor 1")
    try:
        budget = Budget.parse(str(found.budget))
        for text in found.constraints:
            Constraint(text, parameters)
    except ModelingError as error:
        raise FormatError(source, f"search: {error}") from error
    target = {name: float(target[name]) for name in parameters}
    constraints = tuple(found.constraints)
    return SearchPlan(target, budget, found.strategy, found.batch, constraints, found.ranks, found.patience)
