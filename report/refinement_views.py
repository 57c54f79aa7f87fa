# SPDX-License-Identifier: Apache-2.0
"""View of the iterations of a refinement (`quipu refine`), for the report.

Each iteration selects regions, builds the program with this filter, and measures the overhead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .json_views import json_number
from .text import uncertain_percent


@dataclass(frozen=True)
class RefinementRow:
    """One iteration.

    - number: of the iteration. marked: number of regions in its filter. executed: number of these that were executed.
      added, dropped: number of regions that it added and removed; None in the first iteration.
    - overhead: measured overhead. start_and_end: cost of starting and ending the measurement, not part of `overhead`.
      predicted: overhead that was predicted. All are shares of the processor time without instrumentation. error: error
      of `overhead`, in the same unit.
    - coverage: share of the selected regions in the exclusive time of the reference run; None if unknown.
    - within: whether the overhead is within the budget; None if the runs are too noisy to decide.
    - seconds: time for building, running and analyzing.
    """

    number: int
    marked: int
    executed: int
    added: int | None
    dropped: int | None
    overhead: float
    start_and_end: float
    predicted: float | None
    coverage: float | None
    within: bool | None
    seconds: float
    error: float = 0.0

    @property
    def overhead_text(self) -> str:
        """Return the overhead as text, or the error of the overhead if the error is larger."""
        return uncertain_percent(self.overhead, self.error)


@dataclass(frozen=True)
class RefinementPanel:
    """All iterations of a refinement. budget: the largest allowed overhead (share); None if it was not stored."""

    place: str
    budget: float | None
    rows: tuple[RefinementRow, ...]

    @property
    def summary(self) -> str:
        """Return a sentence about the last iteration: its regions, its overhead, and whether the budget allows it."""
        last = self.rows[-1]
        count = f"{len(self.rows)} iteration{'' if len(self.rows) == 1 else 's'}"
        regions = f"{last.marked} region{'' if last.marked == 1 else 's'}"
        overhead = last.overhead_text.replace("%", " %")
        text = f"{count}; the last measures {regions} with an overhead of {overhead}"
        if self.budget is None:
            return text
        state = {True: "within", False: "above", None: "too noisy to compare with"}[last.within]
        return f"{text}, {state} the budget of {100 * self.budget:.3g} %"


def refinement_data(panel: RefinementPanel | None) -> dict[str, Any] | None:
    """Return the data of the plots of a refinement for the report; None without a refinement."""
    if panel is None:
        return None
    names = ("number", "marked", "executed", "overhead", "predicted", "coverage")
    rows = [
        {name: None if getattr(row, name) is None else json_number(getattr(row, name)) for name in names}
        for row in panel.rows
    ]
    return {"budget": None if panel.budget is None else json_number(panel.budget), "rows": rows}
