# SPDX-License-Identifier: Apache-2.0
"""Common parts of the counter sources that sample: variables for the runtime, and facts about the samples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from quipu.modeling.counters import COUNTERS
from quipu.modeling.experiment import CallTree, Metric
from quipu.modeling.limits import whole_number

from .source import Counted, CounterSource, Wanted

RATE = 1000
"""Default number of samples per second of processor time."""

HIGHEST_RATE = 10_000
"""Largest number of samples per second that an option may give."""


class SampledSource(CounterSource):
    """A source whose counts the runtime stores in the profiles while the program runs."""

    def collect(
        self, raw: Path, tree: CallTree, wanted: Wanted, attributes: Sequence[Mapping[str, str]] = ()
    ) -> Counted:
        """Return facts about the samples and no counts, because the profiles contain the counts as metrics."""
        facts, problems = described(attributes)
        return Counted((), (), {}, {"source": self.name, **facts}, tuple(problems))


def metric_of(event: str) -> Metric:
    """Return the metric of a counter or of an event.

    The metric of an event has the name of the event in lower case, with _ for other characters than letters and digits,
    at most 39 characters.
    """
    return COUNTERS.get(event) or Metric(_plain(event), "1", "cost", "sum", event)


def _plain(event: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", event.lower()).strip("_")[:39]


def request(counters: Mapping[str, Sequence[str]]) -> str:
    """Return the value of the variable QUIPU_COUNTERS: `metric=event+event-event;metric=…`.

    counters: the events of each metric, with "-" before an event that is subtracted.
    """
    texts = []
    for metric, terms in counters.items():
        signed = "+".join(terms).replace("-+", "-")
        texts.append(f"{metric}={signed}")
    return ";".join(texts)


def described(attributes: Iterable[Mapping[str, str]]) -> tuple[dict[str, Any], list[str]]:
    """Return facts about the samples of all processes for the archive, and texts about problems.

    attributes: attributes of each profile. samples_lost: samples outside of all call paths. samples_late: sampling
    periods without a sample. counted_share: smallest fraction of the time in which an event was counted, by metric; it
    is below 1 if the hardware has too few counters for all events.
    """
    lost = late = 0
    period = 0
    kinds: set[str] = set()
    shares: dict[str, float] = {}
    problems: list[str] = []
    for found in attributes:
        if "sample_period_ns" not in found:
            continue
        period = max(period, _number(found["sample_period_ns"]))
        lost += _number(found.get("samples_lost", ""))
        late += _number(found.get("samples_late", ""))
        kinds.update(kind.strip() for kind in found.get("sampled_by", "").split(","))
        if found.get("sampling_problem"):
            problems.append(f"samples: {found['sampling_problem']}")
        for name, running, enabled in re.findall(r"(\w+):(\d{1,19})/(\d{1,19})", found.get("counter_times", "")):
            if int(enabled):
                shares[name] = min(shares.get(name, 1.0), int(running) / int(enabled))
    facts: dict[str, Any] = {
        "samples_per_second": 1e9 / period if period else 0,
        "sampled_by": sorted(kinds),
        "samples_lost": lost,
        "samples_late": late,
        "counted_share": {name: round(share, 4) for name, share in shares.items()},
    }
    if lost:
        problems.append(f"{lost} samples belong to no call path")
    return facts, problems


def _number(text: str) -> int:
    return whole_number(text) or 0
