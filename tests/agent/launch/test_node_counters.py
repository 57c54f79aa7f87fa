# SPDX-License-Identifier: Apache-2.0
"""Energy and memory traffic of a node, from imitations of the kernel's folders."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest
from quipu.agent.launch.node import NodeAgent
from quipu.agent.launch.node_counters import ENERGY, MEMORY, Event, NodeCounters


def plant(root: Path, files: dict[str, object]) -> None:
    for name, content in files.items():
        path = root / "sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")


def zone(root: Path, name: str, label: str, energy: int, most: int = 1_000_000) -> Path:
    place = f"class/powercap/{name}"
    plant(root, {f"{place}/name": label, f"{place}/energy_uj": energy, f"{place}/max_energy_range_uj": most})
    return root / "sys" / place / "energy_uj"


def device(root: Path, name: str, events: dict[str, str], cpus: str = "0") -> None:
    place = f"bus/event_source/devices/{name}"
    plant(root, {f"{place}/type": 24, f"{place}/cpumask": cpus, f"{place}/format/event": "config:0-7"})
    plant(root, {f"{place}/format/umask": "config:8-15"})
    for event, content in events.items():
        plant(root, {f"{place}/events/{event}": content})


MEMORY_CONTROLLER = {
    "cas_count_read": "event=0x04,umask=0x03",
    "cas_count_read.scale": "6.103515625e-5",
    "cas_count_read.unit": "MiB",
    "cas_count_write": "event=0x04,umask=0x0c",
    "cas_count_write.scale": "6.103515625e-5",
    "cas_count_write.unit": "MiB",
    "clockticks": "event=0x00",
}


class Perf:
    """Opens files in place of events; a count is written to the file."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.opened = folder, list[tuple[str, int, int, int]]()

    def __call__(self, event: Event, processor: int) -> int:
        self.opened.append((event.name, event.kind, event.config, processor))
        reader, self.writer = os.pipe()
        for count in (1000, 3000):
            os.write(self.writer, count.to_bytes(8, "little"))
        return reader


def test_energy_of_powercap(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0", 999_000)
    other = zone(tmp_path, "intel-rapl:1", "package-1", 100)
    memory = zone(tmp_path, "intel-rapl:0:0", "dram", 5)
    zone(tmp_path, "intel-rapl-mmio:0", "package-0", 1)  # the same package, by other registers
    plant(tmp_path, {"class/powercap/intel-rapl/enabled": 1})
    counters = NodeCounters(str(tmp_path))
    assert counters.names(ENERGY) == ["energy_dram_joules", "energy_package_joules"]
    package.write_text("2000\n")  # it began again
    other.write_text("7100\n")
    memory.write_text("3000005\n")
    assert counters.take() == {"energy_dram_joules": 3.0, "energy_package_joules": 0.01}
    package.write_text("3000\n")
    assert counters.take()["energy_package_joules"] == 0.011


def test_energy_of_perf_where_powercap_is_not_there(tmp_path: Path) -> None:
    events = {"energy-pkg": "event=0x02", "energy-pkg.scale": "2.5e-1", "energy-pkg.unit": "Joules"}
    device(tmp_path, "power", events, "0,8")
    perf = Perf(tmp_path)
    counters = NodeCounters(str(tmp_path), perf)
    assert perf.opened == [("energy_package_joules", 24, 2, 0), ("energy_package_joules", 24, 2, 8)]
    assert counters.take() == {"energy_package_joules": 1000.0}
    counters.close()


def test_bytes_of_the_memory_controllers(tmp_path: Path) -> None:
    for number in range(2):
        device(tmp_path, f"uncore_imc_{number}", MEMORY_CONTROLLER, "0-1")
    perf = Perf(tmp_path)
    counters = NodeCounters(str(tmp_path), perf)
    assert perf.opened[:2] == [("memory_read_bytes", 24, 0x304, 0), ("memory_read_bytes", 24, 0x304, 1)]
    assert len(perf.opened) == 8
    assert counters.names(MEMORY) == ["memory_read_bytes", "memory_written_bytes"]
    lines = 2 * 2 * 2000 * 64.0  # two controllers, two sockets, 64 bytes each
    assert counters.take() == {"memory_read_bytes": lines, "memory_written_bytes": lines}
    counters.close()


def test_what_is_forbidden_is_said(tmp_path: Path) -> None:
    device(tmp_path, "uncore_imc_0", MEMORY_CONTROLLER)
    counters = NodeCounters(str(tmp_path), lambda event, processor: -errno.EACCES)
    assert counters.counters == []
    assert counters.refused == {MEMORY: "perf events of the node: Permission denied"}


@pytest.mark.parametrize("broken", [{}, {"class/powercap/intel-rapl:0/energy_uj": "?"}], ids=["none", "broken"])
def test_a_node_without_counters_has_none(tmp_path: Path, broken: dict[str, object]) -> None:
    plant(tmp_path, broken)
    assert NodeCounters(str(tmp_path)).take() == {}


def test_the_node_agent_writes_what_was_counted(tmp_path: Path) -> None:
    energy = zone(tmp_path / "root", "intel-rapl:0", "package-0", 0)
    raw = tmp_path / "raw"
    raw.mkdir()
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    rank = {"rank": 0, "ranks": 1, "pid": child.pid, "host": "here", "affinity": [0], "program": "app"}
    (raw / "rank-0.json").write_text(json.dumps(rank))
    seconds = iter(range(100))

    def sleep(_: float) -> None:
        energy.write_text("500000\n")
        child.communicate()

    NodeAgent(raw, "here", clock=lambda: float(next(seconds)), sleep=sleep, root=str(tmp_path / "root")).run()
    assert json.loads((raw / "node-here.json").read_text())["counters"] == {"energy_package_joules": 0.5}
