# SPDX-License-Identifier: Apache-2.0
"""Processes that end early on purpose: a run without loss is complete, and its processes have no more time than it."""

from __future__ import annotations

from pathlib import Path

import pytest
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.repetition import LaunchOptions, RunFailed, run

PROGRAM = """#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long sink;
__attribute__((noinline)) void step(void) { sink++; }
static void end_in(const char *how, char **argv) {
    if (!strcmp(how, "_exit"))
        _exit(0);
    if (!strcmp(how, "quick_exit"))
        quick_exit(0);
    if (!strcmp(how, "exec"))
        execl(argv[0], argv[0], "again", (char *)NULL);
    if (!strcmp(how, "exec of another"))
        execlp("true", "true", (char *)NULL);
    if (!strcmp(how, "SIGKILL"))
        raise(SIGKILL);
    for (;;) {
        step();
        if (!strcmp(how, "write"))
            puts("a line");
    }
}
int main(int argc, char **argv) {
    for (int i = 0; i < 5; i++)
        step();
    if (argc == 2 && strcmp(argv[1], "again"))
        end_in(argv[1], argv);
    if (argc == 3) {
        pid_t child = fork();
        if (child == 0)
            end_in(argv[2], argv);
        waitpid(child, NULL, 0);
    }
    return 0;
}
"""


def launched(workshop, tmp_path: Path, *command: str) -> RunArchive:
    source = tmp_path / "ends.c"
    source.write_text(PROGRAM)
    program = workshop.build(source, "-O1", "--quipu-all", name="ends")
    assert program.parent == tmp_path
    return run(command, {}, None, tmp_path / "runs", LaunchOptions(folder=tmp_path, say=lambda text: None))


def visits(archive: RunArchive) -> int:
    """Return how often `step` was called."""
    names = [archive.tree.region_of(path).display for path in range(len(archive.tree))]
    return sum(int(archive.statistics["visits"].sum[path]) for path, name in enumerate(names) if name == "step")


@pytest.mark.parametrize(
    ("command", "steps"),
    [
        (("./ends", "_exit"), 5),
        (("./ends", "quick_exit"), 5),
        (("./ends", "exec"), 10),
        (("./ends", "exec of another"), 5),
        (("./ends", "child", "_exit"), 5),
        (("./ends", "child", "quick_exit"), 5),
        (("./ends", "child", "exec"), 10),
        (("./ends", "child", "exec of another"), 5),
        (("./ends", "child", "SIGKILL"), 5),
        (("bash", "-c", "./ends SIGKILL; true"), 5),
    ],
)
def test_nothing_is_missing(workshop, tmp_path: Path, command: tuple[str, ...], steps: int) -> None:
    archive = launched(workshop, tmp_path, *command)
    assert archive.metadata.complete
    assert visits(archive) == steps


@pytest.mark.parametrize("script", ["./ends write | head -n 1 >/dev/null", "./ends; timeout 0.2 ./ends forever; true"])
def test_what_others_end_is_complete(workshop, tmp_path: Path, script: str) -> None:
    """A run is complete when a closed pipe or a time limit ends the program."""
    assert launched(workshop, tmp_path, "bash", "-c", script).metadata.complete


def test_no_process_has_more_time_than_the_run(workshop, tmp_path: Path) -> None:
    """A process continues in the background after the command has ended."""
    archive = launched(workshop, tmp_path, "bash", "-c", "./ends; timeout 2 ./ends forever & sleep 0.1; exit 0")
    assert archive.metadata.seconds is not None
    assert archive.tree.program_total(archive.statistics["time"].sum) <= 1.01 * archive.metadata.seconds


def test_a_run_that_failed_names_the_process(workshop, tmp_path: Path) -> None:
    with pytest.raises(RunFailed) as failure:
        launched(workshop, tmp_path, "./ends", "SIGKILL")
    assert failure.value.archive is not None
    told = failure.value.archive.metadata.problems
    assert told[0] == "ends was killed by SIGKILL"
    assert told[1].startswith("rank 0 ended before the program could finish, process ") and "(ends)" in told[1]


def test_a_process_that_cannot_write_its_profile_makes_the_run_partial(workshop, tmp_path: Path) -> None:
    """The second process cannot write files; the first is measured."""
    with pytest.raises(RunFailed, match=r"is empty: its process is not measured") as failure:
        launched(workshop, tmp_path, "bash", "-c", "./ends; ulimit -f 1; ./ends")
    assert failure.value.archive is not None
    assert visits(failure.value.archive) == 5
