# SPDX-License-Identifier: Apache-2.0
"""Counters of a whole node, if the kernel offers them: energy, and bytes between processors and memory.

The energy comes from /sys/class/powercap (Documentation/power/powercap of the kernel), otherwise from the `power`
events of perf. The bytes come from the `uncore_imc` events of perf, which count at the memory controllers. Like
kernel.py, this module imports little of the standard library, because it is imported at the start of each run.
"""

from __future__ import annotations

import errno
import os

from .kernel import text_of

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; the import of typing takes long
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Open = Callable[["Event", int], int]

ENERGY, MEMORY = "energy", "memory"
_UNITS = {"Joules": 1.0, "MiB": float(1 << 20), "": 1.0}  # J or bytes per unit of an event
_MEMORY_EVENTS = {
    "cas_count_read": "memory_read_bytes",  # server processors
    "cas_count_write": "memory_written_bytes",
    "data_reads": "memory_read_bytes",  # other processors
    "data_writes": "memory_written_bytes",
    "data_read": "memory_read_bytes",
    "data_write": "memory_written_bytes",
}
_CALLS = {"x86_64": 298, "aarch64": 241}  # number of the system call perf_event_open (asm/unistd.h)
_ATTRIBUTES = 112  # PERF_ATTR_SIZE_VER5: bytes of struct perf_event_attr


class Event:
    """An event of perf that a device of the node counts.

    scale: J or bytes per count. processors: the CPUs on which the event must be opened, usually one per socket.
    """

    def __init__(self, name: str, kind: int, config: int, scale: float, processors: list[int]) -> None:
        """Create the event. kind, config: type and config of perf_event_attr."""
        self.name, self.kind, self.config, self.scale, self.processors = name, kind, config, scale, processors


class Counter:
    """The count of one source since it was opened (J or bytes).

    read: returns the current reading; None if unavailable. scale: J or bytes per count. wraps: the largest reading,
    after which the source restarts at 0; 0: the source does not restart.
    """

    def __init__(self, name: str, read: Callable[[], int | None], scale: float, wraps: int = 0) -> None:
        """Take the first reading."""
        self.name, self._read, self._scale, self._wraps = name, read, scale, wraps
        self._last = read()
        self._sum = 0

    def take(self) -> None:
        """Read the source, and add the count since the last reading. It may have restarted at most once since then."""
        now = self._read()
        if now is None or self._last is None:
            return
        passed = now - self._last
        self._sum += passed + self._wraps if passed < 0 else passed
        self._last = now

    @property
    def value(self) -> float:
        """Return the count (J or bytes)."""
        return self._sum * self._scale


class NodeCounters:
    """All counters of this node.

    refused: reason why counters that exist cannot be read, by kind (`ENERGY` or `MEMORY`).
    """

    def __init__(self, root: str = "/", opened: Open | None = None) -> None:
        """Open all counters.

        root: the folder with `sys`. opened: function that opens an event on a processor; default: `perf_event`.
        """
        self._open = opened or perf_event
        self._descriptors: list[int] = []
        self.refused: dict[str, str] = {}
        self.counters = list(self._zones(os.path.join(root, "sys/class/powercap")))
        devices = os.path.join(root, "sys/bus/event_source/devices")
        if not self.counters:
            self.counters += self._counted(ENERGY, _power_events(devices))
        self.counters += self._counted(MEMORY, _memory_events(devices))

    def take(self) -> dict[str, float]:
        """Return the counts since the creation of the object (J or bytes) by name, summed over devices of the node.

        An energy of 0 is left out: some virtual machines offer counters that do not count.
        """
        result: dict[str, float] = {}
        for counter in self.counters:
            counter.take()
            result[counter.name] = result.get(counter.name, 0.0) + counter.value
        counted = {name: round(value, 3) for name, value in sorted(result.items())}
        return {name: value for name, value in counted.items() if value or not name.startswith(ENERGY)}

    def close(self) -> None:
        """Close the events of perf."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()

    def names(self, kind: str) -> list[str]:
        """Return the names of the counters of a kind (`ENERGY` or `MEMORY`), without repetitions."""
        return sorted({counter.name for counter in self.counters if counter.name.startswith(kind)})

    def _zones(self, folder: str) -> Iterator[Counter]:
        """Yield the energy counters of powercap. folder: has one folder for each zone, such as a processor package."""
        seen = set()
        # intel-rapl-mmio:0 and intel-rapl:0 are the same package, read through different registers: only one counts.
        for zone in sorted(_listed(folder), key=lambda name: ("-mmio" in name, name)):
            path = os.path.join(folder, zone)
            label = text_of(f"{path}/name").strip()
            key = (zone.partition(":")[2], label)
            if not os.path.exists(f"{path}/energy_uj") or not label or key in seen:
                continue
            if _reading(f"{path}/energy_uj") is None:
                self.refused[ENERGY] = f"{path}/energy_uj cannot be read"
                continue
            seen.add(key)
            wraps = _reading(f"{path}/max_energy_range_uj") or 0
            name = f"energy_{label.rstrip('-0123456789')}_joules"
            yield Counter(name, lambda path=path: _reading(f"{path}/energy_uj"), 1e-6, wraps)  # type: ignore[misc]

    def _counted(self, kind: str, events: Iterator[Event]) -> Iterator[Counter]:
        """Yield a counter for each event and processor that can be opened."""
        for event in events:
            for processor in event.processors:
                descriptor = self._open(event, processor)
                if descriptor < 0:
                    self.refused[kind] = f"perf events of the node: {os.strerror(-descriptor)}"
                    continue
                self._descriptors.append(descriptor)
                yield Counter(event.name, lambda own=descriptor: _count(own), event.scale)  # type: ignore[misc]


def perf_event(event: Event, processor: int) -> int:
    """Open an event that counts all processes on a processor; return a descriptor, or -errno (perf_event_open(2))."""
    import ctypes
    import struct

    number = _CALLS.get(os.uname().machine)
    if number is None:
        return -errno.ENOSYS
    attributes = struct.pack("<IIQ", event.kind, _ATTRIBUTES, event.config).ljust(_ATTRIBUTES, b"\0")
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = int(libc.syscall(number, attributes, -1, processor, -1, 8))  # PERF_FLAG_FD_CLOEXEC
    return descriptor if descriptor >= 0 else -ctypes.get_errno()


def _power_events(devices: str) -> Iterator[Event]:
    for name, event in _events(os.path.join(devices, "power")):
        if name.startswith("energy-"):
            label = {"pkg": "package", "ram": "dram", "cores": "core"}.get(name[7:], name[7:])
            event.name = f"energy_{label}_joules"
            yield event


def _memory_events(devices: str) -> Iterator[Event]:
    for device in sorted(_listed(devices)):
        if device.startswith("uncore_imc"):
            for name, event in _events(os.path.join(devices, device)):
                if name in _MEMORY_EVENTS:
                    event.name = _MEMORY_EVENTS[name]
                    yield event


def _events(device: str) -> Iterator[tuple[str, Event]]:
    """Yield the events of a device by name (Documentation/ABI/testing/sysfs-bus-event_source-devices-events)."""
    kind, folder = _reading(f"{device}/type"), os.path.join(device, "events")
    for name in sorted(_listed(folder)):
        if "." in name or kind is None:
            continue
        unit = text_of(f"{folder}/{name}.unit").strip()
        config = _config(text_of(f"{folder}/{name}").strip(), os.path.join(device, "format"))
        if config is not None and unit in _UNITS:
            scale = float(text_of(f"{folder}/{name}.scale").strip() or 1.0) * _UNITS[unit]
            yield name, Event(name, kind, config, scale, _numbers(text_of(f"{device}/cpumask").strip() or "0"))


def _config(text: str, formats: str) -> int | None:
    """Return `config` of perf_event_attr for a text such as `event=0x04,umask=0x03`; None for an unknown field.

    formats: the folder with a file for each field, which names the bits of the field in `config`.
    """
    config = 0
    for field in text.split(","):
        name, _, value = field.partition("=")
        where, _, bits = text_of(os.path.join(formats, name)).strip().partition(":")
        first = bits.partition("-")[0]
        if where != "config" or not first.isdigit():
            return None
        config |= int(value or "1", 0) << int(first)
    return config


def _numbers(text: str) -> list[int]:
    """Return the numbers of a list such as `0,18-19`."""
    result = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            result += list(range(int(first), int(last or first) + 1))
    return result


def _reading(path: str) -> int | None:
    text = text_of(path).strip()
    return int(text) if text.isdigit() else None


def _count(descriptor: int) -> int | None:
    try:
        return int.from_bytes(os.read(descriptor, 8), "little")
    except OSError:
        return None


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
