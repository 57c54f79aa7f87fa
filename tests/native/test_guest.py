# SPDX-License-Identifier: Apache-2.0
"""What a program does to the runtime inside of it, and what the runtime must not do to the program."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from quipu.agent.installation import native_file
from quipu.agent.profile.reader import ProcessProfile, ProfileState

from .conftest import MANY, Tree, Workshop, profiles_of, raw_folder, tree_of, visits_of

LIBRARIES = native_file("libquipu.so").parent


def totals(profile: ProcessProfile) -> dict[str, float]:
    """Effort without visits, summed over all call paths."""
    effort = [metric.name for metric in profile.metrics if metric.is_effort and metric.name != "visits"]
    return {name: float(profile.values[name].sum()) for name in effort}


def built_by_hand(workshop: Workshop) -> Path:
    """Build regions.c, which calls the runtime directly."""
    include = LIBRARIES / "include"
    return workshop.build("regions.c", "-O2", f"-I{include}")


def few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))


@pytest.fixture
def without_sanitizers(monkeypatch: pytest.MonkeyPatch) -> None:
    """For programs that leave no room for what a sanitizer needs: address space, a malloc of its own, system calls."""
    monkeypatch.delenv("QUIPU_HOME", raising=False)


@pytest.mark.parametrize("way", ["open", "close"])
def test_files_of_a_program_that_closes_all_descriptors(workshop, way: str) -> None:
    """The program reuses the descriptors of the runtime. The profile still grows, or it contains an error."""
    program = workshop.build("descriptors.c", "-O1", "--quipu-all")
    mine = workshop.folder / "mine"
    done, (profile,) = profiles_of(raw_folder(workshop), program, mine, way, limit=few_descriptors)
    assert (done.returncode, mine.read_bytes()) == (0, b"mine\n")
    if way == "close":
        assert profile.problems == ()
        assert visits_of(profile, "f") == 60 + MANY
    else:  # no descriptor is left to grow with
        assert "could not grow" in profile.error


def test_a_child_of_a_program_that_closed_all_descriptors_counts_its_own(workshop) -> None:
    program = workshop.build("descriptors.c", "-O1", "--quipu-all")
    done, profiles = profiles_of(raw_folder(workshop), program, workshop.folder / "mine", "fork", limit=few_descriptors)
    assert done.returncode == 0
    child, parent = sorted(profiles, key=lambda profile: "forked_from" not in profile.attributes)
    assert visits_of(child, "f") == 120
    assert visits_of(parent, "f") == 60 + MANY
    assert child.problems == parent.problems == ()


@pytest.mark.parametrize("way", ["return", "jump", "exit", "fork", "overflow"])
def test_handlers_that_return_or_not_to_what_they_interrupted(workshop, way: str) -> None:
    program = workshop.build("left_by_handlers.c", "-O1", "--quipu-all")
    done, profiles = profiles_of(raw_folder(workshop), program, way, "40" if way == "fork" else "300")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if way == "exit" else "1\n")
    assert {profile.state for profile in profiles} == {ProfileState.ENDED}
    assert {profile.problems for profile in profiles} == {()}


def test_the_file_size_limit_is_no_signal(workshop) -> None:
    """The limit is set as by `ulimit -f` in a shell, without ignoring SIGXFSZ."""
    program = workshop.build("folded.cpp", "-O1", "--quipu-all")
    raw = raw_folder(workshop)
    _, (whole,) = profiles_of(raw, program)
    bytes_ = 700 << 10
    done, profiles = profiles_of(
        raw_folder(workshop), program, limit=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))
    )
    assert done.returncode == 0
    assert done.stderr.count("the profile could not grow") == 1
    (profile,) = profiles
    assert "could not grow" in profile.error
    assert totals(profile) == totals(whole)


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_call_paths_beyond_the_limit_count_with_their_callers(workshop, level: str) -> None:
    """The sum of the effort stays; functions with omitted callees have the same inclusive effort or more."""
    program = workshop.build("folded.cpp", level)
    _, (whole,) = profiles_of(raw_folder(workshop), program, "24")
    done, (limited,) = profiles_of(raw_folder(workshop), program, "24", QUIPU_PROFILE_LIMIT="1")
    assert done.returncode == 0
    assert "limit of 1 MiB" in done.stderr
    assert any("their callers contain their counts" in problem for problem in limited.problems)
    assert limited.lost == 0
    assert limited.path.stat().st_size <= (1 << 20) + (1 << 18)
    assert len(limited.parent) < len(whole.parent) / 2
    assert totals(limited) == totals(whole)
    inclusive_of = [inclusive(tree_of(profile), "blocks") for profile in (whole, limited)]
    assert all(value >= inclusive_of[0][path] for path, value in inclusive_of[1].items())


def inclusive(tree: Tree, metric: str) -> dict[tuple[str, ...], float]:
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    for path, values in tree.items():
        for length in range(len(path) + 1):
            sums[path[:length]] += values[metric]
    return sums


def test_a_limit_that_is_no_number_is_refused(workshop) -> None:
    program = workshop.build("folded.cpp", "-O2")
    done, profiles = profiles_of(raw_folder(workshop), program, QUIPU_PROFILE_LIMIT="many")
    assert (done.returncode, profiles) == (1, [])
    meant = "it must be a number of MiB, 0 for no limit [bad-setting]"
    assert done.stderr == f"quipu: error: QUIPU_PROFILE_LIMIT=many: {meant}\n"


def test_a_clock_that_there_is_not_is_refused(workshop) -> None:
    """An unknown value of QUIPU_CLOCK must not fall back to a clock."""
    program = workshop.build("folded.cpp", "-O2")
    done, profiles = profiles_of(raw_folder(workshop), program, QUIPU_CLOCK="off")
    assert (done.returncode, profiles) == (1, [])
    assert done.stderr == "quipu: error: QUIPU_CLOCK=off: it must be tsc, monotonic or none [bad-setting]\n"


@pytest.mark.parametrize("length", [20_000, 70_000])
def test_names_that_are_longer_than_a_chunk(workshop, length: int) -> None:
    source = workshop.folder / "long.c"
    names = [f"g{'x' * length}{i}" for i in range(2)]
    source.write_text(
        "volatile int sink;\n#define KEEP __attribute__((noinline, optnone))\n"
        + "\n".join(f"KEEP void {name}(int n) {{ for (int i = 0; i < n; i++) sink++; }}" for name in names)
        + f"\nint main(void) {{ {names[0]}(1000); {names[1]}(3000); }}\n"
    )
    _, (profile,) = profiles_of(raw_folder(workshop), workshop.build(source, "-O0"))
    assert profile.problems == ()
    blocks = {path[-1]: values["blocks"] for path, values in tree_of(profile).items() if len(path) == 2}
    assert sorted(blocks.values()) == [3003, 9003]
    if length > 32768:
        assert all(name.startswith("gxxx") and "...#" in name for name in blocks)
    else:
        assert all("...#" in profile.regions[number].display for number in profile.regions if number > 1)


def test_a_program_with_more_rights_than_its_caller_is_not_measured(workshop) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a program that belongs to another user")
    program = workshop.build("folded.cpp", "-O2", "-static")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o777)
        of_root = place / "of_root"
        shutil.copy(program, of_root)
        of_root.chmod(0o4755)
        secret = place / "secret"
        secret.write_text("a line of a file that only root may read\n")
        secret.chmod(0o600)
        raw = place / "raw"
        raw.mkdir()
        raw.chmod(0o777)
        done = subprocess.run(
            [of_root],
            env={"QUIPU_DIR": str(raw), "QUIPU_FILTER": str(secret), "QUIPU_PROFILE_LIMIT": "x"},
            user=65534,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert list(raw.iterdir()) == []


def test_threads_need_little_address_space(workshop, without_sanitizers: None) -> None:
    """pthreads.c runs with 4 threads in an address space of 400 MiB."""
    program = workshop.build("pthreads.c", "-O2")
    plain = workshop.run(program, "4")
    limit = 400 << 20
    done, (profile,) = profiles_of(
        raw_folder(workshop),
        program,
        "4",
        limit=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, "")
    assert profile.problems == ()


def test_many_callees_of_one_caller(workshop) -> None:
    """One caller has 32,000 callees; a linear search at each call would take minutes."""
    rounds, callees = 30, 32_000
    done, (profile,) = profiles_of(raw_folder(workshop), built_by_hand(workshop), "callees", str(callees), str(rounds))
    assert done.returncode == 0
    assert visits_of(profile, "r") == 1 + rounds * callees
    assert profile.problems == ()


@pytest.mark.parametrize("depth", [30_000, 120_000])
def test_recursion_to_the_bottom_of_the_stack(workshop, depth: int) -> None:
    done, (profile,) = profiles_of(raw_folder(workshop), built_by_hand(workshop), "deep", str(depth))
    assert done.returncode == 0
    assert visits_of(profile, "r") == depth + 1
    assert profile.problems == ()


def test_children_of_a_large_profile(workshop) -> None:
    done, profiles = profiles_of(raw_folder(workshop), built_by_hand(workshop), "fork", "400", "4")
    assert done.returncode == 0
    (profile,) = profiles
    assert profile.path.stat().st_size > 24 << 20
    assert visits_of(profile, "r") == 400 + 400 * 400


SANDBOX = """#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/seccomp.h>
#include "many_paths.h"
int main(void) {
    walk(1);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
        return 1;
    walk(40);
    write(1, "done\\n", 5);
    syscall(SYS_exit, 0);
}
"""


@pytest.mark.parametrize("options", [(), ("-static",)], ids=["shared", "static"])
def test_a_program_that_gives_up_its_system_calls(workshop, options: tuple[str, ...], without_sanitizers: None) -> None:
    source = workshop.folder / "sandbox.c"
    source.write_text(SANDBOX)
    program = workshop.build(source, "-O1", "--quipu-all", f"-I{Path(__file__).parent / 'programs'}", *options)
    done, (profile,) = profiles_of(raw_folder(workshop), program)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert totals(profile)["blocks"] > 60 * 41


ERRNO = """#include <errno.h>
#include <stdio.h>
#include "many_paths.h"
int main(void) {
    errno = 77;
    for (int depth = 0; depth < 60; depth++) {
        walk(depth);
        if (errno != 77)
            return printf("%d\\n", errno);
    }
}
"""


def test_errno_stays_as_it_was(workshop) -> None:
    source = workshop.folder / "errno.c"
    source.write_text(ERRNO)
    program = workshop.build(source, "-O1", "--quipu-all", f"-I{Path(__file__).parent / 'programs'}")
    few = 900 << 10
    for limit in (None, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (few, few))):
        done, _ = profiles_of(raw_folder(workshop), program, limit=limit)
        assert (done.returncode, done.stdout) == (0, "")


ALLOCATOR = """#include <stddef.h>
#include <stdio.h>
static char memory[1 << 24];
static size_t used;
__attribute__((noinline, optnone)) static void *take(size_t bytes) {
    void *found = memory + used;
    used += (bytes + 31) / 32 * 32;
    return found;
}
__attribute__((noinline, optnone)) void *malloc(size_t bytes) { return take(bytes + 32); }
__attribute__((noinline, optnone)) void free(void *place) { (void)place; }
__attribute__((noinline, optnone)) void *calloc(size_t number, size_t each) { return take(number * each + 32); }
__attribute__((noinline, optnone)) void *realloc(void *old, size_t bytes) {
    char *fresh = take(bytes + 32);
    for (size_t i = 0; old && i < bytes; i++)
        fresh[i] = ((char *)old)[i];
    return fresh;
}
int main(void) {
    puts(malloc(5) ? "allocated" : "");
    return 0;
}
"""


def test_an_allocator_that_is_measured_itself(workshop, tmp_path: Path, without_sanitizers: None) -> None:
    source = workshop.folder / "allocator.c"
    source.write_text(ALLOCATOR)
    program = workshop.build(source, "-O1", "--quipu-all", "-fno-builtin")
    selection = tmp_path / "some.filter"
    selection.write_text("SCOREP_REGION_NAMES_BEGIN\n EXCLUDE nothing\nSCOREP_REGION_NAMES_END\n")
    done, (profile,) = profiles_of(raw_folder(workshop), program, QUIPU_FILTER=str(selection))
    assert (done.returncode, done.stdout) == (0, "allocated\n")
    assert tree_of(profile)[("main", "malloc", "take")]["visits"] >= 1


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_signal_at_each_instruction_of_a_visit(workshop, level: str) -> None:
    """The hooks are calls of the runtime or code that the pass inserted."""
    windows = 1200 if "QUIPU_HOME" in os.environ else 400  # more instructions if a sanitizer is in the runtime
    program = workshop.build("stepped.c", level, "--quipu-all")
    done, profiles = profiles_of(raw_folder(workshop), program, "each", str(windows), "1")
    assert done.returncode == 0
    handled = int(done.stdout)
    child = max(profiles, key=lambda profile: visits_of(profile, "in_handler"))
    assert child.problems == ()
    assert 50 < handled < windows  # the last windows are over before their instruction
    tree = tree_of(child)
    for name, visits in {"visited": 2 * windows, "in_handler_then": handled, "in_handler": handled}.items():
        paths = [path for path in tree if path[-1:] == (name,) and "in_handler_then" not in path[:-1]]
        places = [tree[path] for path in paths]
        assert sum(values["visits"] for values in places) == visits, name
        assert {values["blocks"] % values["visits"] for values in places} == {0}, name
    assert {path[:-1] for path in tree if path[-1:] == ("visited",)} == {("main", "stepped", "window")}


@pytest.mark.parametrize(
    ("level", "way"), [("-O0", "return"), ("-O2", "return"), ("-O2", "jump"), ("-O2", "fork"), ("-O2", "exit")]
)
def test_a_signal_at_any_instruction(workshop, level: str, way: str) -> None:
    """The effort of signal handlers and that of the interrupted code stay in separate call paths."""
    windows = 20
    program = workshop.build("stepped.c", level, "--quipu-all")
    done, profiles = profiles_of(raw_folder(workshop), program, way, str(windows), "1")
    assert done.returncode == 0
    handled = int(done.stdout)
    assert handled == 1 if way == "exit" else handled > windows // 2
    child = max(profiles, key=lambda profile: visits_of(profile, "f"))
    assert child.problems == ()
    assert visits_of(child, "in_handler_then") == handled
    assert visits_of(child, "in_handler") == 3 * handled
    if way in ("return", "fork"):
        assert visits_of(child, "f") == 2 * windows
        places = [path for path in tree_of(child) if path and path[-1].startswith("f")]
        assert {path[:-1] for path in places} == {("main", "stepped", "window")}
        assert len({tree_of(child)[path]["blocks"] for path in places}) == 1
