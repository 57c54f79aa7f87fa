# SPDX-License-Identifier: Apache-2.0
"""Common parts of sampled counter sources: environment variables of a run, and facts about samples in profiles."""

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
"""Samples per second of processor time."""

HIGHEST_RATE = 10_000


class SampledSource(CounterSource):
    """A source whose counts the runtime adds to the metrics of the profiles while the program runs."""

    def collect(
        self, raw: Path, tree: CallTree, wanted: Wanted, attributes: Sequence[Mapping[str, str]] = ()
    ) -> Counted:
        """Return facts about the counting; the counts themselves are metrics of the profiles."""
        facts, problems = described(attributes)
        return Counted((), (), {}, {"source": self.name, **facts}, tuple(problems))


def metric_of(event: str) -> Metric:
    """Return the metric of a counter or of an event; its name has only letters, digits and _."""
    return COUNTERS.get(event) or Metric(_plain(event), "1", "cost", "sum", event)


def _plain(event: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", event.lower()).strip("_")[:39]


def request(counters: Mapping[str, Sequence[str]]) -> str:
    """Return the value of QUIPU_COUNTERS: events by metric, with "-" before an event that is subtracted."""
    texts = []
    for metric, terms in counters.items():
        signed = "+".join(terms).replace("-+", "-")
        texts.append(f"{metric}={signed}")
    return ";".join(texts)


def described(attributes: Iterable[Mapping[str, str]]) -> tuple[dict[str, Any], list[str]]:
    """Return facts about the samples of all processes for the archive, and problems."""
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
