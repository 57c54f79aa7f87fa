# SPDX-License-Identifier: Apache-2.0
"""The machine description: caches according to the kernel, measured values, and fits of the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
from quipu.agent.machine.describe import describe, known_caches, probe
from quipu.agent.machine.network import measure, networks_of
from quipu.modeling.errors import EnvironmentProblem, FormatError, MeasurementError
from quipu.modeling.machine import Cache, Network, Reach, from_document, to_document


def write_cache(folder: Path, number: int, **entries: str) -> None:
    place = folder / f"index{number}"
    place.mkdir(parents=True)
    for name, text in entries.items():
        (place / name).write_text(text + "\n")


def test_caches_as_the_kernel_describes_them(tmp_path: Path) -> None:
    common = {"coherency_line_size": "64", "shared_cpu_list": "0", "ways_of_associativity": "8"}
    write_cache(tmp_path, 0, type="Data", level="1", size="32K", **common)
    write_cache(tmp_path, 1, type="Instruction", level="1", size="32K", **common)
    write_cache(tmp_path, 3, type="Unified", level="3", size="16M", **{**common, "shared_cpu_list": "0-3,8"})
    write_cache(tmp_path, 2, type="Unified", level="2", size="512K", coherency_line_size="64", shared_cpu_list="0-1")
    write_cache(tmp_path, 4, type="Data", level="?", size="32K", **common)
    found = [(cache.level, cache.bytes, cache.cores, cache.ways) for cache in known_caches(tmp_path)]
    assert found == [(1, 32768, 1, 8), (2, 1 << 19, 2, 0), (3, 1 << 24, 5, 8)]
    assert known_caches(tmp_path / "nothing") == []


def test_a_machine_is_what_its_probes_measure(tmp_path: Path) -> None:
    common = {"coherency_line_size": "64", "shared_cpu_list": "0", "ways_of_associativity": "8"}
    write_cache(tmp_path, 0, type="Data", level="1", size="32K", **common)
    write_cache(tmp_path, 1, type="Unified", level="2", size="2M", **common)
    asked = []

    def run(words: Sequence[str]) -> float:
        asked.append(tuple(words))
        if words[0] == "latency":
            return {16384: 1e-9, 65536: 4e-9, 262144: 5e-9, 2 << 20: 6e-9}.get(int(words[1]), 9e-8)
        if words[0] in ("in-order", "scattered"):
            return int(words[1]) * (1e-15 if words[0] == "in-order" else 1e-14)
        return {
            "bandwidth": 1e10 * int(words[-1]) if words[0] == "bandwidth" else 0,
            "tsc": 2e9,
            "frequency": 3e9,
            "flops": 5e10,
        }[words[0]]

    network = (Network("ping-pong", 2, 1e-6, 1e-10),)
    machine = describe(network, known_caches(tmp_path), run)
    assert [cache.latency for cache in machine.caches] == [1e-9, 5e-9]
    assert (machine.latency("L1"), machine.latency("L2"), machine.latency("LLC")) == (1e-9, 5e-9, 5e-9)
    assert machine.memory == machine.latency("memory") == 9e-8
    assert machine.clock == 2e9 and machine.ping_pong() == network[0]
    assert machine.bandwidth_of(1) == 1e10
    assert [cache.effective for cache in machine.caches] == [32768, 2 << 20]
    assert asked[:2] == [("latency", str(8 << 20), "64"), ("latency", "16384", "64")]
    assert [entry.bytes for entry in machine.reach] == [1 << power for power in range(14, 24)]
    assert machine.reach[-1] == Reach(1 << 23, (1 << 23) * 1e-15, (1 << 23) * 1e-14)
    for wrong in ({"frequency": 1e-9}, {"caches": [{**asdict(machine.caches[0]), "bytes": 0.5}]}):
        with pytest.raises(FormatError, match=r"m\.json: (frequency|caches\[0\]\.bytes) must be a finite number >= 1"):
            from_document({**to_document(machine), **wrong}, "m.json")
    assert from_document(to_document(machine), "m.json") == machine


@pytest.mark.parametrize(("hit", "effective"), [(16, 16), (8, 8), (3, 2), (0, 16)])
def test_a_last_cache_that_others_use_is_as_large_as_what_loads_hit(hit: float, effective: float) -> None:
    """A virtual machine gets a part of the last-level cache; with equal loads, the part is not determined."""

    def run(words: Sequence[str]) -> float:
        return (9e-8 if int(words[1]) > hit * 2**20 else 1.4e-8) if words[0] == "latency" else 1e9

    caches = [Cache(1, 32768, 64, 8, 1, 0.0), Cache(2, 1 << 19, 64, 8, 1, 0.0), Cache(3, 16 << 20, 64, 16, 2, 0.0)]
    machine = describe((), caches, run)
    assert [cache.effective for cache in machine.caches] == [32768, 1 << 19, effective * 2**20]
    assert machine.latency("LLC") == (1.4e-8 if hit else 9e-8)
    assert machine.caches[-1].bytes == 16 << 20


def test_the_probe_measures_here() -> None:
    near, far = probe(("latency", "8192", "64")), probe(("latency", str(1 << 26), "64"))
    assert 1e-10 < near <= far < 1e-5
    for order in ("in-order", "scattered"):
        assert 1e-12 < probe((order, "8192", "64")) < probe((order, str(1 << 26), "64")) < 1e-5
    assert probe(("frequency",)) > 1e8
    assert probe(("bandwidth", str(1 << 23), "1")) > 1e7
    with pytest.raises(MeasurementError, match="is not a number"):
        probe(("latency", "many", "64"))


def test_an_exchange_of_all_ranks_sends_at_least_one_byte_to_each(tmp_path: Path) -> None:
    (tmp_path / "platform.xml").write_text(
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n'
        '<cluster id="c" prefix="n" suffix="" radical="0-8" speed="1Gf" bw="10GBps" lat="1us"/>\n</platform>\n'
    )
    (tmp_path / "hosts").write_text("".join(f"n{host}\n" for host in range(9)))
    places = ["-platform", str(tmp_path / "platform.xml"), "-hostfile", str(tmp_path / "hosts")]
    found = {one.operation: one for one in measure(["smpirun", "-np", "9", *places], "smpicc")}
    assert [entry.bytes for entry in found["MPI_Bcast"].times] == [8, 1024, 16384, 262144]
    assert [entry.bytes for entry in found["MPI_Alltoall"].times] == [1024, 16384, 262144]


def test_the_network_is_a_line_through_its_times() -> None:
    lines = [f"ping-pong 2 {size} {1e-6 + 1e-10 * size:.9e}" for size in (8, 1024, 262144)]
    (found,) = networks_of("\n".join(lines))
    assert found.operation == "ping-pong" and found.ranks == 2
    assert (found.alpha, found.beta) == pytest.approx((1e-6, 1e-10), rel=1e-3)
    assert [entry.bytes for entry in found.times] == [8, 1024, 262144]
    assert found.seconds(2048) == pytest.approx(1.2048e-6)
    with pytest.raises(FormatError, match="is not a line with operation"):
        networks_of("hello")
    with pytest.raises(EnvironmentProblem, match="--mpicc"):
        measure(["mpirun", "-n", "2"], "no-such-compiler")
