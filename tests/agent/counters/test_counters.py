# SPDX-License-Identifier: Apache-2.0
"""Counters of a simulated cache: files of callgrind are read, chains of callers find their call paths."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from quipu.agent.counters.attribution import CallPaths, attributed, levels_of
from quipu.agent.counters.cachegrind import Cachegrind, cache_option
from quipu.agent.counters.callgrind import read_callgrind
from quipu.agent.counters.choose import choose
from quipu.agent.counters.effort import Effort
from quipu.agent.counters.reuse import Reuse
from quipu.agent.counters.source import Wanted
from quipu.modeling.errors import EnvironmentProblem, FormatError, UsageError
from quipu.modeling.experiment import CallTree, Region, RegionKind
from quipu.modeling.machine import Cache, Machine

FILE = """# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 1
desc: D1 cache: 49152 B, 64 B, 12-way associative
desc: LL cache: 1048576 B, 64 B, 16-way associative
positions: line
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
summary: 1000

ob=(1) ./app
fl=(1) a.c
fn=(1) solve'main'(below main)
10 100 40 10 0 8 2 0 4 1
+1 10 4
fi=(2) b.h
* 1 1
cfn=(2) memcpy'solve'main'(below main)
calls=3 0
10 999 99 99 9 9 9 9 9 9
fn=(2)
0 7 2 2 0 1
fn=(3) mca_send'PMPI_Send'exchange'main'(below main)
0 50 20
fn=(4) solve'step'main'(below main)
0 30 9 3
fn=(5) _dl_start
0 11
"""
TREE = CallTree(
    (
        Region("main", "main"),
        Region("solve", "solve"),
        Region("step", "step"),
        Region("inlined", "inlined"),
        Region("exchange", "exchange"),
        Region("MPI_Send", "MPI_Send", RegionKind.MPI),
    ),
    np.array([0, 1, 2, 1, 4, 5, 3, 1]),
    np.array([-1, 0, 0, 2, 0, 4, 0, 6]),
)
"""main, main->solve, main->step, main->step->solve, main->exchange->MPI_Send, main->inlined->solve."""


def written(folder: Path, name: str, text: str = FILE) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_self_costs_of_chains_are_read(tmp_path: Path) -> None:
    costs = read_callgrind(written(tmp_path, "callgrind-0-1"))
    assert costs.of["solve", "main", "(below main)"] == [111, 45, 10, 0, 8, 2, 0, 4, 1]
    assert costs.of["memcpy", "solve", "main", "(below main)"] == [7, 2, 2, 0, 1, 0, 0, 0, 0]
    assert costs.caches["LL"].startswith("1048576") and costs.version == "callgrind-3.19.0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lists no events"),
        ("fn=(1) a\nevents: Ir\n1 5\n", "1: .*a function before its events"),
        (FILE.replace("(1) solve", "(77)\nfn=(78)"), "function .77. has no name"),
        (FILE.replace("0 50 20", "0 50 x"), "not a number"),
        (FILE.replace("0 50 20", "0" + " 1" * 12), "12 costs for 9 events"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_callgrind(written(tmp_path, "callgrind-0-1", text))


def test_versions_of_a_function_are_one_function(tmp_path: Path) -> None:
    text = """events: Ir
fn=(1) work'main
1 10
cfn=(2) work.quipu'work'main
calls=3 1
1 70
fn=(2)
1 50
cfn=(3) work.quipu'work.quipu'work'main
calls=1 1
1 20
fn=(3)
1 20
"""
    costs = read_callgrind(written(tmp_path, "callgrind-0-1", text))
    assert costs.of == {("work", "main"): [60], ("work", "work", "main"): [20]}
    assert costs.inclusive[("work", "main")] == [80]
    assert costs.calls == {("work", "main"): {("work", "work", "main")}}


def test_chains_find_their_call_paths(tmp_path: Path) -> None:
    paths = CallPaths(TREE)
    assert paths.find(("solve", "main", "(below main)")) == 1
    assert paths.find(("memcpy", "solve", "main")) == 1
    assert paths.find(("solve", "step", "main")) == 3
    assert paths.find(("x", "PMPI_Send", "exchange", "main")) == 5
    assert paths.find(("callback_main", "_dl_start")) == -1
    assert paths.find(("solve",)) == 1  # cut off: the one nearest to the root
    costs = read_callgrind(written(tmp_path, "callgrind-0-1"))
    found, outside = attributed(TREE, costs.of.items(), len(costs.events))
    assert found[:, 0].tolist() == [0, 118, 0, 30, 0, 50, 0, 0]
    assert outside[0] == 11
    values = levels_of(found, costs.events)
    assert values["l1_hits"][1] == 59 - 11 and values["llc_hits"][1] == 11 - 5 and values["memory_accesses"][1] == 5


def test_ranks_are_collected_from_their_files(tmp_path: Path) -> None:
    written(tmp_path, "callgrind-0-10")
    written(tmp_path, "callgrind-1-11")
    written(tmp_path, "callgrind-1-12")
    written(tmp_path, "callgrind-2-13", "broken")
    counted = Cachegrind().collect(tmp_path, TREE, Wanted(("memory_accesses",)))
    assert counted.ranks == (0, 1)
    assert [metric.name for metric in counted.metrics] == ["memory_accesses"]
    assert counted.values["memory_accesses"][:, 1].tolist() == [5, 10]
    assert counted.facts["source"] == "cachegrind" and len(counted.problems) == 1
    assert counted.facts["with_callers"] == ["inlined"]
    assert Cachegrind().collect(tmp_path / "nothing", TREE, Wanted()).problems == (
        "valgrind counted nothing: it printed no reason",
    )
    (tmp_path / "none").mkdir()
    said = "--7-- warning: L3 cache found\n==7== \n==7== Valgrind has to exit now.\n"
    (tmp_path / "none" / "valgrind-callgrind-0-7").write_text(said)
    (problem,) = Cachegrind().collect(tmp_path / "none", TREE, Wanted()).problems
    assert problem == "valgrind counted nothing: Valgrind has to exit now."


def test_misses_of_many_sizes_are_collected_from_their_runs(tmp_path: Path) -> None:
    scripts = Reuse().shims(tmp_path)
    for number in range(len(scripts)):
        written(
            tmp_path, f"reuse{number}-0-10", FILE.replace("100 40 10 0 8 2 0 4 1", f"100 40 10 0 {8 + number} 2 0 4")
        )
    assert "--D1=8192,16,64 --LL=65536,16,64 --simulate-hwpref=yes" in scripts[0]
    assert sum("hwpref" in script for script in scripts) == 2
    assert all("--demangle=no" in script for script in scripts)  # regions of C++ have the names of the linker
    counted = Reuse().collect(tmp_path, TREE, Wanted())
    assert counted.ranks == (0,) and not counted.problems
    assert {metric.name for metric in counted.metrics} == set(counted.values)
    found = {name: int(values[0, 1]) for name, values in counted.values.items()}
    assert found["accesses"] == 59
    assert (found["misses_8k"], found["misses_16k"], found["misses_64k"]) == (11, 12, 14)
    assert (found["misses_2048k"], found["scattered_64k"]) == (4, 4)
    assert Reuse().collect(tmp_path / "nothing", TREE, Wanted()).problems


def test_a_rank_that_one_run_did_not_count_has_no_misses(tmp_path: Path) -> None:
    for number in range(len(Reuse().shims(tmp_path))):
        written(tmp_path, f"reuse{number}-0-10")
        written(tmp_path, f"reuse{number}-1-11", "broken" if number == 3 else FILE)
    counted = Reuse().collect(tmp_path, TREE, Wanted())
    assert counted.ranks == (0,) and counted.problems


@pytest.mark.parametrize("kind", ["--enable-new-dtags", "--disable-new-dtags"])
@pytest.mark.parametrize("origin", ["$ORIGIN", "${ORIGIN}/../lib dir"])
def test_the_copy_for_valgrind_finds_the_libraries_of_the_program(tmp_path: Path, origin: str, kind: str) -> None:
    """If a library is in two folders, the one that the program loads is used: RPATH, LD_LIBRARY_PATH, RUNPATH."""
    valgrind = tmp_path / "valgrind"
    valgrind.write_text('#!/bin/sh\nwhile case $1 in -*) ;; *) false ;; esac; do shift; done\nexec "$@" >&2\n')
    valgrind.chmod(0o755)
    folder = tmp_path / "bin"
    own = folder if origin == "$ORIGIN" else tmp_path / "lib dir"
    for number, place in enumerate((own, tmp_path / "other")):
        place.mkdir(exist_ok=True)
        (tmp_path / "part.c").write_text(f"int part(void) {{ return {number}; }}")
        subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "part.c", "-o", place / "libpart.so"], check=True)
    folder.mkdir(exist_ok=True)
    (tmp_path / "app.c").write_text('#include <stdio.h>\nint part(void);\nint main(void) { printf("%d\\n", part()); }')
    linked = ["-L", str(own), "-lpart", f"-Wl,{kind},-rpath,/nowhere:{origin}"]
    subprocess.run(["cc", "-g", tmp_path / "app.c", "-o", folder / "app", *linked], check=True)
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "shim").write_text(Cachegrind().shims(raw)[0])
    for libraries in ("", str(tmp_path / "other")):
        paths = {"LD_LIBRARY_PATH": libraries} if libraries else {}
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **paths}
        plain, counted = (
            subprocess.run([*words, folder / "app"], env=environment, capture_output=True, text=True, check=True)
            for words in ((), ("sh", raw / "shim"))
        )
        assert counted.stderr == plain.stdout == ("1\n" if libraries and "enable" in kind else "0\n")
    assert (raw / "program-0").exists()


def test_simulated_caches_have_a_power_of_two_of_sets() -> None:
    assert cache_option("D1", 48 << 10, 12, 64) == "--D1=49152,12,64"
    assert cache_option("LL", 36 << 20, 12, 64) == f"--LL={36 << 20},18,64"
    assert cache_option("LL", 1 << 25, 16, 64) == "--LL=33554432,16,64"


def test_the_caches_of_a_described_machine_are_simulated(tmp_path: Path) -> None:
    near, far = Cache(1, 32768, 64, 8, 1, 1e-9, 32768), Cache(3, 1 << 25, 64, 16, 2, 1e-8, 1 << 23)
    machine = Machine("here", "a processor", 2, 3e9, 3e9, (near, far), 1e-7)
    (script,) = Cachegrind().of_machine(machine).shims(tmp_path)
    assert "--D1=32768,8,64" in script and f"--LL={1 << 23},16,64" in script
    (script,) = Cachegrind().of_machine(replace(machine, caches=(near, replace(far, effective=0.0)))).shims(tmp_path)
    assert f"--LL={1 << 25},16,64" in script
    with pytest.raises(UsageError, match="fewer than two caches"):
        Cachegrind().of_machine(replace(machine, caches=()))
    for source in (Effort(), Reuse()):
        with pytest.raises(UsageError, match="--machine: belongs to --counters cachegrind"):
            source.of_machine(machine)


def test_a_source_is_chosen_by_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cachegrind, "unavailable", lambda self, names: "")
    sources = (Cachegrind(), Effort())
    assert choose("effort")[0].name == "effort"
    source, wanted = choose("L1,mem", sources)
    assert source.name == "cachegrind" and wanted.names == ("l1_hits", "memory_accesses")
    assert choose("auto", sources)[0].name == "cachegrind"
    assert choose("auto", (Effort(),))[0].name == "effort"
    for request in ("", "effort,cachegrind", "flops"):
        with pytest.raises(UsageError, match="--counters"):
            choose(request)
    with pytest.raises(EnvironmentProblem, match="effort does not count L1"):
        choose("L1", (Effort(),))
    monkeypatch.setattr(
        Cachegrind, "unavailable", lambda self, names: "valgrind is not installed: apt-get install valgrind"
    )
    with pytest.raises(EnvironmentProblem, match="apt-get install"):
        choose("cachegrind")
