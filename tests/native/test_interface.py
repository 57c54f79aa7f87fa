# SPDX-License-Identifier: Apache-2.0
"""Files that were built for another runtime say so when they are loaded, and processes that are not measured work."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from patience import PATIENCE
from quipu.agent.installation import native_file
from quipu.agent.source.modules import modules

from .conftest import Workshop

WORK = "int work(int n) {\n  int sum = 0;\n  for (int i = 0; i < n; i++)\n    sum ^= i;\n  return sum;\n}\n"
MAIN = "int work(int);\nint main(void) { return work(3) == 3 ? 0 : 7; }\n"
HOST = """#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *library = dlopen(argv[argc - 1], RTLD_NOW);
    int (*work)(int) = library ? (int (*)(int))dlsym(library, "work") : 0;
    return work ? work(3) : 1;
}
"""


def build(workshop: Workshop, *arguments: Path | str) -> None:
    command = [native_file("quipu-cc"), "-O2", *arguments]
    subprocess.run(command, cwd=workshop.folder, env=workshop.environment, check=True)


def built_for_another_runtime(workshop: Workshop) -> Path:
    """Return an object file like one that a pass with the interface 7 makes."""
    folder = workshop.folder
    (folder / "work.c").write_text(WORK)
    build(workshop, "-fPIC", "-S", "-emit-llvm", "work.c", "-o", "work.ll")
    own = f"{modules(native_file('libquipu.so'))[0].interface:08x}"
    text = (folder / "work.ll").read_text().replace(f"quipu_module_{own}", "quipu_module_00000007")
    text, changed = re.subn(r"(@quipu_module_00000007_ = .*? \{ i32) -?\d+", r"\1 7", text)
    assert changed == 1
    (folder / "work.ll").write_text(text)
    subprocess.run([f"clang-{workshop.llvm}", "-w", "-c", "work.ll", "-o", "work.o"], cwd=folder, check=True)
    return folder / "work.o"


@pytest.mark.parametrize("measured", [True, False], ids=["measured", "not-measured"])
@pytest.mark.parametrize("kind", ["shared", "static", "plugin"])
def test_code_for_another_runtime_is_refused(workshop: Workshop, kind: str, measured: bool) -> None:
    folder = workshop.folder
    work = built_for_another_runtime(workshop)
    (folder / "main.c").write_text(HOST if kind == "plugin" else MAIN)
    wrong = folder / ("libwork.so" if kind == "plugin" else "program")
    if kind == "plugin":
        build(workshop, "-shared", work, "-o", wrong)
        build(workshop, "main.c", "-o", "program")
    else:
        build(workshop, *(["-static"] if kind == "static" else []), "main.c", work, "-o", "program")
    (folder / "raw").mkdir()
    environment = {"QUIPU_DIR": str(folder / "raw")} if measured else {}
    done = subprocess.run(
        [folder / "program", wrong], env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"quipu: error: {wrong} was built for interface 00000007 of Quipu ")
    assert "(work.c, for one)" in line and "build it again" in line
    runtime = folder / "program" if kind == "static" else native_file("libquipu.so").resolve()
    (own,) = modules(native_file("libquipu.so"))
    assert f"the runtime {runtime} has interface {own.interface:08x} of Quipu {own.version}" in line


def test_every_file_says_once_what_it_was_built_for(workshop: Workshop) -> None:
    folder = workshop.folder
    (folder / "work.c").write_text(WORK)
    (folder / "main.c").write_text(MAIN)
    build(workshop, "-Wl,--gc-sections", "main.c", "work.c", "-o", "program")
    subprocess.run(["strip", "program"], cwd=folder, check=True)
    (told,) = modules(folder / "program")
    (runtime,) = modules(native_file("libquipu.so"))
    assert (told.interface, told.version) == (runtime.interface, runtime.version)
    assert told.source == "main.c"
    assert {module.interface for module in modules(native_file(f"QuipuPass-{workshop.llvm}.so"))} == {told.interface}


IDLE = """#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
static jmp_buf place;
__attribute__((noinline)) long deep(long n) { return n ? 1 + deep(n - 1) - n % 2 : 0; }
__attribute__((noinline)) void leave(long n) {
    if (n % 3)
        longjmp(place, 1);
    printf("%s", n < 0 ? "never" : "");
}
__attribute__((noinline)) long jump(long n) {
    volatile long left = 0, i = 0;
    for (; i < n; i++) {
        if (setjmp(place))
            left++;
        else
            leave(i);
    }
    return left;
}
static void *run(void *depth) { return (void *)deep((long)depth); }
int main(void) {
    pthread_t threads[8];
    printf("%ld %ld\\n", deep(100000), jump(60000));
    for (long i = 0; i < 8; i++)
        pthread_create(&threads[i], 0, run, (void *)(1000 * i));
    for (int i = 0; i < 8; i++) {
        void *found;
        pthread_join(threads[i], &found);
        printf("%ld ", (long)found);
    }
    return 0;
}
"""


@pytest.mark.parametrize("options", [(), ("--quipu-naive",), ("-static",)], ids=["usual", "naive", "static"])
def test_processes_that_are_not_measured(workshop: Workshop, options: tuple[str, ...]) -> None:
    """Deep recursion and frames that are jumped over, more often than a thread has room for them."""
    source = workshop.folder / "idle.c"
    source.write_text(IDLE)
    program = workshop.build(source, "-O1", "-fno-optimize-sibling-calls", "--quipu-all", *options)
    measured = workshop.run(program)
    plain = subprocess.run([program], env={}, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (plain.stdout, plain.stderr, plain.returncode) == (measured.stdout, "", 0)
    assert plain.stdout.startswith("50000 40000\n")
