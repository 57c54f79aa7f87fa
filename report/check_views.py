# SPDX-License-Identifier: Apache-2.0
"""The results of checking expectations (`quipu check`), for every kind of output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from quipu.modeling.expectations import State

from .json_views import SCHEMA


@dataclass(frozen=True)
class Cause:
    """The cause of a change or growth: a text and its source location. line: 0 if unknown."""

    text: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class CheckResult:
    """The result of one rule (expectation) for one call path.

    - rule: the expectation as text. name: the name of the rule; empty if the user gave none. kind: the kind of rule.
    - path: the call path as text; if no call path matches the pattern of the rule, the pattern.
    - message: the measured result. file, line: source location of the region; empty and 0 if unknown.
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
    """Return a text with the number of results, and how many hold, fail and are undecided."""
    counts = {state: sum(one.state is state for one in results) for state in State}
    parts = [f"{count} {state.value}" for state, count in counts.items() if count or state is State.HELD]
    return f"{len(results)} expectation{'' if len(results) == 1 else 's'}: {', '.join(parts)}"


def check_json(title: str, results: Sequence[CheckResult]) -> dict[str, Any]:
    """Return the results of a check as a JSON document: "title", "ok" (whether all rules hold) and "results".

    Each result: "path", "rule", "name", "metric", "state" ("held", "failed", "undecided"), "message", "file", "line"
    (null if unknown), "causes" (each "text", "file", "line").
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
