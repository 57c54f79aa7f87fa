# SPDX-License-Identifier: Apache-2.0
"""Show the progress of a campaign as lines on stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal

from quipu.modeling.printable import counted, printable

from .task import Outcome, Task

_LONG = 5.0  # seconds; the start of a run is shown if the run before took longer


class ProgressLines:
    """A `Progress` that prints lines on stderr. errors_only: print only errors."""

    def __init__(self, errors_only: bool = False) -> None:
        """Start without planned runs."""
        self._errors_only = errors_only
        self._total = self._before = self._done = 0
        self._seconds = 0.0
        self._last: float | None = None

    def planned(self, tasks: Sequence[Task], finished: int) -> None:
        """Store the number of runs to make. Print the number of runs that are complete already."""
        self._total, self._before = len(tasks) + finished, finished
        self._done, self._seconds = 0, 0.0
        if finished and not self._errors_only:
            runs = counted(self._total, "run", "runs")
            _say(f"{finished} of {runs} {'is' if finished == 1 else 'are'} complete already")

    def started(self, task: Task) -> None:
        """Print the start of a run. After a short run (`_LONG`) nothing is printed: the line at the end is enough."""
        if self._last is None or self._last > _LONG:
            self._draw(task.name, "", 0.0)

    def ended(self, outcome: Outcome) -> None:
        """Print how a run ended."""
        if outcome.goes_on:
            _say(f"error: {outcome.error}")
            return
        self._done += 1
        self._seconds += outcome.seconds
        self._last = outcome.seconds
        partial: Literal["partial", "failed"] = "failed" if outcome.archive is None else "partial"
        self._draw(outcome.task.name, partial if outcome.error else "ok", outcome.seconds)
        if outcome.error and not outcome.interrupted:  # after an interruption the command prints a line at its end
            _say(f"error: {outcome.error}")

    def note(self, text: str) -> None:
        """Print a note."""
        if not self._errors_only:
            _say(text)

    def _draw(self, name: str, outcome: Literal["", "ok", "partial", "failed"], seconds: float) -> None:
        if self._errors_only:
            return
        from quipu.report.terminal import campaign_line, console_for, layout_of
        from quipu.report.views import CampaignStep

        done = self._before + self._done
        self._total = max(self._total, done)  # more count-only runs may be made than were planned
        left = self._seconds / self._done * (self._total - done) if self._done else None
        console = console_for(sys.stderr)
        step = CampaignStep(done, self._total, name, outcome, seconds, left)
        console.print(campaign_line(step, layout_of(console)))


def _say(message: str) -> None:
    print(f"quipu: {printable(message)}", file=sys.stderr, flush=True)
