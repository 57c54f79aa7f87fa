# SPDX-License-Identifier: Apache-2.0
"""The [refine] table of a campaign file: options for `quipu refine`, which selects the regions to instrument.

PIRA and PIRA II are tools that refine instrumentation in the same way; see docs/refine.md.
"""

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
"""Default of the largest number of iterations. An iteration is a build, its runs and an analysis. PIRA's default."""


@dataclass(frozen=True)
class RefinePlan:
    """Options for the selection of regions in each iteration.

    - at: the point at which regions are ranked, by parameter; empty: one mean step beyond the measured points, as in
      PIRA II.
    - overhead: the budget, as a share of the processor time without instrumentation.
    - strategy: one of `STRATEGIES`. iterations: largest number of iterations.
    - threshold: smallest share of the time of the program without MPI for a region to be selected. Regions on the way
      from main to a selected region may have less.
    - filtering: "compile": build again for each selection; "run": build once, and filter at run time.
    - program: the binary with the call graph, relative to the folder of the campaign file; "" if the strategy needs
      none.
    - statements: threshold of the strategies of PIRA for the number of statements, see `threshold_of`.
    - seconds: the strategies of PIRA keep functions with at least this inclusive time.
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
    """Return the content of the table. Raises FormatError with `source` (the file) and the wrong key.

    parameters: names of the parameters of the campaign.

    [refine]
    at = {p = 1024, n = 6000}            # the point at which regions are ranked; optional, like all other keys
    overhead = 0.05                      # largest share of the run time
    iterations = 3                       # largest number of iterations
    threshold = 0.001                    # smallest share of the time without MPI for a region to be selected
    filtering = "compile"                # build again for each selection; "run": build once
    strategy = "budget"                  # or a strategy of PIRA: "filter", "expand", "static"
    program = "app"                      # for PIRA: the binary with the call graph
    statements = "unique-median"         # for PIRA: or "median", "maximum" or a number
    seconds = 0.1                        # for PIRA: smallest inclusive time of a function that is kept
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
            raise FormatError(source, f"refine.{key}: {value!r} is unknown; choose one of {', '.join(known)}")
    statements = threshold_of(found.statements)
    if statements is None:
        raise FormatError(
            source, f"refine.statements: {found.statements!r} is unknown; choose one of {', '.join(THRESHOLDS)}"
        )
    if "\0" in found.program or found.program.isspace():
        raise FormatError(source, f"refine.program: {found.program!r} is not the name of a file")
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
