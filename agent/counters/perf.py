# SPDX-License-Identifier: Apache-2.0
"""Processor counters from perf events of the kernel, sampled by the runtime while the program runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from quipu.modeling.counters import COUNTERS
from quipu.modeling.experiment import Metric

from .kernel_events import refused
from .libpfm import Encoding, encode
from .processors import GENERIC, SAMPLED, SOFTWARE, Processor, processor_of, terms_of
from .sampling import SampledSource, metric_of, request
from .source import Wanted

_CPUINFO = Path("/proc/cpuinfo")


class Perf(SampledSource):
    """The counter source `perf`: events of the kernel and of this processor, and events whose names libpfm4 knows."""

    name = "perf"

    def __init__(self, cpuinfo: Path = _CPUINFO) -> None:
        """Create the source. cpuinfo: the file that describes the processor, in the format of /proc/cpuinfo."""
        self._cpuinfo = cpuinfo

    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics of this processor."""
        return tuple(COUNTERS[name] for name in (*self._hardware(), *SOFTWARE, *SAMPLED))

    def knows(self, event: str) -> bool:
        """Return whether libpfm4 has an event of this name for this processor."""
        return event not in COUNTERS and isinstance(encode(event), Encoding)

    def unavailable(self, names: Sequence[str] = ()) -> str:
        """Return why one of these counters cannot be counted; empty if all can. Default: all hardware counters."""
        for name in names or self._hardware():
            events = self._events(name)
            problem = events if isinstance(events, str) else next(filter(None, map(refused, events)), "")
            if problem:
                return f"{name} cannot be counted: {problem}"
        return ""

    def variables(self, wanted: Wanted) -> Mapping[str, str]:
        """Return the environment variable that gives the runtime the numbers of the events."""
        counters = {}
        for name in wanted.names or tuple(self._hardware()):
            if name not in SAMPLED:
                counters[metric_of(name).name] = [
                    term if isinstance(term, str) else term.text() for term in self._encoded(name)
                ]
        return {"QUIPU_COUNTERS": request(counters)}

    def _processor(self) -> Processor | None:
        try:
            return processor_of(self._cpuinfo.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return None

    def _hardware(self) -> tuple[str, ...]:
        processor = self._processor()
        return (*GENERIC, *(processor.counters if processor is not None else ()))

    def _terms(self, name: str) -> tuple[str | Encoding, ...]:
        return terms_of(name, self._processor()) or (name,)

    def _encoded(self, name: str) -> tuple[str | Encoding, ...]:
        """Return the events of a counter; "-" before a subtracted event, an error text for an unknown event."""
        return tuple(term if term == "-" or isinstance(term, Encoding) else encode(term) for term in self._terms(name))

    def _events(self, name: str) -> list[Encoding] | str:
        """Return the events of a counter, or the error text of an unknown event."""
        if name in SAMPLED:
            return []
        events: list[Encoding] = []
        for term in self._encoded(name):
            if isinstance(term, Encoding):
                events.append(term)
            elif term != "-":
                return term
        return events
