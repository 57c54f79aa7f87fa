# SPDX-License-Identifier: Apache-2.0
"""Facts about the source of processor counters of a run and its samples, for the head of views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .text import percent, quantity

_MOST_FUNCTIONS = 12


def counter_facts(counters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a (label, text) pair about the source of the counters and its samples; empty for a run without samples.

    counters: from the metadata of the run (described in agent/counters/sampling.py).
    """
    rate = counters.get("samples_per_second")
    if not isinstance(rate, int | float) or not rate > 0:
        return []
    by = counters.get("sampled_by")
    kinds = ", ".join(map(str, by)) if isinstance(by, Sequence) and not isinstance(by, str) else ""
    text = f"{counters.get('source', '')}, {quantity(rate)} samples per second of processor time"
    text += f" ({kinds})" if kinds else ""
    for key, words in (("samples_lost", "lost"), ("samples_late", "periods without a sample")):
        if isinstance(number := counters.get(key), int):
            text += f", {quantity(number)} {words}"
    shares = counters.get("counted_share")
    shared = (
        {k: v for k, v in shares.items() if isinstance(v, int | float) and v < 1} if isinstance(shares, dict) else {}
    )
    if shared:
        text += "; scaled, because the processor has too few counters: "
        text += ", ".join(f"{name} counted {percent(share)} of the time" for name, share in shared.items())
    return [("counters", text)]


def function_lines(counters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a (label, text) pair with the functions that have most samples; empty if addresses were not sampled."""
    functions = counters.get("functions")
    if not isinstance(functions, Sequence) or isinstance(functions, str):
        return []
    rows = [row for row in functions if isinstance(row, Mapping) and isinstance(row.get("samples"), int)]
    total = sum(row["samples"] for row in rows)
    parts = []
    for row in rows[:_MOST_FUNCTIONS]:
        library = str(row.get("library", "")).rsplit("/", 1)[-1] or "code that was unloaded"
        parts.append(f"{percent(row['samples'] / total)} {row.get('function') or 'unknown'} in {library}")
    return [("functions", "; ".join(parts))] if total else []
