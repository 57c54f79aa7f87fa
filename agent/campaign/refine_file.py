# SPDX-License-Identifier: Apache-2.0
"""The [refine] table of a campaign file: how the cycle of build, run and analysis chooses what to instrument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from quipu.modeling.documents import Positive, typed
from quipu.modeling.errors import FormatError
from quipu.modeling.refine.budget import RELEVANT
from quipu.modeling.refine.static import SECONDS, THRESHOLDS, Threshold, threshold_of

STRATEGIES = ("budget", "filter", "expand", "static")
FILTERING = ("compile", "run")
_ITERATIONS = 3
"""Most iterations if the user says nothing, as in PIRA."""


@dataclass(frozen=True)
class RefinePlan:
    """How regions are selected from one iteration to the next.

    at: the target, by parameter; empty: one mean step beyond the measured points, as in PIRA II. overhead: the budget,
    as a share of the run time. strategy: one of `STRATEGIES`. iterations: at most so many. threshold: the share of
    the program from which on a region matters. filtering: one of `FILTERING`. program: the binary with the call graph,
    below the folder of the file; empty if the strategy needs none. statements: see `statement_threshold`; seconds:
    absolute threshold of the strategies of PIRA.
    """

    at: dict[str, float]
    overhead: float
    strategy: str
    iterations: int
    threshold: float
    filtering: str
    program: str
    statements: Threshold
    seconds: float


Share = Annotated[float, msgspec.Meta(gt=0, le=1)]


@dataclass
class _Table:
    at: dict[str, Annotated[float, msgspec.Meta(gt=0, le=1e300)]] = field(default_factory=dict)
    overhead: Share = 0.05
    strategy: str = "budget"
    iterations: Annotated[int, msgspec.Meta(ge=1, le=100)] = _ITERATIONS
    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] = RELEVANT
    filtering: str = "compile"
    program: str = ""
    statements: str | Positive = "unique-median"
    seconds: Annotated[float, msgspec.Meta(gt=0, le=1e300)] = SECONDS


def read_refine(table: object, parameters: Sequence[str], source: object) -> RefinePlan:
    """Return the content of the table. Raises FormatError that names `source` and the key at fault.

    [refine]
    at = {p = 1024, n = 6000}            # where regions are to matter; optional, as are all others
    overhead = 0.05                      # of the run time, at most
    iterations = 3                       # at most
    threshold = 0.001                    # of the program, from which on a region matters
    filtering = "compile"                # builds anew for each selection; "run": builds once
    strategy = "budget"                  # or PIRA's: "filter", "expand", "static", which need
    program = "app"                      # the binary, for its call graph,
    statements = "unique-median"         # "median", "maximum" or a number, and
    seconds = 0.1                        # the inclusive time from which on a function is kept
    """
    if not isinstance(table, dict):
        raise FormatError(source, "refine: should be a table: [refine]")
    keys = set(_Table.__dataclass_fields__)
    if unknown := sorted(table.keys() - keys):
        raise FormatError(source, f"refine.{unknown[0]} is unknown; [refine] has {', '.join(sorted(keys))}")
    found = typed(table, _Table, source, "refine")
    if found.at and set(found.at) != set(parameters):
        raise FormatError(source, f"refine.at needs a value for each of: {', '.join(parameters) or 'no parameter'}")
    for key, value, known in (("strategy", found.strategy, STRATEGIES), ("filtering", found.filtering, FILTERING)):
        if value not in known:
            raise FormatError(source, f"refine.{key}: {value!r} is none of {', '.join(known)}")
    statements = threshold_of(found.statements)
    if statements is None:
        raise FormatError(source, f"refine.statements: {found.statements!r} is none of {', '.join(THRESHOLDS)}")
    if "\0" in found.program or found.program.isspace():
        raise FormatError(source, f"refine.program: {found.program!r} is no name of a file")
    if found.strategy != "budget" and not found.program:
        raise FormatError(source, f'refine.program is missing: strategy = "{found.strategy}" needs the call graph')
    return RefinePlan(
        {name: float(found.at[name]) for name in parameters} if found.at else {},
        found.overhead,
        found.strategy,
        found.iterations,
        found.threshold,
        found.filtering,
        found.program,
        statements,
        found.seconds,
    )
