# SPDX-License-Identifier: Apache-2.0
"""Read facts about this node and its processes from the files of the kernel below /proc and /sys.

This module imports only a small part of the standard library: the node agent, which starts with every run, needs it.
"""

from __future__ import annotations

import os

_CPUS = "/sys/devices/system/cpu"


def text_of(path: str) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def fields_of(path: str) -> dict[str, str]:
    """Return the values of the lines `name: value` of a file, by name; the last line of each name counts."""
    pairs = (line.partition(":") for line in text_of(path).splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def physical_cores(folder: str = _CPUS) -> int | None:
    """Return the number of physical cores of this node; None if unknown.

    folder: the folder of the kernel with one folder per logical processor.
    """
    cores = set()
    for name in _listed(folder):
        if name.startswith("cpu") and name[3:].isdigit():
            topology = os.path.join(folder, name, "topology")
            siblings = text_of(f"{topology}/core_cpus_list") or text_of(f"{topology}/thread_siblings_list")
            cores.add(siblings.strip())
    cores.discard("")
    return len(cores) or None


def frequency_mhz(cpuinfo: str = "/proc/cpuinfo", folder: str = _CPUS) -> float:
    """Return the mean current clock frequency of the processors (MHz); 0 if unknown."""
    found = [_number(line.partition(":")[2]) for line in text_of(cpuinfo).splitlines() if line.startswith("cpu MHz")]
    if not found:  # on Arm, cpuinfo has no frequencies; these files have kHz
        policies = os.path.join(folder, "cpufreq")
        found = [_number(text_of(os.path.join(policies, name, "scaling_cur_freq"))) / 1e3 for name in _listed(policies)]
    return sum(found) / len(found) if found else 0.0


def memory_bytes() -> tuple[int, int]:
    """Return the total and the used memory of this node (bytes). File caches do not count as used."""
    known = fields_of("/proc/meminfo")
    sizes = {name: int(_number(value.split(" ")[0])) * 1024 for name, value in known.items()}
    total = sizes.get("MemTotal", 0)
    free = sum(sizes.get(name, 0) for name in ("MemFree", "Buffers", "Cached", "SReclaimable"))
    return total, max(0, total - free)


def processor_ticks() -> tuple[int, int]:
    """Return the busy time and the total time of all processors since the start of the node (clock ticks)."""
    # The columns after the eighth are times of guest systems, which the first column (user) already contains.
    words = text_of("/proc/stat").partition("\n")[0].split()[1:9]
    ticks = [int(word) for word in words]
    return sum(ticks) - sum(ticks[3:5]), sum(ticks)  # columns 3 and 4: idle, and waiting for a disk


def start_of(pid: int) -> str:
    """Return the start time of a process (text, clock ticks since the start of the node); empty if there is none.

    The start time distinguishes a process from a later one with the same process id.
    """
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
