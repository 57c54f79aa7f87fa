# SPDX-License-Identifier: Apache-2.0
"""Launchers and programs behind other words: `env X=1 mpirun …`, `timeout 60 nice ./app`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

# Programs that run the command in their arguments, in this process or in a child, with the same environment.
_RUN_A_COMMAND = {
    *("chrt", "env", "ionice", "linux32", "linux64", "nice", "nohup", "numactl", "prlimit", "setarch", "setsid"),
    *("setpriv", "stdbuf", "taskset", "time", "timeout", "unbuffer", "xvfb-run"),
}


def start_of_command(command: Sequence[str], is_program: Callable[[str], bool]) -> int:
    """Return where the launcher, or the program if there is none, is in a command.

    Before it may be programs that run the command in their arguments, their options, the values of these, and
    assignments. 0 if no word after them names a program.
    """
    if Path(command[0]).name not in _RUN_A_COMMAND:
        return 0
    for place, word in enumerate(command[1:], start=1):
        if not word.startswith("-") and is_program(word) and Path(word).name not in _RUN_A_COMMAND:
            return place
    return 0


def waiting(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words before a launcher with what makes them end after the program, and not before it.

    A leader of a process group, as the launched process is, forks in `setsid`, and its parent ends at once.
    """
    return tuple(own for word in words for own in ((word, "--wait") if Path(word).name == "setsid" else (word,)))


def is_env(words: Sequence[str]) -> bool:
    """Whether `env`, which may remove variables, is among the words before a launcher or a program."""
    return any(Path(word).name == "env" for word in words)
