# SPDX-License-Identifier: Apache-2.0
"""Loops without calls that a signal ends: the program counts its rounds in a file, and the profile says the same."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

SOURCE = """#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static volatile long *rounds;
static volatile sig_atomic_t stop;
static sigjmp_buf place;
static const char *way;
static void handler(int number) {
    (void)number;
    if (!strcmp(way, "exit"))
        exit(0);
    if (!strcmp(way, "jump"))
        siglongjmp(place, 1);
    stop = 1;
}
__attribute__((noinline)) void forever(void) {
    for (;;)
        ++*rounds;
}
__attribute__((noinline)) void until(void) {
    while (!stop)
        ++*rounds;
}
__attribute__((noinline)) void until_here(void) {
    if (!sigsetjmp(place, 1))
        while (!stop)
            ++*rounds;
}
int main(int count, char **words) {
    (void)count;
    rounds = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open(words[3], O_RDWR), 0);
    way = words[2];
    if (strcmp(way, "kill"))
        signal(SIGPIPE, handler);
    if (sigsetjmp(place, 1))
        return 0;
    /* The thread sanitizer delivers few signals from outside at once; this is one. */
    if (system("(sleep 0.05; kill -s PIPE $PPID) &"))
        return 1;
    if (!strcmp(words[1], "forever"))
        forever();
    if (!strcmp(words[1], "until"))
        until();
    until_here();
    return 0;
}
"""


@pytest.mark.parametrize("options", [(), ("--quipu-naive",)], ids=["usual", "naive"])
def test_loops_that_a_signal_ends(workshop, tmp_path: Path, options: tuple[str, ...]) -> None:
    source = tmp_path / "signals.c"
    source.write_text(SOURCE)
    program = workshop.build(source, "-O2", *options)
    cases = [("forever", "exit"), ("forever", "jump"), ("forever", "kill")]
    cases += [("until", "flag"), ("until_here", "flag"), ("until_here", "exit"), ("until_here", "jump")]
    for loop, way in cases:
        told = tmp_path / "rounds"
        told.write_bytes(bytes(4096))
        run = workshop.run(program, loop, way, str(told), ends_with=-13 if way == "kill" else 0)
        (rounds,) = struct.unpack("<q", told.read_bytes()[:8])
        blocks = run.tree[("main", loop)]["blocks"]
        # One block for each round, the round that was interrupted, and at most four around the loop.
        assert 0 <= blocks - rounds <= 5, (loop, way)
