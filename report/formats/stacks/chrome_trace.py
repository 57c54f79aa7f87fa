# SPDX-License-Identifier: Apache-2.0
"""Write call trees in the Trace Event Format for Perfetto and chrome://tracing: a summary, not a time line."""

from __future__ import annotations

from typing import Any

from .weighted import WeightedStacks, whole_unit

_SUMMARY = "A summary of the call tree, not a time line: widths are inclusive values, positions have no meaning."


def chrome_trace(stacks: WeightedStacks) -> dict[str, Any]:
    """Return one "complete event" per call path, inside of the event of its caller.

    The duration of an event is the inclusive value of the first metric. A metric that is no time is shown as if its
    unit were 1 µs. Every sample is shown as a separate process.
    """
    metric = stacks.metrics[0]
    events: list[dict[str, Any]] = []
    for number, sample in enumerate(stacks.samples):
        named = {"ph": "M", "pid": number, "tid": 0}
        events.append({**named, "name": "process_name", "args": {"name": f"{metric.name}, {sample.name}"}})
        events += _events(stacks, stacks.weights(metric, sample), number)
    return {
        "otherData": {"exporter": "quipu", "title": stacks.title, "metric": metric.name, "note": _SUMMARY},
        "displayTimeUnit": "ns" if whole_unit(stacks.metrics[0]) == "nanoseconds" else "ms",
        "traceEvents": events,
    }


def _events(stacks: WeightedStacks, weights: list[int], process: int) -> list[dict[str, Any]]:
    tree, inclusive = stacks.tree, stacks.inclusive(weights)
    microseconds = 1000 if whole_unit(stacks.metrics[0]) == "nanoseconds" else 1
    free = [0] * (len(tree) + 1)  # where the event of the next callee begins; the last element is for roots (parent -1)
    found = []
    for node, parent in enumerate(tree.parent.tolist()):
        start = free[node] = free[parent]
        free[parent] += inclusive[node]
        if not inclusive[node]:
            continue
        region = tree.region_of(node)
        found.append(
            {
                "ph": "X",
                "name": region.display,
                "cat": region.kind.name.lower(),
                "ts": start / microseconds,
                "dur": inclusive[node] / microseconds,
                "pid": process,
                "tid": 0,
                "args": {"exclusive": weights[node], "inclusive": inclusive[node], "linker name": region.name}
                | ({"file": region.file, "line": region.line} if region.file else {}),
            }
        )
    return sorted(found, key=lambda event: event["ts"])  # stable: callers stay before their callees
