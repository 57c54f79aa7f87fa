# SPDX-License-Identifier: Apache-2.0
"""The processor events of each counter.

An event is a name for libpfm4, or numbers of perf_event_attr if they are equal for all processors of a vendor. The
vendors count different things as hits and misses: retired loads (Intel), demand fills of the first-level cache (AMD),
or all accesses (Arm).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .libpfm import Encoding

_HARDWARE, _SOFTWARE, _RAW = 0, 1, 4  # linux/perf_event.h: PERF_TYPE_*

Terms = tuple[str | Encoding, ...]
"""The events whose sum is a counter; "-" before an event that is subtracted."""


@dataclass(frozen=True)
class Processor:
    """A family of processors, and the events of its counters.

    vendor: as in /proc/cpuinfo. models: (family, lowest model, highest model) as in /proc/cpuinfo; on Arm the
    architecture and the part. source: the document that describes the events.
    """

    name: str
    vendor: str
    models: tuple[tuple[int, int, int], ...]
    counters: Mapping[str, Terms]
    source: str


GENERIC: Mapping[str, Terms] = {
    "cpu_cycles": (Encoding(_HARDWARE, 0),),
    "cpu_instructions": (Encoding(_HARDWARE, 1),),
}
"""PERF_COUNT_HW_CPU_CYCLES and PERF_COUNT_HW_INSTRUCTIONS of linux/perf_event.h: on every processor with a PMU."""

SOFTWARE: Mapping[str, Terms] = {
    "page_faults": (Encoding(_SOFTWARE, 2),),
    "context_switches": (Encoding(_SOFTWARE, 3, kernel=True),),
}
"""PERF_COUNT_SW_PAGE_FAULTS and PERF_COUNT_SW_CONTEXT_SWITCHES, which the kernel counts."""

SAMPLED = ("samples", "task_clock")
"""Metrics that every sampled run has without any event."""


def _levels(name: str) -> dict[str, Terms]:
    return {
        "l1_hits": (f"{name}:L1_HIT",),
        "l2_hits": (f"{name}:L2_HIT",),
        "llc_hits": (f"{name}:L3_HIT",),
        "memory_accesses": (f"{name}:L3_MISS",),
    }


_ARM = {
    "l1_hits": (Encoding(_RAW, 0x04), "-", Encoding(_RAW, 0x03)),
    "l2_hits": (Encoding(_RAW, 0x03), "-", Encoding(_RAW, 0x17)),
    "llc_hits": (Encoding(_RAW, 0x36), "-", Encoding(_RAW, 0x37)),
    "memory_accesses": (Encoding(_RAW, 0x37),),
    "stall_cycles": (Encoding(_RAW, 0x24),),
}

PROCESSORS = (
    Processor(
        "Haswell, Broadwell",
        "GenuineIntel",
        tuple((6, model, model) for model in (0x3C, 0x3D, 0x3F, 0x45, 0x46, 0x47, 0x4F, 0x56)),
        {**_levels("MEM_LOAD_UOPS_RETIRED"), "stall_cycles": ("CYCLE_ACTIVITY:STALLS_LDM_PENDING",)},
        "Intel SDM volume 3, chapter 20, tables of 4th and 5th generation Core; perfmon-events.intel.com",
    ),
    Processor(
        "Skylake to Rocket Lake, Ice Lake server",
        "GenuineIntel",
        tuple(
            (6, model, model)
            for model in (0x4E, 0x5E, 0x55, 0x8E, 0x9E, 0xA5, 0xA6, 0x6A, 0x6C, 0x7D, 0x7E, 0x8C, 0x8D, 0xA7)
        ),
        {**_levels("MEM_LOAD_RETIRED"), "stall_cycles": ("CYCLE_ACTIVITY:STALLS_MEM_ANY",)},
        "Intel SDM volume 3, chapter 20, tables of 6th to 11th generation Core; perfmon-events.intel.com",
    ),
    Processor(
        "Sapphire Rapids, Emerald Rapids",
        "GenuineIntel",
        ((6, 0x8F, 0x8F), (6, 0xCF, 0xCF)),
        {**_levels("MEM_LOAD_RETIRED"), "stall_cycles": ("EXE_ACTIVITY:BOUND_ON_LOADS",)},
        "perfmon-events.intel.com, 4th generation Xeon",
    ),
    Processor(
        "Zen 1 to 5",
        "AuthenticAMD",
        ((0x17, 0x00, 0xFF), (0x19, 0x00, 0xFF), (0x1A, 0x00, 0xFF)),
        {
            "l1_hits": (Encoding(_RAW, 0x0329), "-", Encoding(_RAW, 0x5F43)),
            "l2_hits": (Encoding(_RAW, 0x0143),),
            "llc_hits": (Encoding(_RAW, 0x1643),),
            "memory_accesses": (Encoding(_RAW, 0x4843),),
        },
        "AMD PPR of families 17h, 19h, 1Ah: PMCx029 (loads and stores dispatched), PMCx043 (fills of the data cache by "
        "where they come from: 01 L2, 02 04 10 caches of this and other chiplets, 08 40 memory)",
    ),
    Processor(
        "Neoverse N1, N2, V1, V2",
        "0x41",
        tuple((8, part, part) for part in (0xD0C, 0xD49, 0xD40, 0xD4F)),
        _ARM,
        "Arm Architecture Reference Manual, common events of PMUv3 (D13.12): L1D_CACHE, L1D_CACHE_REFILL, "
        "L2D_CACHE_REFILL, LL_CACHE_RD, LL_CACHE_MISS_RD, STALL_BACKEND",
    ),
)


def processor_of(cpuinfo: str) -> Processor | None:
    """Return the row of PROCESSORS for the content of /proc/cpuinfo; None if the table lacks the processor."""
    found = {}
    for key in ("vendor_id", "cpu family", "model", "CPU implementer", "CPU architecture", "CPU part"):
        match = re.search(rf"^{key}\s*:\s*(\S+)\s*$", cpuinfo, re.MULTILINE)
        found[key] = match[1] if match else ""
    vendor = found["vendor_id"] or found["CPU implementer"]
    family = found["cpu family"] or found["CPU architecture"]
    model = found["model"] or found["CPU part"]
    try:
        numbers = int(family, 0), int(model, 0)
    except ValueError:
        return None
    return next(
        (
            row
            for row in PROCESSORS
            if row.vendor == vendor
            and any(f == numbers[0] and low <= numbers[1] <= high for f, low, high in row.models)
        ),
        None,
    )


def terms_of(counter: str, processor: Processor | None) -> Terms:
    """Return the events of a counter (a name in `quipu.modeling.counters`); empty if this processor has none."""
    row = processor.counters if processor is not None else {}
    return GENERIC.get(counter) or SOFTWARE.get(counter) or row.get(counter, ())
