# SPDX-License-Identifier: Apache-2.0
"""Coverage, profilers and auditors of the dynamic linker in a measured program: they and the measurement work."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.repetition import LaunchOptions, run
from quipu.agent.installation import native_file

PROGRAM = """#include <signal.h>
#include <sys/time.h>
static volatile long sink;
static volatile sig_atomic_t samples;
static void sample(int number) { (void)number; samples++; }
__attribute__((noinline)) void step(void) { sink++; }
int main(int argc, char **argv) {
    if (argc > 1) {
        struct itimerval every = {{0, 1000}, {0, 1000}};
        signal(SIGPROF, sample);
        setitimer(ITIMER_PROF, &every, 0);
    }
    for (int i = 0; i < 1000; i++)
        step();
    while (argc > 1 && samples < 3)
        sink++;
    return 0;
}
"""
AUDITOR = """#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <unistd.h>
unsigned la_version(unsigned version) { (void)version; return LAV_CURRENT; }
unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie) {
    (void)map, (void)space, (void)cookie;
    close(open("audited", O_WRONLY | O_CREAT, 0644));
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *by, uintptr_t *of, unsigned *flags,
                       const char *name) {
    (void)index, (void)by, (void)of, (void)flags, (void)name;
    return symbol->st_value;
}
"""


def measured(folder: Path, options: tuple[str, ...], *command: str) -> RunArchive:
    (folder / "program.c").write_text(PROGRAM)
    words = [str(native_file("quipu-cc")), "-O1", "--quipu-all", *options, "program.c", "-o", "program"]
    subprocess.run(words, cwd=folder, check=True)
    return run(command, {}, None, folder / "runs", LaunchOptions(folder=folder, say=lambda text: None))


def visits(archive: RunArchive) -> dict[str, int]:
    """Return the visits of the regions that were entered."""
    names = [archive.tree.region_of(path).display for path in range(len(archive.tree))]
    found = {name: int(archive.statistics["visits"].sum[path]) for path, name in enumerate(names)}
    return {name: number for name, number in found.items() if number}


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (("--coverage",), "program-program.gcda"),
        (("-fprofile-instr-generate", "-fcoverage-mapping"), "default.profraw"),
        (("-pg",), "gmon.out"),
    ],
    ids=["gcov", "coverage of the source", "gprof"],
)
def test_tools_that_compilers_build_in(tmp_path: Path, options: tuple[str, ...], written: str) -> None:
    archive = measured(tmp_path, options, "./program")
    assert archive.metadata.complete and visits(archive) == {"main": 1, "step": 1000}
    assert (tmp_path / written).stat().st_size > 0


def test_a_profiler_with_a_timer(tmp_path: Path) -> None:
    archive = measured(tmp_path, (), "./program", "samples")
    assert archive.metadata.complete
    assert visits(archive).pop("sample") >= 3 and visits(archive)["step"] == 1000


def test_an_auditor_of_the_dynamic_linker(tmp_path: Path) -> None:
    (tmp_path / "audit.c").write_text(AUDITOR)
    subprocess.run(["cc", "-shared", "-fPIC", "audit.c", "-o", "audit.so"], cwd=tmp_path, check=True)
    archive = measured(tmp_path, (), "env", f"LD_AUDIT={os.fspath(tmp_path / 'audit.so')}", "./program")
    assert archive.metadata.complete and visits(archive) == {"main": 1, "step": 1000}
    assert (tmp_path / "audited").exists()
