# SPDX-License-Identifier: Apache-2.0
"""Allocations per call path: numbers that are known, and what programs do that is dangerous to an allocator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE
from quipu.agent.installation import native_file
from quipu.agent.profile.reader import read_profile

from .conftest import Measured, Workshop, profiles_of, raw_folder, tree_of

MEMORY = native_file("libquipu.so").with_name("libquipu_memory.so")
MIB = 1 << 20


@pytest.fixture
def program(workshop: Workshop) -> Path:
    return workshop.build("allocating.c", "-O1", "-fno-builtin", "--quipu-all", "-ldl")


def counted(workshop: Workshop, program: Path, what: str, preload: str = "") -> list[Measured]:
    libraries = f"{MEMORY}{' ' if preload else ''}{preload}"
    return workshop.run_all(program, what, QUIPU_MEMORY="1", LD_PRELOAD=libraries)


def test_allocations_and_bytes_are_exact(workshop: Workshop, program: Path) -> None:
    (run,) = counted(workshop, program, "hold")
    small, large = run.tree["main", "many_small"], run.tree["main", "one_large"]
    assert (small["allocations"], small["allocated_bytes"]) == (3000, 300_000)
    assert (large["allocations"], large["allocated_bytes"]) == (1, 8 * MIB)
    released = run.tree["main", "release_small"]
    assert (released["releases"], released["released_bytes"]) == (3000, 3000 * 104)  # usable bytes of the C library


def test_the_largest_heap_and_who_holds_it(workshop: Workshop, program: Path) -> None:
    (run,) = counted(workshop, program, "hold")
    paths = run.tree
    largest = max(values["heap_peak"] for values in paths.values())
    least = 8 * MIB + 3000 * 104
    assert least <= largest <= least + 100_000  # the C library's own blocks, such as the buffer of stdout
    assert paths["main", "one_large"]["heap_peak"] == largest
    assert paths["main", "many_small"]["heap_peak"] < MIB
    held = sum(values["heap_held"] for values in paths.values())
    assert held == pytest.approx(largest, abs=len(paths))
    assert paths["main", "one_large"]["heap_held"] == pytest.approx(8 * MIB, abs=8192)
    assert paths["main", "many_small"]["heap_held"] == pytest.approx(3000 * 104, rel=0.25)  # by samples
    assert paths["main", "release_small"]["heap_held"] == 0
    assert paths["main",]["resident_peak"] > 0


def test_a_heap_below_zero_keeps_the_peak(workshop: Workshop, tmp_path: Path) -> None:
    """The program releases a block that it allocated past this library."""
    source = tmp_path / "below.c"
    source.write_text(
        "#include <stdlib.h>\nextern void *__libc_malloc(size_t);\nvoid *volatile block;\n"
        "int main(void) {\n"
        "    free(block = malloc(1 << 20));\n"
        "    free(block = __libc_malloc(8 << 20));\n"
        "    block = malloc(16);\n"
        "    return 0;\n}\n",
        encoding="utf-8",
    )
    (run,) = counted(workshop, workshop.build(source, "-O1", "-fno-builtin", "--quipu-all", name="below"), "")
    assert run.tree["main",]["heap_peak"] >= MIB


def test_every_kind_of_allocation_counts_once(workshop: Workshop, program: Path) -> None:
    (run,) = counted(workshop, program, "kinds")
    kinds = run.tree["main", "all_kinds"]
    assert (kinds["allocations"], kinds["releases"]) == (8, 8)  # realloc releases one block and allocates another
    text = len("a text of the C library") + 1
    assert kinds["allocated_bytes"] == 1000 + 640 + 300 + 50 + 100 + 200 + 5000 + text


def test_threads_release_what_others_allocated(workshop: Workshop, program: Path) -> None:
    (run,) = counted(workshop, program, "threads")
    made, given = run.tree["main", "threads", "producer"], run.tree["main", "threads", "consumer"]
    assert (made["allocations"], given["releases"]) == (20_000, 20_000)
    largest = run.profile.values["heap_peak"].max()
    assert 2_000_000 <= largest <= 2_000_000 + 300_000  # not the sum of all rounds; 64 KiB per thread are not seen


def test_a_child_has_the_heap_of_its_parent(workshop: Workshop, program: Path) -> None:
    parent, child = sorted(counted(workshop, program, "forks"), key=lambda one: "forked_from" in one.profile.attributes)
    inside = child.tree["main", "forks", "in_child"]
    assert (inside["allocations"], inside["releases"]) == (1, 1)
    assert 6 * MIB <= inside["heap_peak"] <= 6 * MIB + 200_000
    assert 4 * MIB <= parent.tree["main", "forks"]["heap_peak"] <= 4 * MIB + 200_000


@pytest.mark.parametrize("what", ["signals", "libraries"])
def test_handlers_and_the_dynamic_linker(workshop: Workshop, program: Path, what: str) -> None:
    (run,) = counted(workshop, program, what)
    assert run.stdout == "done\n"
    assert not run.profile.problems
    if what == "signals":
        assert sum(values["allocations"] for path, values in run.tree.items() if "handler" in path) == 200


def test_another_allocator_behind_is_counted(workshop: Workshop, program: Path, tmp_path: Path) -> None:
    source, library = tmp_path / "other.c", tmp_path / "other.so"
    source.write_text(
        "#include <stddef.h>\n"
        "extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);\n"
        "extern void __libc_free(void *);\n"
        "void *malloc(size_t size) { return __libc_malloc(size); }\n"
        "void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }\n"
        "void *realloc(void *block, size_t size) { return __libc_realloc(block, size); }\n"
        "void free(void *block) { __libc_free(block); }\n"
        "size_t malloc_usable_size(void *block) { return (((size_t *)block)[-1] & ~(size_t)7) - 8; }\n",
        encoding="utf-8",
    )
    subprocess.run(["clang-19", "-O1", "-fno-builtin", "-shared", "-fPIC", source, "-o", library], check=True)
    (run,) = counted(workshop, program, "hold", str(library))
    assert run.tree["main", "many_small"]["allocations"] == 3000
    assert run.profile.attributes["allocator"] == str(library)


def test_an_allocator_in_the_program_is_named(workshop: Workshop, tmp_path: Path) -> None:
    source = tmp_path / "own.c"
    source.write_text(
        "#include <stddef.h>\n"
        "static char heap[1 << 20];\nstatic size_t used;\n"
        "void *malloc(size_t size) { void *block = heap + used; used += (size + 15) & ~(size_t)15; return block; }\n"
        "void free(void *block) { (void)block; }\n"
        "int main(void) { char *volatile block = malloc(10); free(block); return 0; }\n",
        encoding="utf-8",
    )
    program = workshop.build(source, "-O1", "-fno-builtin", "--quipu-all", name="own")
    run = workshop.run(program, QUIPU_MEMORY="1", LD_PRELOAD=str(MEMORY))
    assert "the program contains an allocator" in run.profile.attributes["memory_problem"]
    assert run.profile.attributes["memory_problem"] in run.profile.problems


def test_a_program_without_shared_libraries_is_named(workshop: Workshop) -> None:
    program = workshop.build("allocating.c", "-O1", "-fno-builtin", "--quipu-all", "-static", "-w", name="static")
    run = workshop.run(program, "hold", QUIPU_MEMORY="1", LD_PRELOAD=str(MEMORY))
    assert "linked statically" in run.profile.attributes["memory_problem"]
    assert "heap_peak" not in run.profile.values


def test_who_held_the_heap_is_known_after_a_kill(workshop: Workshop, tmp_path: Path) -> None:
    source = tmp_path / "killed.c"
    source.write_text(
        "#include <signal.h>\n#include <stdlib.h>\nchar *volatile block;\n"
        "__attribute__((noinline)) static void hold(void) { block = malloc(16 << 20); }\n"
        "int main(void) { hold(); raise(SIGKILL); return 0; }\n",
        encoding="utf-8",
    )
    program = workshop.build(source, "-O1", "-fno-builtin", "--quipu-all", name="killed")
    done, (profile,) = profiles_of(raw_folder(workshop), program, QUIPU_MEMORY="1", LD_PRELOAD=str(MEMORY))
    assert done.returncode == -9
    assert tree_of(profile)["main", "hold"]["heap_held"] == pytest.approx(16 * MIB, abs=8192)


def test_cpp_and_its_containers(workshop: Workshop, tmp_path: Path) -> None:
    source = tmp_path / "containers.cpp"
    source.write_text(
        "#include <vector>\n#include <new>\n"
        "void *volatile seen;\n"
        "__attribute__((noinline)) void one() {\n"
        "    int *a = new int(1); seen = a; delete a; double *b = new double[100]; seen = b; delete[] b;\n}\n"
        "__attribute__((noinline)) void aligned() {\n"
        "    struct alignas(64) Line { char bytes[64]; }; Line *a = new Line; seen = a; delete a;\n}\n"
        "__attribute__((noinline)) bool fails() {\n"
        "    volatile unsigned long most = 1ul << 62;\n"
        "    try { volatile char *all = new char[most]; return all == nullptr; }\n"
        "    catch (const std::bad_alloc &) { return true; }\n}\n"
        "int main() { one(); aligned(); std::vector<long> v(1000); return fails() && v[0] == 0 ? 0 : 1; }\n",
        encoding="utf-8",
    )
    program = workshop.build(source, "-O1", "-fno-builtin", "--quipu-all", "-std=c++17", name="containers")
    run = workshop.run(program, QUIPU_MEMORY="1", LD_PRELOAD=str(MEMORY))
    one, aligned = (
        run.tree[next(path for path in run.tree if path[-1:] == (f"{name}()",))] for name in ("one", "aligned")
    )
    assert (one["allocations"], one["releases"], one["allocated_bytes"]) == (2, 2, 804)
    assert (aligned["allocations"], aligned["releases"]) == (1, 1)


def test_nothing_is_kept_without_the_option(workshop: Workshop, program: Path) -> None:
    run = workshop.run(program, "hold")
    assert "allocations" not in run.profile.values


def test_fortran_allocates_by_malloc(workshop: Workshop, tmp_path: Path) -> None:
    source = tmp_path / "fields.f90"
    source.write_text(
        "program fields\n  real(8), allocatable :: field(:)\n  call work(100000)\ncontains\n"
        "  subroutine work(n)\n    integer, intent(in) :: n\n    integer :: i\n    allocate (field(n))\n"
        "    do i = 1, n\n      field(i) = i\n    end do\n    print *, sum(field)\n    deallocate (field)\n"
        "  end subroutine\nend program\n",
        encoding="utf-8",
    )
    program = tmp_path / "fields"
    subprocess.run([native_file("quipu-fc"), "-O1", "--quipu-all", source, "-o", program], cwd=tmp_path, check=True)
    run = workshop.run(program, QUIPU_MEMORY="1", LD_PRELOAD=str(MEMORY))
    (work,) = (values for path, values in run.tree.items() if path and path[-1].endswith("work"))
    assert work["allocated_bytes"] >= 800_000
    assert work["heap_held"] >= 800_000


def test_objects_of_python_and_what_came_before_them(tmp_path: Path) -> None:
    (tmp_path / "objects.py").write_text(
        "def hold(count):\n    return [bytes(1000) for _ in range(count)]\n\n\nkept = hold(5000)\nprint(len(kept))\n",
        encoding="utf-8",
    )
    raw = tmp_path / "raw"
    raw.mkdir()
    environment = {**os.environ, "QUIPU_DIR": str(raw), "QUIPU_PYTHON": "1", "QUIPU_MEMORY": "1"}
    command = [str(native_file("quipu-exec")), sys.executable, str(tmp_path / "objects.py")]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=PATIENCE)
    (file,) = raw.glob("profile-*.quipu")
    tree = tree_of(read_profile(file))
    inside = sum(values["heap_held"] for path, values in tree.items() if any("hold" in name for name in path))
    outside = sum(values["heap_held"] for path, values in tree.items() if not any("hold" in name for name in path))
    assert inside == pytest.approx(5000 * 1033, rel=0.15)  # what the interpreter holds is not theirs
    assert outside > 1_000_000


def test_a_library_that_enters_a_region_first_changes_nothing(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "early.c").write_text(
        "#include <stdlib.h>\nvoid *volatile early;\n"
        "__attribute__((constructor)) static void at_load(void) { early = malloc(4 << 20); }\n",
        encoding="utf-8",
    )
    library, compiler = tmp_path / "libearly.so", native_file("quipu-cc")
    options = ["-O1", "-fno-builtin", "--quipu-all"]
    subprocess.run([compiler, *options, "-shared", "-fPIC", tmp_path / "early.c", "-o", library], check=True)
    source = tmp_path / "late.c"
    source.write_text("extern void *volatile early;\nint main(void) { return early == 0; }\n", encoding="utf-8")
    program = workshop.build(source, *options, str(library), f"-Wl,-rpath,{tmp_path}", name="late")
    run = workshop.run(program, QUIPU_MEMORY="1", LD_PRELOAD=str(MEMORY))
    assert not run.profile.problems
    assert sum(values["heap_held"] for values in run.tree.values()) >= 4 * MIB
