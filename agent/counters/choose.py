# SPDX-License-Identifier: Apache-2.0
"""Choose the counter source for a request of the user."""

from __future__ import annotations

from collections.abc import Sequence

from quipu.modeling.counters import COUNTERS, REQUESTED
from quipu.modeling.errors import EnvironmentProblem, UsageError

from .cachegrind import Cachegrind
from .effort import Effort
from .papi import Papi
from .perf import Perf
from .reuse import Reuse
from .sampling import metric_of
from .source import CounterSource, Wanted

SOURCES: tuple[CounterSource, ...] = (Perf(), Papi(), Cachegrind(), Reuse(), Effort())
"""All sources, in descending order of the number of their counters."""


def choose(request: str, sources: Sequence[CounterSource] = SOURCES) -> tuple[CounterSource, Wanted]:
    """Return the source and its counters for a request such as `cachegrind`, `L1,LLC,mem`, `perf,cycles` or `auto`.

    The name of a source selects all its counters. Names of counters select the first source that has all of them and
    can be used on this machine. Both together select these counters of this source.

    Raises UsageError for unknown names, two sources, or events whose metrics would have the same name. Raises
    EnvironmentProblem if no source can count the request here.
    """
    by_name = {source.name: source for source in sources}
    words = [word.strip() for word in request.split(",") if word.strip()]
    named = [word for word in words if word in by_name]
    counters = [word for word in words if word not in by_name and word != "auto"]
    known = {**REQUESTED, **{name: name for name in COUNTERS}}
    asked = [by_name[named[0]]] if len(named) == 1 else sources
    events = {word for word in counters if word not in known and any(source.knows(word) for source in asked)}
    unknown = [word for word in counters if word not in known and word not in events]
    if not words or len(named) > 1 or unknown:
        wrong = f"{unknown[0]!r} is neither a source nor a counter" if words and len(named) <= 1 else "give one source"
        raise UsageError(
            f"--counters {request!r}: {wrong}; sources: auto, {', '.join(by_name)}; counters: {', '.join(REQUESTED)}; "
            "or events as perf and papi call them"
        )
    wanted = Wanted(tuple(known.get(word, word) for word in counters))
    events_by_metric: dict[str, str] = {}
    for event in wanted.names:
        metric = metric_of(event).name
        if (other := events_by_metric.setdefault(metric, event)) != event:
            raise UsageError(f"--counters {request!r}: {other} and {event} would both be the metric {metric}; give one")
    problems = []
    for source in asked:
        has = {metric.name for metric in source.metrics()}
        missing = [word for word in counters if known.get(word) not in has and not source.knows(word)]
        if missing:
            problems.append(f"{source.name} does not count {', '.join(missing)}")
        elif problem := source.unavailable(wanted.names):
            problems.append(f"{source.name}: {problem}")
        else:
            return source, wanted
    raise EnvironmentProblem(f"--counters {request!r}: this machine cannot count them: {'; '.join(problems)}")
