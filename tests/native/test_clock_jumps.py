# SPDX-License-Identifier: Apache-2.0
"""Clocks that jump while a program runs: times are neither negative nor longer than the run, and counts are whole."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.repetition import LaunchOptions, RunFailed, run

PROGRAM = """#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static volatile long sink;
__attribute__((noinline)) void step(void) { sink++; }
static void work(void) {
    struct timespec first, now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &first);
    do {
        for (int i = 0; i < 100; i++)
            step();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((now.tv_sec - first.tv_sec) * 1000000000L + now.tv_nsec - first.tv_nsec < 40000000);
}
int main(int argc, char **argv) {
    work();
    if (!strcmp(argv[1], "exec"))
        execl(argv[0], argv[0], "again", (char *)NULL);
    if (!strcmp(argv[1], "abort"))
        abort();
    return 0;
}
"""
REAL, MONOTONIC = 0, 1
JUMP = Path(__file__).parent / "programs" / "clock_jump.c"


def measured(workshop, folder: Path, jump: str, how: str) -> RunArchive:
    source = folder / "jumps.c"
    source.write_text(PROGRAM)
    workshop.build(source, "-O1", "--quipu-all", name="jumps")
    library = folder / "jump.so"
    subprocess.run(["cc", "-shared", "-fPIC", JUMP, "-o", library], check=True)
    environment = {"JUMP": jump, "LD_PRELOAD": str(library)}
    words = ["env", *(f"{name}={value}" for name, value in environment.items()), "./jumps", how]
    options = LaunchOptions(clock="monotonic", folder=folder, say=lambda text: None)
    try:
        return run(words, {}, None, folder / "runs", options)
    except RunFailed as failure:
        assert how == "abort" and failure.archive is not None
        return failure.archive


@pytest.mark.parametrize("how", ["return", "exec", "abort"])
@pytest.mark.parametrize("seconds", [3600, -3600, -1])
@pytest.mark.parametrize(("clock", "after"), [(MONOTONIC, 20), (MONOTONIC, 0), (REAL, 20), (REAL, 0)])
def test_times_are_those_of_the_run(workshop, tmp_path: Path, clock: int, after: int, seconds: int, how: str) -> None:
    archive = measured(workshop, tmp_path, f"{clock},{after},{seconds}", how)
    assert archive.metadata.complete is (how != "abort")
    time, visits = (archive.statistics[name].sum for name in ("time", "visits"))
    assert (np.nan_to_num(time) >= 0).all()
    assert archive.metadata.seconds is not None
    assert 0 <= archive.tree.program_total(time) <= 1.02 * archive.metadata.seconds
    names = [archive.tree.region_of(path).display for path in range(len(archive.tree))]
    assert visits[names.index("main")] == (2 if how == "exec" else 1)
    if clock == REAL and how != "exec":
        assert archive.tree.program_total(time) >= 0.03
