# SPDX-License-Identifier: Apache-2.0
"""Commands that begin with other programs: `env X=1 mpirun …`, `timeout 60 nice ./app`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

# Programs that run the command in their arguments with the same environment, by exec or as a child process.
_RUN_A_COMMAND = {
    *("chrt", "env", "ionice", "linux32", "linux64", "nice", "nohup", "numactl", "prlimit", "setarch", "setsid"),
    *("setpriv", "stdbuf", "taskset", "time", "timeout", "unbuffer", "xvfb-run"),
}


def start_of_command(command: Sequence[str], is_program: Callable[[str], bool]) -> int:
    """Return the index of the launcher in a command, or of the program if there is no launcher.

    The words before it may be programs that run another command, their options and values, and assignments. The result
    is 0 if no word after them is a program.
    """
    if Path(command[0]).name not in _RUN_A_COMMAND:
        return 0
    for place, word in enumerate(command[1:], start=1):
        if not word.startswith("-") and is_program(word) and Path(word).name not in _RUN_A_COMMAND:
            return place
    return 0


def waiting(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words before a launcher, with `setsid --wait` instead of `setsid`.

    The launched process leads a process group. `setsid` then forks, and without --wait its parent ends at once.
    """
    return tuple(own for word in words for own in ((word, "--wait") if Path(word).name == "setsid" else (word,)))


def is_env(words: Sequence[str]) -> bool:
    """Return whether the words before a launcher or a program contain `env`, which may remove variables."""
    return any(Path(word).name == "env" for word in words)
