# SPDX-License-Identifier: Apache-2.0
"""What the kernel says of this node and of its processes: files below /proc and /sys.

The standard library alone is imported, and little of it: the node agent starts with every run.
"""

from __future__ import annotations

import os

_CPUS = "/sys/devices/system/cpu"


def text_of(path: str) -> str:
    """Return the text of a file, empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def fields_of(path: str) -> dict[str, str]:
    """Return the lines `name: value` of a file; of lines with the same name the last."""
    pairs = (line.partition(":") for line in text_of(path).splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def physical_cores(folder: str = _CPUS) -> int | None:
    """Return the number of cores of this node, each counted once however many threads it has; None if not known."""
    cores = set()
    for name in _listed(folder):
        if name.startswith("cpu") and name[3:].isdigit():
            topology = os.path.join(folder, name, "topology")
            siblings = text_of(f"{topology}/core_cpus_list") or text_of(f"{topology}/thread_siblings_list")
            cores.add(siblings.strip())
    cores.discard("")
    return len(cores) or None


def frequency_mhz(cpuinfo: str = "/proc/cpuinfo", folder: str = _CPUS) -> float:
    """Return the mean frequency of the processors now (MHz), 0 if it is not known."""
    found = [_number(line.partition(":")[2]) for line in text_of(cpuinfo).splitlines() if line.startswith("cpu MHz")]
    if not found:  # Arm: kHz
        policies = os.path.join(folder, "cpufreq")
        found = [_number(text_of(os.path.join(policies, name, "scaling_cur_freq"))) / 1e3 for name in _listed(policies)]
    return sum(found) / len(found) if found else 0.0


def memory_bytes() -> tuple[int, int]:
    """Return the memory of this node and how much of it is used, without what caches of files hold."""
    known = fields_of("/proc/meminfo")
    sizes = {name: int(_number(value.split(" ")[0])) * 1024 for name, value in known.items()}
    total = sizes.get("MemTotal", 0)
    free = sum(sizes.get(name, 0) for name in ("MemFree", "Buffers", "Cached", "SReclaimable"))
    return total, max(0, total - free)


def processor_ticks() -> tuple[int, int]:
    """Return how long the processors of this node were busy since it started, and how long in all (clock ticks)."""
    words = text_of("/proc/stat").partition("\n")[0].split()[1:9]  # guests, which come after these, are part of user
    ticks = [int(word) for word in words]
    return sum(ticks) - sum(ticks[3:5]), sum(ticks)  # idle and waiting for a disk


def start_of(pid: int) -> str:
    """Return when a process started (clock ticks since the node did), which no later process of this number has."""
    after_name = text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return after_name[19] if len(after_name) > 19 else ""


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
