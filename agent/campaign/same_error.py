# SPDX-License-Identifier: Apache-2.0
"""Detect several runs in a row that fail at their start with the same error. All other runs would fail, too."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .task import Outcome, Task

_LEAST = 5  # smallest number of failed runs in a row
_START = 60.0  # a run that fails after more seconds did not fail at its start
# Parts that may differ in two messages of the same error: paths, numbers of ranks, and process ids.
_OWN = re.compile(r"\S*/\S*|\b\d+(?= (?:processes|ranks)\b)|\bprocess(?:es)? \d+(?:, \d+)*")


class SameError:
    """Counts runs in a row that failed with the same error.

    The failed runs must have at least two values of each varying parameter, because an error for one value does not
    mean that other values fail.
    """

    def __init__(self) -> None:
        """Start without failed runs."""
        self._failed: list[Outcome] = []

    def look(self, outcome: Outcome, tasks: Sequence[Task]) -> str:
        """Record the outcome of a run; return a message for the user if the other runs would fail, too, otherwise "".

        tasks: all runs of the batch, including this run.
        """
        if not outcome.error or outcome.seconds > _START:
            self._failed = []
            return ""
        if self._failed and _kind(self._failed[-1]) != _kind(outcome):
            self._failed = []
        self._failed.append(outcome)
        if len(self._failed) < _LEAST or _varying([one.task for one in self._failed]) < _varying(tasks):
            return ""
        return (
            f"stopped: {len(self._failed)} runs in a row failed at their start with the same error ({outcome.error}); "
            "see the output of the program. Correct the error and repeat the command, which continues with the "
            "missing runs; --keep-going tries all of them"
        )


def _kind(outcome: Outcome) -> str:
    return _OWN.sub("", outcome.error)


def _varying(tasks: Sequence[Task]) -> set[str]:
    """Return the parameters with several values."""
    names = tasks[0].parameters if tasks else ()
    return {name for name in names if len({task.parameters[name] for task in tasks}) > 1}
