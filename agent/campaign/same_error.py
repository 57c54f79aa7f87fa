# SPDX-License-Identifier: Apache-2.0
"""When runs fail one after the other with the same error at their start, so that the rest would, too."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .task import Outcome, Task

_LEAST = 5  # runs in a row
_START = 60.0  # seconds; what fails later did not fail at its start
# What differs between two runs that fail alike: files and their folders, how many ranks there were, and processes.
_OWN = re.compile(r"\S*/\S*|\b\d+(?= (?:processes|ranks)\b)|\bprocess(?:es)? \d+(?:, \d+)*")


class SameError:
    """Counts runs that failed in a row with the same error.

    That one value of a parameter cannot be run says nothing about the others: the runs must have two values of each
    parameter that varies.
    """

    def __init__(self) -> None:
        """No run has failed."""
        self._failed: list[Outcome] = []

    def look(self, outcome: Outcome, tasks: Sequence[Task]) -> str:
        """Take what became of a run; return what to tell the user if the rest is not worth a try, else "".

        tasks: all that are to be done, with that run.
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
            "what the program wrote says why. Correct it and repeat the command, which goes on with the runs that are "
            "missing; --keep-going tries all of them"
        )


def _kind(outcome: Outcome) -> str:
    return _OWN.sub("", outcome.error)


def _varying(tasks: Sequence[Task]) -> set[str]:
    """Return the parameters that have several values."""
    names = tasks[0].parameters if tasks else ()
    return {name for name in names if len({task.parameters[name] for task in tasks}) > 1}
