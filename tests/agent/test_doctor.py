# SPDX-License-Identifier: Apache-2.0
"""Messages of the doctor for incomplete machines."""

from __future__ import annotations

from pathlib import Path

import pytest
from quipu.agent.doctor import Check, checks
from quipu.agent.installation import native_file, quipu_version
from quipu.agent.source.modules import modules

TOOLS = {
    "clang-19": "echo 'clang version 19.1.7'",
    "mpicc": "exit 1",
    "mpirun": 'case "$*" in --version) echo "mpirun (Open MPI) 4.1.4";; *) echo "no slots"; exit 5;; esac',
}


def look(folder: Path, monkeypatch: pytest.MonkeyPatch, tools: dict[str, str]) -> dict[str, Check]:
    for name, script in tools.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("QUIPU_HOME", str(folder / "home"))
    return {check.name: check for check in checks(folder)}


def test_an_empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(tmp_path, monkeypatch, {})
    native = ("QuipuPass-19.so", "libquipu.so", "libquipu_merge.so", "quipu-exec")
    for name in ("clang-19", "mpicc", "mpirun", *native, "MPI library"):
        assert not found[name].ok
        assert found[name].remedy
    assert found["clang-19"].remedy == "apt-get install clang-19"
    assert found["flang-new-19"].optional
    assert found["SimGrid"].optional and not found["SimGrid"].ok
    assert found["SimGrid"].found == "smpirun and smpicc missing"
    assert found["SimGrid"].remedy == "apt-get install libsimgrid-dev"
    assert found["Python"].ok and found["psutil"].ok and found["disk"].ok


def test_counters_of_the_node(tmp_path: Path) -> None:
    zone = tmp_path / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    for name, content in {"name": "package-0", "energy_uj": "5", "max_energy_range_uj": "100"}.items():
        (zone / name).write_text(content)
    found = {check.name: check for check in checks(tmp_path, tmp_path)}
    assert (found["node energy"].ok, found["node energy"].found) == (True, "energy_package_joules")
    assert found["node memory"].optional and not found["node memory"].ok
    assert found["node memory"].found == "not offered by this kernel (a virtual machine?)"


def test_an_mpi_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look(tmp_path, monkeypatch, TOOLS)
    assert found["clang-19"].ok
    assert not found["mpicc"].ok
    assert found["mpirun"].found.startswith("openmpi 4.1.4")
    assert not found["mpicc and mpirun"].ok
    assert found["MPI start"].found == "exit code 5: no slots"


def test_parts_that_do_not_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "home" / "lib" / "quipu"
    folder.mkdir(parents=True)
    names = ("libquipu.so", "libquipu_merge.so")
    for name in names:
        (folder / name).write_text("no library")
    found = look(tmp_path, monkeypatch, {})
    for name in names:
        assert not found[name].ok
        assert name in found[name].found


def test_native_parts_of_different_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "home" / "lib" / "quipu"
    folder.mkdir(parents=True)
    for name in ("libquipu.so", "QuipuPass-19.so"):
        (folder / name).write_bytes(native_file(name).read_bytes())
    (runtime,) = modules(folder / "libquipu.so")
    assert runtime.version == quipu_version()
    fitting = look(tmp_path, monkeypatch, {})["native parts"]
    assert fitting.ok
    assert f"QuipuPass-19.so {runtime.version}-{runtime.interface:08x}" in fitting.found
    own, other = (number.to_bytes(4, "little") + runtime.version.encode() for number in (runtime.interface, 7))
    (folder / "libquipu.so").write_bytes((folder / "libquipu.so").read_bytes().replace(own, other))
    broken = look(tmp_path, monkeypatch, {})["native parts"]
    assert not broken.ok
    assert f"libquipu.so {runtime.version}-00000007" in broken.found
    assert broken.remedy


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    found = {check.name: check for check in checks(tmp_path / "none")}
    assert not found["disk"].ok
