# SPDX-License-Identifier: Apache-2.0
"""Commands that begin with programs that run another command: `env X=1 mpirun …`, `timeout 60 nice ./app`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

# Programs that run the command in their arguments, by exec or as a child process, and pass on their environment.
_RUN_A_COMMAND = {
    *("chrt", "env", "ionice", "linux32", "linux64", "nice", "nohup", "numactl", "prlimit", "setarch", "setsid"),
    *("setpriv", "stdbuf", "taskset", "time", "timeout", "unbuffer", "xvfb-run"),
}


def start_of_command(command: Sequence[str], is_program: Callable[[str], bool]) -> int:
    """Return the index of the launcher in a command; without a launcher, the index of the program.

    The words before this index are programs such as env and timeout, their options and values, and assignments. The
    result is 0 if the command begins with another word, or if no later word is a program.
    """
    if Path(command[0]).name not in _RUN_A_COMMAND:
        return 0
    for place, word in enumerate(command[1:], start=1):
        if not word.startswith("-") and is_program(word) and Path(word).name not in _RUN_A_COMMAND:
            return place
    return 0


def waiting(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words before a launcher, with `setsid --wait` instead of `setsid`.

    Quipu starts the command as leader of a process group. `setsid` forks if it is a group leader. Without --wait, its
    parent process, for which Quipu waits, would then end at once.
    """
    return tuple(own for word in words for own in ((word, "--wait") if Path(word).name == "setsid" else (word,)))


def is_env(words: Sequence[str]) -> bool:
    """Return whether the words before a launcher or program contain `env`, which may remove environment variables."""
    return any(Path(word).name == "env" for word in words)
