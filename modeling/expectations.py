# SPDX-License-Identifier: Apache-2.0
"""Check expectations about the effort of a program: its growth, bounds, and equality with an earlier measurement.

Effort does not depend on the load of the machine. One run of each of a few small configurations is therefore enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Literal

import numpy as np

from .analysis import Analysis
from .errors import ModelingError
from .experiment import Experiment, FloatArray
from .pmnf.model import (
    LARGEST_POWER,
    Exponents,
    Model,
    Term,
    lead_exponents,
    parse_product,
    parse_sum,
    recursion_of,
)

LEAST_VALUES = 4
"""Smallest number of values of a parameter that determine a growth. Three values are not enough: n^(8/3)·log2(n) and
n³ + 2n² + 3n + 3 may both fit."""
_CONSTANT: Exponents = (Fraction(0), 0)
_DOUBT = 0.05
"""A result is undecided if the hypotheses with the opposite result have a larger posterior weight than this."""

Scope = Literal["inclusive", "exclusive"]


class State(Enum):
    """The result of an expectation. UNDECIDED: the measurements do not determine whether the expectation holds."""

    HELD = "held"
    FAILED = "failed"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Growth:
    """Expected growth.

    - exponents: for each checked parameter x, the exponents (i, j) of x^i·log2(x)^j.
    - text: the growth as the user wrote it.
    - at_most: whether slower growth is allowed, too.
    """

    text: str
    exponents: Mapping[str, Exponents]
    at_most: bool = False


@dataclass(frozen=True)
class Expectation:
    """One expectation about one metric of the call paths that match a pattern.

    Exactly one of growth, bound and baseline is set.

    - bound: a formula, such as "48*n^2", for the largest allowed value at each configuration, in the unit of the
      metric.
    - baseline: "same" (values equal the baseline, an earlier measurement), or "at_most" (values are not above it).
    - tolerance: relative for bounds and baselines, absolute for exponents. If it is above 0, logarithms are ignored.
    - name: name in reports; "": the text of the rule.
    """

    pattern: str
    metric: str
    scope: Scope
    growth: Growth | None = None
    bound: str | None = None
    baseline: Literal["same", "at_most"] | None = None
    tolerance: float = 0.0
    name: str = ""

    @property
    def rule(self) -> str:
        """Return the expectation as text."""
        if self.growth is not None:
            words = "grows at most like" if self.growth.at_most else "grows like"
            return f"{self.metric} {words} {self.growth.text}"
        if self.bound is not None:
            return f"{self.metric} is at most {self.bound}"
        return f"{self.metric} is {'not above' if self.baseline == 'at_most' else 'that of'} the baseline"


@dataclass(frozen=True)
class Outcome:
    """The result of one expectation for one call path; path -1: no call path matches the pattern.

    message: the result as text. value, limit, point: the value that deviates most, its limit, and its configuration;
    value and limit are NaN for expectations of growth.
    """

    expectation: Expectation
    path: int
    label: str
    state: State
    message: str
    value: float = math.nan
    limit: float = math.nan
    point: Mapping[str, float] = field(default_factory=dict)


def growth_of(text: str | Mapping[str, str], parameters: Sequence[str], at_most: bool) -> Growth:
    """Return the expected growth that a text describes.

    text: a product such as "n*log2(n)" or "constant", for all parameters, or one such text for each of some parameters.
    parameters: the parameters of the experiment. at_most: as in `Growth`. Raises ModelingError if a text is not a
    product, or contains an unknown parameter.
    """
    named = dict.fromkeys(parameters, text) if isinstance(text, str) else dict(text)
    if unknown := [name for name in named if name not in parameters]:
        raise ModelingError(f"no parameter {', '.join(unknown)}; the experiment has: {', '.join(parameters) or 'none'}")
    exponents = {}
    for name, growth in named.items():
        term = Term(1.0, ()) if growth.strip() == "constant" else parse_product(growth, parameters, divides=True)
        used = {own for factor in term.factors for own in factor.parameters}
        if not isinstance(text, str) and (others := used - {name}):
            raise ModelingError(f"growth {growth!r} in {name} has the parameter {', '.join(sorted(others))}")
        exponents[name] = term.exponents(name)
    written = text if isinstance(text, str) else ", ".join(f"{value} in {name}" for name, value in named.items())
    return Growth(written, exponents, at_most)


def check_growth(expectation: Expectation, analysis: Analysis, points: FloatArray, path: int) -> Outcome:
    """Return whether the models of a call path grow as expected. points: the configurations, shape (C, parameters)."""
    assert expectation.growth is not None
    inclusive = expectation.scope == "inclusive" and analysis.metrics[expectation.metric].over_locations == "sum"
    nodes = analysis.subtree(path) if inclusive else (path,)
    entries = analysis.models(expectation.metric)
    models = [model for node in nodes if isinstance(model := entries[node].model, Model)]
    label = analysis.tree.label(path)
    if len(models) < len(nodes):
        missing = next(node for node in nodes if not isinstance(entries[node].model, Model))
        return Outcome(expectation, path, label, State.UNDECIDED, f"{analysis.tree.label(missing)} has no model")
    found = _leads(models)
    whole = analysis.models(expectation.metric, inclusive)[path].model
    text = f"{order_text(found)}: {whole}"
    open_questions = []
    for name, expected in expectation.growth.exponents.items():
        values = np.unique(points[:, analysis.parameters.index(name)]).size
        if values < 2 or (values < LEAST_VALUES and not expected == found[name] == _CONSTANT):
            open_questions.append(f"{name} has {values} value{'' if values == 1 else 's'}")
        elif not _fits(expectation, {name: found[name]}):
            open_questions.clear()
            break
    if open_questions:
        reason = f"{' and '.join(open_questions)}, measure at least {LEAST_VALUES} (so far: {text})"
        return Outcome(expectation, path, label, State.UNDECIDED, reason)
    holds = _fits(expectation, found)
    doubt = _doubt(expectation, models, holds)
    if doubt > _DOUBT:
        other = "does not hold" if holds else "holds"
        message = f"{text}; but the expectation {other} for hypotheses of weight {doubt:.0%}: measure more values"
        return Outcome(expectation, path, label, State.UNDECIDED, message)
    return Outcome(expectation, path, label, State.HELD if holds else State.FAILED, text)


def order_text(leads: Mapping[str, Exponents]) -> str:
    """Return leading exponents by parameter as text: `n^2·log2(n)`, `4^n`, `constant`."""
    parts = []
    for name, (power, log) in leads.items():
        if power >= LARGEST_POWER:
            parts.append(
                f"{2.0 ** float(power / LARGEST_POWER):.4g}^{name}"
                + (f"·{name}" if log else "")
                + (f"^{log}" if log > 1 else "")
            )
            continue
        if power:
            exponent = f"log2({calls})" if (calls := recursion_of(power)) else f"({power})"
            parts.append(name if power == 1 else f"{name}^{power}" if power.denominator == 1 else f"{name}^{exponent}")
        if log:
            parts.append(f"log2({name})" + (f"^{log}" if log != 1 else ""))
    return "·".join(parts) or "constant"


def _leads(models: Sequence[Model]) -> dict[str, Exponents]:
    """Return the leading exponents of a sum of models, by parameter."""
    names = models[0].parameters if models else ()
    return {name: max(model.lead(name) for model in models) for name in names}


def _fits(expectation: Expectation, found: Mapping[str, Exponents]) -> bool:
    assert expectation.growth is not None
    return all(
        _fits_one(expected, found.get(name, expected), expectation.growth.at_most, expectation.tolerance)
        for name, expected in expectation.growth.exponents.items()
    )


def _fits_one(expected: Exponents, found: Exponents, at_most: bool, tolerance: float) -> bool:
    if tolerance == 0:
        return found <= expected if at_most else found == expected
    distance = float(found[0] - expected[0])
    return distance <= tolerance if at_most else abs(distance) <= tolerance


def _doubt(expectation: Expectation, models: Sequence[Model], holds: bool) -> float:
    """Return the posterior weight of hypotheses with the opposite result.

    models: the models of the parts of a sum; their hypotheses count as independent. holds: the result of the likeliest
    hypotheses.
    """
    certain = 1.0
    for place, model in enumerate(models):
        others = [*models[:place], *models[place + 1 :]]
        weight = 0.0
        for other in model.alternatives:
            leads = {name: lead_exponents(other.terms, other.constant, name) for name in model.parameters}
            rest = _leads(others)
            both = {name: max(lead, rest.get(name, lead)) for name, lead in leads.items()}
            weight += float(other.weight) * (_fits(expectation, both) != holds)
        certain *= 1.0 - min(1.0, weight)
    return 1.0 - certain


def check_bound(expectation: Expectation, experiment: Experiment, values: FloatArray, path: int) -> Outcome:
    """Return whether no value of a call path is above the bound, at any configuration.

    values: shape (configurations, repetitions), NaN if missing. Raises ModelingError if the bound is not a sum of
    products, or has no finite value at a measured point.
    """
    assert expectation.bound is not None
    limits = parse_sum(expectation.bound, experiment.parameters).evaluate(experiment.points)
    return _compared(expectation, experiment, path, highest(values), limits * (1.0 + expectation.tolerance))


def check_baseline(
    expectation: Expectation, experiment: Experiment, values: FloatArray, before: FloatArray, path: int
) -> Outcome:
    """Return whether the values of a call path equal the baseline, or are not above it.

    values, before: shape (configurations, repetitions); NaN if missing. Only configurations with both are compared.
    """
    low, high = lowest(before), highest(before)
    with_room = high * (1.0 + expectation.tolerance)
    outcome = _compared(expectation, experiment, path, highest(values), with_room)
    if outcome.state is State.HELD and expectation.baseline == "same":
        least = low * (1.0 - expectation.tolerance)
        return _compared(expectation, experiment, path, lowest(values), least, below=True)
    return outcome


def highest(values: FloatArray) -> FloatArray:
    """Return the largest repetition of each configuration; NaN where nothing was measured."""
    return np.asarray(np.fmax.reduce(values, axis=1))


def lowest(values: FloatArray) -> FloatArray:
    """Return the smallest repetition of each configuration; NaN where nothing was measured."""
    return np.asarray(np.fmin.reduce(values, axis=1))


def _compared(
    expectation: Expectation,
    experiment: Experiment,
    path: int,
    values: FloatArray,
    limits: FloatArray,
    below: bool = False,
) -> Outcome:
    """Return whether no value is above its limit (below, with `below`), and the configuration that deviates most.

    values, limits: shape (configurations,); NaN if missing.
    """
    label = experiment.tree.label(path)
    known = ~np.isnan(values) & ~np.isnan(limits)
    if not known.any():
        return Outcome(
            expectation, path, label, State.UNDECIDED, f"{expectation.metric} was not measured on both sides"
        )
    excess = np.where(known, (limits - values) if below else (values - limits), -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(known & (excess > 0), np.abs(excess) / np.abs(limits), -np.inf)
    wrong = int(np.count_nonzero(excess > 0))
    # Of configurations with equal deviations, show the last one, which is the largest.
    at = int(np.flatnonzero(relative >= (1.0 - 1e-6) * relative.max() if wrong else known)[-1])
    point = dict(zip(experiment.parameters, experiment.points[at].tolist(), strict=True))
    state = State.FAILED if wrong else State.HELD
    measured = int(np.count_nonzero(known))
    side = "below" if below else "above"
    message = f"{side} at {wrong} of {measured} configurations" if wrong else f"holds at {measured} configurations"
    return Outcome(expectation, path, label, state, message, float(values[at]), float(limits[at]), point)
