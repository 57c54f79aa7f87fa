# SPDX-License-Identifier: Apache-2.0
"""Check the expectations of a file against an experiment and a baseline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.callpath_text import steps_of
from quipu.modeling.errors import FormatError, ModelingError, UsageError
from quipu.modeling.expectations import (
    Expectation,
    Outcome,
    State,
    check_baseline,
    check_bound,
    check_growth,
)
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.short_names import plain_names
from quipu.report.check_views import Cause, CheckResult
from quipu.report.formats.fnmatch import matches
from quipu.report.text import point_text, quantity

from .causes import carried, changed
from .expectations_file import ExpectationsFile
from .sides import Pair, Side, paired


def check(file: ExpectationsFile, side: Side, baseline: Side | None) -> list[CheckResult]:
    """Return one result for each expectation and each call path that it matches, in the order of the file.

    side: the experiment to check. baseline: None if there is none. Raises FormatError for an expectation that does not
    fit the experiment, UsageError if an expectation needs a baseline and there is none, MeasurementError if experiment
    and baseline have no common configuration.
    """
    if file.needs_baseline and baseline is None:
        raise UsageError(
            f"{file.path}: a rule compares with a baseline, but none is given: write baseline = FILE, or give "
            "--baseline FILE"
        )
    expectations = list(file.expectations(side.experiment.parameters, side.experiment.metrics))
    pair = None if baseline is None else paired(baseline, side)
    checker = _Checker(side, pair, {one.metric for one in expectations if one.growth is not None})
    return [result for one in expectations for result in _results(file, checker, one)]


def _results(file: ExpectationsFile, checker: _Checker, one: Expectation) -> list[CheckResult]:
    """Return the results of one expectation.

    Raises FormatError with the file if the formula of a bound (`at_most`) has no value at a point.
    """
    try:
        return list(checker.results(one))
    except ModelingError as error:
        if one.bound is None:
            raise
        raise FormatError(file.path, f"at_most of {one.pattern}: {error}") from None


class _Checker:
    def __init__(self, side: Side, pair: Pair | None, modeled: set[str]) -> None:
        self.side, self.pair = side, pair
        data = side.experiment
        self.analysis: Analysis | None = None
        if modeled:
            self.analysis = analyze(data.only({*modeled, "visits"}))

    def results(self, one: Expectation) -> Iterator[CheckResult]:
        """Yield the result for each matching call path. Yield one failed result if no call path matches."""
        data = self._data(one)
        paths = matching(data.tree, one.pattern)
        if not paths:
            message = f"no call path or region matches {one.pattern}"
            yield CheckResult(one.rule, one.pattern, State.FAILED, message, one.name, one.metric, kind=_kind(one))
        for path in paths:
            yield self._result(one, data, self._outcome(one, data, path))

    def _data(self, one: Expectation) -> Experiment:
        return self.pair.after if one.baseline is not None and self.pair is not None else self.side.experiment

    def _outcome(self, one: Expectation, data: Experiment, path: int) -> Outcome:
        if one.growth is not None:
            assert self.analysis is not None
            return check_growth(one, self.analysis, data.points, path)
        values = _values(data, one)[path]
        if one.bound is not None:
            return check_bound(one, data, values, path)
        assert self.pair is not None
        if one.metric not in self.pair.before.values:
            message = f"the baseline has no {one.metric}"
            return Outcome(one, path, data.tree.label(path), State.UNDECIDED, message)
        return check_baseline(one, data, values, _values(self.pair.before, one)[path], path)

    def _result(self, one: Expectation, data: Experiment, outcome: Outcome) -> CheckResult:
        region = data.tree.region_of(outcome.path)
        return CheckResult(
            one.rule,
            outcome.label,
            outcome.state,
            _message(outcome, data),
            one.name,
            one.metric,
            region.file,
            region.line,
            () if outcome.state is State.HELD else self._causes(one, outcome),
            _kind(one),
        )

    def _causes(self, one: Expectation, outcome: Outcome) -> tuple[Cause, ...]:
        inclusive = one.scope == "inclusive"
        causes: tuple[Cause, ...] = ()
        if one.growth is not None and self.analysis is not None:
            causes = carried(outcome, self.analysis, self.side, inclusive)
        if self.pair is None or one.metric not in self.pair.before.values:
            return causes
        if one.baseline is None:  # the path is an index in the tree of the side; find its index in the tree of the pair
            path = next(
                node
                for node in range(len(self.pair.after.tree))
                if self.pair.after.tree.key(node) == self.side.experiment.tree.key(outcome.path)
            )
            outcome = Outcome(one, path, outcome.label, outcome.state, outcome.message, point=outcome.point)
        return causes + changed(self.pair, outcome, inclusive)


def matching(tree: CallTree, pattern: str) -> list[int]:
    """Return the call paths (indices) that match a pattern.

    A pattern matches a call path if it matches its whole text (`main->solve`), or if its steps (`solve->sort`) match
    the last regions of the call path. A region can be given by its displayed name, by its linker name, or by its
    displayed name without arguments and scopes.
    """
    steps = steps_of(pattern)
    fits = [[any(matches(step, name) for name in _names(region)) for region in tree.regions] for step in steps]
    found = []
    for path in range(len(tree)):
        chain = tree.ancestry(path)[-len(steps) :]
        whole = len(chain) == len(steps) and all(
            step[tree.region[node]] for step, node in zip(fits, chain, strict=True)
        )
        if whole or matches(pattern, tree.label(path)):
            found.append(path)
    return found


def _names(region: Region) -> tuple[str, ...]:
    return region.display, region.name, *plain_names(region.display)


def _kind(one: Expectation) -> Literal["growth", "bound", "baseline"]:
    return "growth" if one.growth is not None else "bound" if one.bound is not None else "baseline"


def _values(data: Experiment, one: Expectation) -> FloatArray:
    return data.inclusive(one.metric) if one.scope == "inclusive" else data.values[one.metric]


def _message(outcome: Outcome, data: Experiment) -> str:
    if not outcome.point or outcome.state is not State.FAILED:
        return outcome.message
    unit = data.metric(outcome.expectation.metric).unit
    texts = [quantity(value, unit) for value in (outcome.value, outcome.limit)]
    if texts[0] == texts[1]:
        texts = [f"{value:.15g}" for value in (outcome.value, outcome.limit)]
    place = point_text(tuple(outcome.point), outcome.point.values())
    return f"{texts[0]} at {place}, expected {texts[1]}: {outcome.message}"
