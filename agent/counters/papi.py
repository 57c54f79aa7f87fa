# SPDX-License-Identifier: Apache-2.0
"""Processor counters from PAPI, sampled by the runtime while the program runs."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache

from quipu.modeling.counters import COUNTERS
from quipu.modeling.experiment import Metric

from .processors import SAMPLED
from .sampling import SampledSource, metric_of, request
from .source import Wanted

_LIBRARIES = ("libpapi.so.7.0", "libpapi.so.7", "libpapi.so.6.0", "libpapi.so.5.7", "libpapi.so")
_VERSIONS = (7 << 24, 6 << 24, 5 << 24)  # PAPI_VERSION_NUMBER(major, 0, 0, 0)
_OK, _NO_EVENT_SET = 0, -1
_EVENTS: Mapping[str, tuple[str, ...]] = {
    "cpu_cycles": ("PAPI_TOT_CYC",),
    "cpu_instructions": ("PAPI_TOT_INS",),
    "l1_hits": ("PAPI_LST_INS", "-", "PAPI_L1_DCM"),
    "l2_hits": ("PAPI_L1_DCM", "-", "PAPI_L2_DCM"),
    "llc_hits": ("PAPI_L2_DCM", "-", "PAPI_L3_TCM"),
    "memory_accesses": ("PAPI_L3_TCM",),
    "stall_cycles": ("PAPI_MEM_SCY",),
}
"""Preset events of each metric (papi_avail lists them); "-": the next event is subtracted.

LST_INS counts load and store instructions; DCM counts data cache misses, TCM all cache misses.
"""
_KERNEL: Mapping[str, tuple[str, ...]] = {
    "page_faults": ("perf::PAGE-FAULTS",),
    "context_switches": ("perf::CONTEXT-SWITCHES",),
}


class Papi(SampledSource):
    """The counter source `papi`: preset events and native events of PAPI."""

    name = "papi"

    def metrics(self) -> tuple[Metric, ...]:
        """Return all metrics of the table; this processor may lack events of some of them."""
        return tuple(COUNTERS[name] for name in (*_EVENTS, *_KERNEL, *SAMPLED))

    def knows(self, event: str) -> bool:
        """Return whether `event` is the name of a preset or native event of PAPI.

        Names that begin with PAPI_ or contain :: are accepted unchecked; PAPI is asked about other names.
        """
        named = event.startswith("PAPI_") or "::" in event
        return event not in COUNTERS and event.isascii() and (named or not _refused(event))

    def unavailable(self, names: Sequence[str] = ()) -> str:
        """Return why one of these counters cannot be counted; empty if all can. Default: cycles and instructions."""
        for name in names or ("cpu_cycles", "cpu_instructions"):
            for event in _terms(name):
                if event != "-" and (problem := _refused(event)):
                    return f"{name} cannot be counted: {problem}"
        return ""

    def variables(self, wanted: Wanted) -> Mapping[str, str]:
        """Return the environment variable that gives the runtime the events; "@" marks a name of PAPI."""
        names = wanted.names or tuple(name for name in _EVENTS if not self.unavailable((name,)))
        counters = {
            metric_of(name).name: [term if term == "-" else f"@{term}" for term in _terms(name)]
            for name in names
            if name not in SAMPLED
        }
        return {"QUIPU_COUNTERS": request(counters)}


def _terms(name: str) -> tuple[str, ...]:
    return () if name in SAMPLED else _EVENTS.get(name) or _KERNEL.get(name) or (name,)


@cache
def library() -> ctypes.CDLL | str:
    """Return the initialized library of PAPI, or an error text."""
    found = None
    for name in _LIBRARIES:
        try:
            found = found or ctypes.CDLL(name)
        except OSError:
            continue
    if found is None:
        return "PAPI is not installed: apt-get install libpapi7.0"
    found.PAPI_strerror.restype = ctypes.c_char_p
    # PAPI_library_init returns another version number if it does not support the requested one.
    if any(found.PAPI_library_init(version) == version for version in _VERSIONS):
        return found
    return "PAPI_library_init failed: its version is not known"


@cache
def _refused(event: str) -> str:
    """Return why PAPI cannot count an event on this machine; empty if it can."""
    papi = library()
    if isinstance(papi, str):
        return papi
    group = ctypes.c_int(_NO_EVENT_SET)
    code = papi.PAPI_create_eventset(ctypes.byref(group))
    if code == _OK:
        code = papi.PAPI_add_named_event(group, event.encode())
        papi.PAPI_cleanup_eventset(group)
        papi.PAPI_destroy_eventset(ctypes.byref(group))
    if code == _OK:
        return ""
    return f"PAPI refuses {event}: {papi.PAPI_strerror(code).decode()} (papi_avail and papi_native_avail list events)"
