# SPDX-License-Identifier: Apache-2.0
"""Results of a check of expectations, for every kind of output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from quipu.modeling.expectations import State

from .json_views import SCHEMA


@dataclass(frozen=True)
class Cause:
    """The cause of a change or growth: a text and a source location; line 0: unknown."""

    text: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class CheckResult:
    """The result of one rule for one call path.

    - rule: the expectation as text. name: the name of the rule, if the user gave one. kind: the kind of rule.
    - path: the call path as text, or the pattern without a match.
    - message: the measured result. file, line: of the region, "" and 0 if unknown.
    - causes: changed functions and lines, the largest change first.
    """

    rule: str
    path: str
    state: State
    message: str
    name: str = ""
    metric: str = ""
    file: str = ""
    line: int = 0
    causes: tuple[Cause, ...] = field(default=())
    kind: Literal["growth", "bound", "baseline"] = "growth"

    @property
    def held(self) -> bool:
        """Return whether the rule holds."""
        return self.state is State.HELD

    @property
    def title(self) -> str:
        """Return the rule and the call path as one text."""
        return f"{self.path}: {self.name or self.rule}"


def summary(results: Sequence[CheckResult]) -> str:
    """Return a sentence with the number of rules that hold."""
    counts = {state: sum(one.state is state for one in results) for state in State}
    parts = [f"{count} {state.value}" for state, count in counts.items() if count or state is State.HELD]
    return f"{len(results)} expectation{'' if len(results) == 1 else 's'}: {', '.join(parts)}"


def check_json(title: str, results: Sequence[CheckResult]) -> dict[str, Any]:
    """Return the results of a check: "title", "ok" (all hold) and "results".

    Each: "path", "rule", "name", "metric", "state" ("held", "failed", "undecided"), "message", "file", "line" (null if
    unknown), "causes" (each "text", "file", "line").
    """
    return {
        "format": "quipu-check",
        "schema": SCHEMA,
        "title": title,
        "ok": all(one.held for one in results),
        "results": [
            {
                **{key: getattr(one, key) for key in ("path", "rule", "name", "metric", "message", "file")},
                "state": one.state.value,
                "line": one.line or None,
                "causes": [{"text": own.text, "file": own.file, "line": own.line or None} for own in one.causes],
            }
            for one in results
        ],
    }
