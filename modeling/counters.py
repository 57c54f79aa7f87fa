# SPDX-License-Identifier: Apache-2.0
"""The metrics of processor counters in archives, and the sources of counters."""

from __future__ import annotations

from .experiment import Metric

SOURCES = ("effort", "cachegrind", "reuse", "perf", "papi")
"""Sources of counters: compiler pass, a simulated cache, simulated caches of many sizes, perf events of Linux, PAPI."""

KIB = 1024
MISSES = {
    size * KIB: f"misses_{size}k"
    for size in (8, 16, 32, *(part << power for power in range(5, 14) for part in (2, 3)), 32768)
}
SCATTERED = {size * KIB: f"scattered_{size}k" for size in (64, 512)}
"""Names of metrics by the size of a cache (bytes). MISSES: all misses of the cache. SCATTERED: the misses that a
prefetcher does not avoid."""

COUNTERS = {
    metric.name: metric
    for metric in (
        Metric("cpu_cycles", "1", "cost", "sum", "core cycles, in user space"),
        Metric("cpu_instructions", "1", "cost", "sum", "retired machine instructions, in user space"),
        Metric("l1_hits", "1", "cost", "sum", "loads and stores that the first-level data cache served"),
        Metric("l2_hits", "1", "cost", "sum", "loads and stores that the second-level cache served"),
        Metric("llc_hits", "1", "cost", "sum", "loads and stores that the last-level cache served"),
        Metric("memory_accesses", "1", "cost", "sum", "loads and stores that missed the last-level cache"),
        Metric("stall_cycles", "1", "cost", "sum", "core cycles that waited for loads and stores"),
        Metric("samples", "1", "cost", "sum", "samples in this call path"),
        Metric("task_clock", "ns", "cost", "sum", "processor time, in user space and in the kernel"),
        Metric("page_faults", "1", "cost", "sum", "page faults of code in user space"),
        Metric("context_switches", "1", "cost", "sum", "times the thread left its processor"),
        Metric("accesses", "1", "cost", "sum", "loads and stores of machine instructions"),
        *(
            Metric(name, "1", "cost", "sum", f"accesses that miss a cache of {size // KIB} KiB")
            for size, name in MISSES.items()
        ),
        *(
            Metric(name, "1", "cost", "sum", f"accesses out of order that miss a cache of {size // KIB} KiB")
            for size, name in SCATTERED.items()
        ),
    )
}
"""The metrics of counters, by name."""

LEVELS = {"L1": "l1_hits", "L2": "l2_hits", "LLC": "llc_hits", "memory": "memory_accesses"}
"""Metrics of accesses by the level of memory that served them, nearest first (T_L1, T_L2, T_LLC and T_mm in Table 1 of
Ding et al., APMT: an automatic hardware counter-based performance modeling tool, 2020)."""

REQUESTED = {"cycles": "cpu_cycles", "instructions": "cpu_instructions", "stalls": "stall_cycles"} | {
    "L1": "l1_hits",
    "L2": "l2_hits",
    "LLC": "llc_hits",
    "mem": "memory_accesses",
    "samples": "samples",
    "task-clock": "task_clock",
    "page-faults": "page_faults",
    "context-switches": "context_switches",
}
"""Metrics by the names of counters in the option `quipu run --counters`."""
