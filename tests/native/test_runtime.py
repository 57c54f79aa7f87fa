# SPDX-License-Identifier: Apache-2.0
"""The call-path tree: what is counted where, and that nothing leaves it inconsistent."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from quipu.agent.profile.reader import ProfileState, read_profile

from .conftest import clock_library, tree_of

OPTIMIZATION = ["-O0", "-O1", "-O2", "-O3"]


@pytest.mark.parametrize("level", OPTIMIZATION)
def test_every_way_out_of_a_function(workshop, level: str) -> None:
    run = workshop.run(workshop.build("control_flow.cpp", level, "--quipu-all"), ends_with=7)
    tree = run.tree
    assert run.stdout == "55 0 1 3\n"
    assert run.profile.state == ProfileState.ENDED
    main = ("main",)
    assert tree[main]["visits"] == 1
    assert tree[(*main, "fibonacci(int)")]["visits"] == 177
    assert tree[(*main, "even(int)")]["visits"] == 5
    assert tree[(*main, "even(int)", "odd(int)")]["visits"] == 5
    assert tree[(*main, "catches()", "throws(int)")]["visits"] == 5
    jumps = (*main, "jumps()")
    assert tree[jumps]["visits"] == 1
    assert tree[(*jumps, "outer_jump(int)")]["visits"] == 3
    assert tree[(*jumps, "outer_jump(int)", "inner_jump(int)")]["visits"] == 3
    assert tree[(*jumps, "after_jump()")]["visits"] == 1
    assert tree[(*main, "leaves()")]["visits"] == 1


def test_blocks_of_frames_that_never_return(workshop) -> None:
    """inner_jump(k) executes 3k + 3 blocks before longjmp; main and leaves() end in exit()."""
    tree = workshop.run(workshop.build("control_flow.cpp", "-O0", "--quipu-all"), ends_with=7).tree
    inner = ("main", "jumps()", "outer_jump(int)", "inner_jump(int)")
    assert tree[inner]["blocks"] == sum(3 * k + 3 for k in (1, 2, 3))
    assert tree[("main", "leaves()")]["blocks"] == 1
    assert tree[("main",)]["blocks"] >= 1
    # Each activation but the innermost one executes the entry, the test's exit and the block of the call.
    assert tree[("main", "catches()", "throws(int)")]["blocks"] >= 5 * 2


@pytest.mark.parametrize("level", OPTIMIZATION)
@pytest.mark.parametrize("n", [0, 1, 2, 17, 1000])
def test_closed_forms_count_as_increments_do(workshop, level: str, n: int) -> None:
    """Loops counted in closed form have the counts of their flow graphs, also with zero trips."""
    tree = workshop.run(workshop.build("loops.c", level), str(n)).tree
    blocks = {path[-1]: values["blocks"] for path, values in tree.items() if path}
    if level == "-O0":  # clang's own flow graph: entry, condition, body and increment per trip, end
        assert blocks["counted"] == 3 + 3 * n
        assert blocks["triangle"] == 3 + 4 * n + sum(1 + 3 * (i + 1) for i in range(n))
        assert blocks["until"] == 2 + 4 * n + 2 + 1
    else:  # differences do not depend on the shape of the flow graph
        more = workshop.run(workshop.folder / "program", str(n + 7)).tree
        assert more[("main", "counted")]["blocks"] >= blocks["counted"]


def test_rotated_loop_counts_are_linear(workshop) -> None:
    program = workshop.build("loops.c", "-O2")
    counts = [workshop.run(program, str(n)).tree[("main", "counted")]["blocks"] for n in (10, 20, 30, 10010)]
    assert counts[1] - counts[0] == counts[2] - counts[1] > 0
    assert (counts[3] - counts[0]) * 10 == (counts[1] - counts[0]) * 10000


def test_counts_are_the_same_in_every_run(workshop) -> None:
    program = workshop.build("loops.c", "-O2")
    first, second = (workshop.run(program, "333").tree for _ in range(2))
    assert {p: v["blocks"] for p, v in first.items()} == {p: v["blocks"] for p, v in second.items()}


def test_threads_share_few_locations(workshop) -> None:
    run = workshop.run(workshop.build("threads.cpp", "-O0"), "4")
    paths = [path for path in run.tree if path and path[-1] == "work(int)"]
    assert all(path[0] == "main" for path in paths)
    assert sum(run.tree[path]["visits"] for path in paths) == 1 + 14
    assert sum(run.tree[path]["blocks"] for path in paths) == 33 + 10 * 303 + 4 * 3003
    assert len(set(run.profile.location.tolist())) <= 5  # threads that ended make room for the next


def test_exclusive_times_add_up_to_the_run(workshop) -> None:
    program = workshop.build("loops.c", "-O1")
    began = time.perf_counter()
    run = workshop.run(program, "3000")
    elapsed = time.perf_counter() - began
    assert 0 < sum(values["time"] for path, values in run.tree.items() if path) < elapsed


@pytest.mark.parametrize("clock", ["tsc", "monotonic", "none"])
def test_clocks(workshop, clock: str) -> None:
    program = workshop.build("loops.c", "-O1")
    began = time.perf_counter()
    tree = workshop.run(program, "2000", QUIPU_CLOCK=clock).tree
    elapsed = time.perf_counter() - began
    if clock == "none":
        assert all(not values["time"] > 0 for values in tree.values())
    else:
        assert 0 < tree[("main", "triangle")]["time"] < elapsed


def test_before_main_is_what_the_program_does_there(workshop) -> None:
    """The work of the runtime at the first region is not counted before `main`."""
    program = workshop.build("before_main.cpp", "-O1", str(clock_library(workshop)))
    tree = workshop.run(program, QUIPU_CLOCK="monotonic").tree
    assert tree[()]["blocks"] > 0
    assert tree[()]["time"] == pytest.approx(5.0, abs=1e-3)
    assert tree[("main",)]["visits"] == 1


def test_nothing_is_written_without_quipu_dir(workshop, tmp_path: Path) -> None:
    program = workshop.build("loops.c", "-O1")
    before = set(tmp_path.iterdir())
    subprocess.run([program, "5"], check=True, cwd=tmp_path, capture_output=True)
    assert set(tmp_path.iterdir()) == before


def test_run_filter_gives_the_work_to_the_caller(workshop, tmp_path: Path) -> None:
    program = workshop.build("loops.c", "-O1")
    full = workshop.run(program, "50").tree
    selection = tmp_path / "run.filter"
    selection.write_text(
        "SCOREP_REGION_NAMES_BEGIN\nEXCLUDE *\nINCLUDE MANGLED\nmain\ntriangle\nSCOREP_REGION_NAMES_END\n"
    )
    some = workshop.run(program, "50", QUIPU_FILTER=str(selection)).tree
    assert {path for path, values in some.items() if values["visits"]} == {("main",), ("main", "triangle")}
    assert some[("main", "triangle")]["blocks"] == full[("main", "triangle")]["blocks"]
    total = sum(values["blocks"] for values in full.values())
    assert sum(values["blocks"] for values in some.values()) == total


def test_bad_run_filter_ends_the_program(workshop, tmp_path: Path) -> None:
    program = workshop.build("loops.c", "-O1")
    selection = tmp_path / "bad.filter"
    selection.write_text("SCOREP_REGION_NAMES_BEGIN\n  EXCLUDE *\n")
    raw = tmp_path / "raw"
    raw.mkdir()
    done = subprocess.run(
        [program],
        env={"QUIPU_DIR": str(raw), "QUIPU_FILTER": str(selection)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"quipu: error: {selection}:")
    assert "SCOREP_REGION_NAMES_END" in done.stderr


def test_a_forked_process_has_a_profile_of_its_own(workshop, tmp_path: Path) -> None:
    """The child continues in the call path that forked. Each profile has the effort of its own process only."""
    source = tmp_path / "forks.c"
    source.write_text(
        """
        #include <sys/wait.h>
        #include <unistd.h>
        #define OWN __attribute__((noinline, optnone))
        volatile int sink;
        OWN void work(void) { sink++; }
        OWN int split(void) {
            work();
            int child = fork();
            if (child == 0)
                for (int i = 0; i < 100; i++) { sink++; work(); }
            return child;
        }
        OWN int main(void) {
            work();
            if (split() == 0) { work(); return 0; }
            wait(0);
            work();
            return 0;
        }
        """
    )
    program = workshop.build(source, "-O0", "--quipu-all")
    raw = tmp_path / "raw-fork"
    raw.mkdir()
    subprocess.run([program], env={**os.environ, "QUIPU_DIR": str(raw)}, check=True)
    profiles = [read_profile(path) for path in raw.glob("profile-*.quipu")]
    child, parent = sorted(profiles, key=lambda profile: "forked_from" not in profile.attributes)
    assert child.attributes["forked_from"] == str(parent.pid)
    assert {profile.state for profile in profiles} == {ProfileState.ENDED}
    main = ("main",)
    assert {path: values["visits"] for path, values in tree_of(parent).items() if path} == {
        main: 1,
        (*main, "work"): 2,
        (*main, "split"): 1,
        (*main, "split", "work"): 1,
    }
    assert {path: values["visits"] for path, values in tree_of(child).items() if path} == {
        main: 0,
        (*main, "work"): 1,
        (*main, "split"): 0,
        (*main, "split", "work"): 100,
    }
    # condition, body and increment of each trip, the failing condition, and the two ends
    assert tree_of(child)[(*main, "split")]["blocks"] >= 3 * 100


def test_full_disk_is_reported_and_survived(workshop, tmp_path: Path) -> None:
    """The disk has no space for another chunk. The program ends normally and reports the problem once."""
    functions = "\n".join(f"KEEP void f{i}(int d) {{ if (d) f{(i * 7 + 1) % 60}(d - 1); }}" for i in range(60))
    declarations = "\n".join(f"void f{i}(int d);" for i in range(60))
    calls = "\n".join(f"f{i}(40);" for i in range(60))
    source = tmp_path / "many.c"
    source.write_text(
        f"#define KEEP __attribute__((noinline, optnone))\n{declarations}\n{functions}\nint main(void) {{ {calls} }}\n"
    )
    program = workshop.build(source, "-O0")
    raw = tmp_path / "limited"
    raw.mkdir()
    # A file size limit ends growth just as a full disk does: posix_fallocate fails.
    done = subprocess.run(
        ["bash", "-c", f"trap '' XFSZ; ulimit -f 136; QUIPU_DIR={raw} exec {program}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr.count("the profile could not grow") == 1
    (profile,) = raw.glob("profile-*.quipu")
    read = read_profile(profile)
    assert read.lost > 0
    assert "could not grow" in read.error


def test_unwritable_folder_is_reported(workshop, tmp_path: Path) -> None:
    program = workshop.build("loops.c", "-O1")
    done = subprocess.run(
        [program, "5"], env={"QUIPU_DIR": str(tmp_path / "absent")}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "this process is not measured" in done.stderr
