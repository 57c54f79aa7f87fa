# SPDX-License-Identifier: Apache-2.0
"""Describe this machine by data of the operating system and measurements of the program `quipu-probe`."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from quipu.modeling.errors import MeasurementError
from quipu.modeling.machine import Bandwidth, Cache, Machine, Network, Reach

from ..installation import native_file

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_SIZE = re.compile(r"(\d+)([KMG]?)\Z")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
# Bytes of the memory measurements: _BEYOND times the last-level cache, or _NO_CACHE bytes if no cache is known; at most
# the share _OF_FREE of the free memory.
_BEYOND, _OF_FREE, _NO_CACHE = 4, 0.25, 1 << 28
# If no cache is known: bytes of a cache line, and smallest working set of the loads in `_reach`.
_LINE, _NO_FIRST_CACHE = 64, 1 << 13
_TIME_LIMIT = 120.0  # seconds for one measurement

Probe = Callable[[Sequence[str]], float]
"""Runs quipu-probe with these arguments and returns the number that it prints."""


def processor() -> str:
    """Return the name of the processor from the kernel, or the architecture if there is none."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def known_caches(folder: Path = _CACHES) -> list[Cache]:
    """Return the data caches that the kernel lists for processor 0, nearest first. Their latencies are 0 (unknown)."""
    found = []
    for entry in sorted(folder.glob("index*")):
        try:
            kind = (entry / "type").read_text().strip()
            size = _SIZE.match((entry / "size").read_text().strip())
            if kind == "Instruction" or size is None:
                continue
            level = int((entry / "level").read_text())
            line = int((entry / "coherency_line_size").read_text())
            shared = _many((entry / "shared_cpu_list").read_text().strip())
            ways = _whole(entry / "ways_of_associativity")
            found.append(Cache(level, int(size[1]) * _UNITS[size[2]], line, ways, shared, 0.0))
        except (OSError, ValueError):
            continue
    return sorted(found, key=lambda cache: cache.level)


def _whole(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def _many(processors: str) -> int:
    """Return the number of processors in a list such as `0-3,8`."""
    spans = [part.partition("-") for part in processors.split(",") if part]
    return max(1, sum(int(last or first) - int(first) + 1 for first, _, last in spans))


def probe(words: Sequence[str]) -> float:
    """Run quipu-probe with these arguments, and return the number that it prints.

    Raises MeasurementError with the message of the program if it fails or takes too long.
    """
    command = [str(native_file("quipu-probe")), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIME_LIMIT)
        return _number(done, words)
    except subprocess.TimeoutExpired as error:
        raise MeasurementError(f"quipu-probe {' '.join(words)} took longer than {_TIME_LIMIT:.0f} s") from error


def _number(done: subprocess.CompletedProcess[str], words: Sequence[str]) -> float:
    try:
        if done.returncode == 0:
            return float(done.stdout)
    except ValueError:
        pass
    raise MeasurementError(f"quipu-probe {' '.join(words)} failed: {done.stderr.strip() or done.returncode}")


def describe(
    network: Sequence[Network] = (),
    caches: Sequence[Cache] | None = None,
    run: Probe = probe,
    say: Callable[[str], None] = lambda _: None,
) -> Machine:
    """Measure and describe this machine.

    network: result of `network.measure`. caches: the data caches, nearest first (None: ask the kernel). run: runs
    quipu-probe. say: is called with the name of each measurement before it begins.

    The latency of a cache is the time of a random load whose address depends on the previous load. The working set of
    these loads is the geometric mean of the sizes of this cache and of the previous cache. They therefore hit this
    cache and miss the previous one. Raises MeasurementError if a measurement fails.
    """
    import psutil  # not at the top: `known_caches` and `processor` do not need it

    known = known_caches() if caches is None else list(caches)
    last = known[-1].bytes if known else 0.0
    free = _OF_FREE * psutil.virtual_memory().available
    large = int(min(_BEYOND * last if last else _NO_CACHE, free))
    notes = []
    if large < 2 * last:
        notes.append("too little memory is free for loads that all miss the last-level cache")
    say("latency of memory")
    memory = run(("latency", str(large), str(known[-1].line if known else _LINE)))
    measured = []
    before = 0.0
    for number, cache in enumerate(known, 1):
        say(f"latency of level {cache.level}")
        shared = number == len(known) > 1
        size = _effective(cache, before, memory, run) if shared else cache.bytes
        inside = int((before * size) ** 0.5) if before else int(size) // 2
        seconds = run(("latency", str(inside), str(cache.line)))
        measured.append(replace(cache, latency=seconds, effective=size))
        before = cache.bytes
    reach = _reach(known, large, run, say)
    cores = len(os.sched_getaffinity(0))
    bandwidth = []
    for number in sorted({*_powers(cores), cores}):
        say(f"bandwidth of {number} of {cores} cores")
        bandwidth.append(Bandwidth(number, run(("bandwidth", str(max(large // number, 1 << 22)), str(number)))))
    say("clocks")
    return Machine(
        host=platform.node(),
        processor=processor(),
        cores=cores,
        frequency=run(("frequency",)),
        tsc=run(("tsc",)),
        caches=tuple(measured),
        memory=memory,
        bandwidth=tuple(bandwidth),
        reach=reach,
        network=tuple(network),
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        notes=tuple(notes),
        flops=run(("flops",)),
    )


def _effective(cache: Cache, before: float, memory: float, run: Probe) -> float:
    """Return the usable bytes of a last-level cache. On a shared host, other programs use a part of the cache.

    before: bytes of the previous cache. memory: latency of memory (s). The candidates are the size of the cache, half
    of it, and so on, down to 2·before. The result is the largest candidate whose loads take at most the geometric mean
    of the latency of memory and the latency at 2·before bytes.
    """
    near = 2.0 * before
    size = cache.bytes
    limit = (run(("latency", str(int(near)), str(cache.line))) * memory) ** 0.5 if size > near else 0.0
    while size > near and run(("latency", str(int(size)), str(cache.line))) > limit:
        size /= 2.0
    return max(size, min(near, cache.bytes))


def _reach(known: Sequence[Cache], largest: int, run: Probe, say: Callable[[str], None]) -> tuple[Reach, ...]:
    """Measure loads from working sets of growing size: from half of the first cache, doubled up to `largest` bytes."""
    line = str(known[0].line if known else _LINE)
    size = int(known[0].bytes) // 2 if known else _NO_FIRST_CACHE
    found = []
    say("latency of growing working sets")
    while size <= largest:
        seconds = [run((order, str(size), line)) for order in ("in-order", "scattered")]
        found.append(Reach(size, *seconds))
        size *= 2
    return tuple(found)


def _powers(most: int) -> list[int]:
    return [1 << power for power in range(most.bit_length()) if 1 << power <= most]
