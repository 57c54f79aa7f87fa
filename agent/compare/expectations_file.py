# SPDX-License-Identifier: Apache-2.0
"""The file of expectations about the effort of a program: a TOML file with one [[expect]] table per rule."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from quipu.modeling.documents import Number, toml_of, typed
from quipu.modeling.errors import FormatError, ModelingError
from quipu.modeling.expectations import Expectation, Scope, growth_of
from quipu.modeling.experiment import Metric
from quipu.modeling.limits import reading_file
from quipu.modeling.pmnf.model import parse_sum

_KEYS = {"experiment", "baseline", "expect"}
_RULES = ("grows", "grows_at_most", "at_most", "baseline")
_HEADER = re.compile(rb"[ \t]*\[\[[ \t]*expect[ \t]*\]\]")


@dataclass(frozen=True)
class _Rule:
    path: str
    metric: str | list[str] = "blocks"
    scope: Literal["inclusive", "exclusive"] = "inclusive"
    grows: str | dict[str, str] | None = None
    grows_at_most: str | dict[str, str] | None = None
    at_most: str | Number | None = None
    baseline: Literal["same", "at_most"] | None = None
    tolerance: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 0.0
    name: str = ""


@dataclass(frozen=True)
class _File:
    experiment: str | None = None
    baseline: str | None = None
    expect: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class ExpectationsFile:
    """The content of a file of expectations.

    experiment, baseline: the paths in the file, which are relative to its folder; None if the file does not give them.
    lines: number of the first line of each rule, from 1; None if unknown.
    """

    path: Path
    experiment: Path | None
    baseline: Path | None
    rules: tuple[_Rule, ...]
    lines: tuple[int | None, ...]

    @property
    def needs_baseline(self) -> bool:
        """Return whether a rule compares with the baseline."""
        return any(rule.baseline is not None for rule in self.rules)

    def expectations(self, parameters: Sequence[str], metrics: dict[str, Metric]) -> Iterator[Expectation]:
        """Yield the expectations of every rule, for each of its metrics.

        parameters, metrics: of the experiment to check. Raises FormatError for invalid growths and bounds, for metrics
        that were not measured, and for a comparison of a cost metric with a baseline.
        """
        for number, rule in enumerate(self.rules, start=1):
            where, line = f"expect {number} ({rule.path})", self.lines[number - 1]
            for metric in [rule.metric] if isinstance(rule.metric, str) else rule.metric:
                if metric not in metrics:
                    known = ", ".join(sorted(metrics)) or "none"
                    raise FormatError(
                        self.path, f"{where}: no metric {metric!r} was measured; there are: {known}", line
                    )
                if rule.baseline is not None and not metrics[metric].is_effort:
                    raise FormatError(
                        self.path, f"{where}: {metric} varies between runs; a baseline only contains effort", line
                    )
                try:
                    yield from _expectations(rule, metric, parameters)
                except ModelingError as error:
                    raise FormatError(self.path, f"{where}: {error}", line) from None


def read_expectations(path: Path) -> ExpectationsFile:
    """Read a file of expectations. Raises FormatError with the file and the wrong line or key.

    experiment = "heat.runs"             # the experiment to check; an argument of the command has priority
    baseline = "heat.baseline.json"      # written by quipu check --update-baseline; or an experiment
    [[expect]]
    path = "solve"                       # pattern for call paths (main->solve) or regions
    metric = "blocks"                    # or a list of metrics; blocks if not given
    scope = "inclusive"                  # or "exclusive"; inclusive if not given
    grows = "n*log2(n)"                  # fastest growing term in each parameter; here no growth with p is allowed
    [[expect]]
    path = "exchange"
    grows_at_most = {n = "n^2"}          # only the growth with n is checked; slower growth is allowed
    metric = "bytes_sent"
    tolerance = 0.1                      # an absolute difference for exponents, a relative one for values
    at_most = "48*n^2 + 100"             # limit at every configuration: a sum of products, or a number
    baseline = "same"                    # equal to the baseline; or "at_most": not larger than the baseline
    """
    with reading_file(path) as content:
        data = toml_of(content, path)
    if unknown := sorted(data.keys() - _KEYS):
        raise FormatError(path, f"{unknown[0]} is unknown; a file of expectations has {', '.join(sorted(_KEYS))}")
    found = typed(data, _File, path)
    if not found.expect:
        raise FormatError(path, "contains no expectation: write a table [[expect]]")
    lines = _lines(content, len(found.expect))
    rules = tuple(
        _rule(path, rule, at, line) for at, (rule, line) in enumerate(zip(found.expect, lines, strict=True), 1)
    )
    return ExpectationsFile(path, _below(path, found.experiment), _below(path, found.baseline), rules, lines)


def _lines(content: bytes, count: int) -> tuple[int | None, ...]:
    """Return the line numbers of the tables [[expect]]; None for each rule if the rules are written as a list."""
    found = [number for number, text in enumerate(content.splitlines(), start=1) if _HEADER.match(text)]
    return tuple(found) if len(found) == count else (None,) * count


def _rule(path: Path, table: object, number: int, line: int | None) -> _Rule:
    """Return a checked rule of the file. number: number of the rule, from 1. Raises FormatError for an invalid rule."""
    where = f"expect {number}"
    known = set(_Rule.__dataclass_fields__)
    if not isinstance(table, dict):
        raise FormatError(path, f"{where} must be a table", line)
    if unknown := sorted(table.keys() - known):
        raise FormatError(
            path, f"{where}: {unknown[0]} is unknown; a table [[expect]] has {', '.join(sorted(known))}", line
        )
    try:
        rule = typed(table, _Rule, path, whole="")
    except FormatError as error:
        raise FormatError(path, f"{where}: {error.message}", line) from None
    if not any(getattr(rule, key) is not None for key in _RULES):
        raise FormatError(path, f"{where} ({rule.path}): contains no rule; give one of {', '.join(_RULES)}", line)
    if {} in (rule.grows, rule.grows_at_most):
        message = 'a growth contains no parameter; write for example { n = "n^2" }'
        raise FormatError(path, f"{where} ({rule.path}): {message}", line)
    if rule.metric == []:
        raise FormatError(path, f"{where} ({rule.path}): metric is an empty list", line)
    return rule


def _below(path: Path, name: str | None) -> Path | None:
    return None if name is None else path.parent / name


def _expectations(rule: _Rule, metric: str, parameters: Sequence[str]) -> Iterator[Expectation]:
    """Yield one expectation for each condition of a rule on a metric. Raises ModelingError for an invalid formula."""
    scope: Scope = rule.scope
    for text, at_most in ((rule.grows, False), (rule.grows_at_most, True)):
        if text is not None:
            growth = growth_of(text, parameters, at_most)
            yield Expectation(rule.path, metric, scope, growth, tolerance=rule.tolerance, name=rule.name)
    if rule.at_most is not None:
        bound = str(rule.at_most)
        parse_sum(bound, parameters)
        yield Expectation(rule.path, metric, scope, bound=bound, tolerance=rule.tolerance, name=rule.name)
    if rule.baseline is not None:
        yield Expectation(rule.path, metric, scope, baseline=rule.baseline, tolerance=rule.tolerance, name=rule.name)
