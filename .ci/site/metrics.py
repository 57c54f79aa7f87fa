# SPDX-License-Identifier: Apache-2.0
"""The reference of metrics: made of agent/runtime/metrics.def and of the counters that sources have."""

from __future__ import annotations

from collections.abc import Iterable

from commands import plain
from quipu.modeling.counters import COUNTERS, REQUESTED
from quipu.modeling.effort_excess import EFFORT_EXCESS
from quipu.modeling.experiment import CRITICAL, Metric
from quipu.modeling.metrics import FURTHER, METRICS, OPTION_OF, WEIGHTED
from quipu.modeling.root_causes import DELAY_CAUSED

_KINDS = {"effort": "effort: the same in every run", "cost": "cost: varies between runs"}
_OVER = {"sum": "sums", "max": "maximum"}


def metric_page() -> str:
    """Return the page."""
    names = list(METRICS)
    by_pass = {*names[names.index("blocks") : names.index("blocks") + WEIGHTED]}
    counted = {name: "compiler pass" if name in by_pass else "runtime, MPI wrappers" for name in names}
    options = {name: f"`{option}`" for name, option in OPTION_OF.items()}
    between = (EFFORT_EXCESS, DELAY_CAUSED)
    called = {metric: f"`--counters {name}`" for name, metric in REQUESTED.items()}
    return "\n".join(
        [
            "# Metrics",
            "",
            "Values are exclusive (of the call path itself); inclusive ones add what it calls. *Threads* says how the",
            "threads of a rank, and inclusive values, combine: they add up, or the largest counts. `time` and",
            "`wait_time` are wall time: what stands for other threads is how long the main thread waits for them",
            "([three metrics of time](../howto/openmp.md#three-metrics-of-time)). Ranks combine by `--over-ranks`:",
            "`mean` (the default), `max` or `sum`.",
            "",
            "## What every run has",
            "",
            *_table(METRICS.values(), counted),
            "",
            "The compiler pass counts what the wrappers compiled; the rest is counted in every program that",
            "`quipu run` starts. `overhead`, in seconds, is what measuring itself cost ([how](../design/overhead.md)).",
            "",
            "## What memory, files and offload add",
            "",
            "With `quipu run --memory` ([how](../howto/memory.md)), `quipu run --files` ([how](../howto/files.md)) and",
            "`quipu run --offload` ([how](../howto/gpu.md)):",
            "",
            *_table((one for one in FURTHER.values() if one.name != CRITICAL), options),
            "",
            "## What ranks wait for",
            "",
            "Metrics that are made of the values of several ranks, for those who ask for them with `--metric`",
            "([how](../howto/waiting.md)):",
            "",
            *_table(between, {one.name: "`--mpi-wait`" for one in between}),
            "",
            "## What counter sources add",
            "",
            "With `quipu run --counters` ([how](../counters.md)):",
            "",
            *_table(COUNTERS.values(), called),
            "",
        ]
    )


def _table(metrics: Iterable[Metric], source: dict[str, str]) -> list[str]:
    head = ["| metric | definition | unit | kind | threads | counted by |", "|---|---|---|---|---|---|"]
    return head + [
        f"| `{one.name}` | {plain(one.description)} | {one.unit if one.unit != '1' else 'number'} | {_KINDS[one.kind]} "
        f"| {_OVER[one.over_locations]} | {source.get(one.name, '`--counters`')} |"
        for one in metrics
    ]
