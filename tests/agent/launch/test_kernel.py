# SPDX-License-Identifier: Apache-2.0
"""Read node data of the kernel, from files of this test, and compare with psutil."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from quipu.agent.launch.kernel import frequency_mhz, memory_bytes, physical_cores, processor_ticks, start_of


def test_threads_of_a_core_count_once(tmp_path: Path) -> None:
    for cpu, siblings in enumerate(["0,2", "1,3", "0,2", "1,3"]):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        name = "core_cpus_list" if cpu % 2 else "thread_siblings_list"
        (topology / name).write_text(f"{siblings}\n")
    (tmp_path / "cpuidle").mkdir()
    assert physical_cores(str(tmp_path)) == 2
    assert physical_cores(str(tmp_path / "nothing")) is None


def test_frequencies_of_both_kinds_of_processors(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("cpu MHz\t\t: 1000.5\nflags : fpu\n\ncpu MHz\t\t: 2000.5\n")
    policy = tmp_path / "cpufreq" / "policy0"
    policy.mkdir(parents=True)
    (policy / "scaling_cur_freq").write_text("3000000\n")
    assert frequency_mhz(str(tmp_path / "cpuinfo"), str(tmp_path)) == 1500.5
    assert frequency_mhz(str(tmp_path / "none"), str(tmp_path)) == 3000.0
    assert frequency_mhz(str(tmp_path / "none"), str(tmp_path / "none")) == 0.0


def test_as_another_library_says() -> None:
    total, used = memory_bytes()
    assert total == psutil.virtual_memory().total
    assert 0 < used < total
    assert physical_cores() in (psutil.cpu_count(logical=False), None)
    created = int(start_of(os.getpid())) / os.sysconf("SC_CLK_TCK") + psutil.boot_time()
    assert created == pytest.approx(psutil.Process().create_time(), abs=1.1)


def test_processors_are_busy_at_most_all_the_time() -> None:
    busy, total = processor_ticks()
    assert 0 < busy <= total


def test_a_process_that_is_not_there_has_no_start() -> None:
    assert start_of(2**31 - 1) == ""
