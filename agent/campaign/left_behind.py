# SPDX-License-Identifier: Apache-2.0
"""Clean up after a campaign that was killed by SIGKILL: running builds and plain runs, and incomplete files.

The next campaign in the folder ends these processes and removes these files, because two concurrent builds would damage
the program. Measured runs are not ended; their profiles are merged (`recover`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from ..launch.process import GRACE
from .task import Progress

AT_WORK = ".at-work"
"""File in the folder of a campaign during a build or a plain run; it contains the session of its processes."""
MARK = "QUIPU_CAMPAIGN"
"""Environment variable of these processes: the folder of the campaign."""

_BEGUN = re.compile(r"\.[a-z0-9-]+\.(json|filter)\.\d+")  # temporary names of archive.run_json.write_text


@contextmanager
def recorded_processes(directory: Path) -> Iterator[Mapping[str, str]]:
    """Yield environment variables for processes that must not outlive the campaign, and record that they may run."""
    path = directory / AT_WORK
    noted = False
    with suppress(OSError):  # a build outside of a campaign, or a full disk
        path.write_text(str(os.getsid(0)), encoding="ascii")
        noted = True
    try:
        yield {MARK: str(directory.absolute())}
    finally:
        if noted:
            path.unlink(missing_ok=True)


def end_left_behind(directory: Path, progress: Progress) -> None:
    """End the processes of a killed campaign in this folder, and remove its incomplete files.

    Processes that started a separate session, such as compiler servers, continue. The caller must hold the lock of the
    folder.
    """
    for begun in directory.iterdir():
        if _BEGUN.fullmatch(begun.name):
            begun.unlink(missing_ok=True)
    path = directory / AT_WORK
    try:
        session = int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return
    found = [process for process in psutil.process_iter() if _is_left(process, session, str(directory.absolute()))]
    if found:
        numbers = ", ".join(str(process.pid) for process in found)
        progress.note(f"ending processes that a killed command left running here: process {numbers}")
    for process in found:
        with suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(found, GRACE)
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(alive, GRACE)
    path.unlink(missing_ok=True)


def _is_left(process: psutil.Process, session: int, directory: str) -> bool:
    try:
        return os.getsid(process.pid) == session and process.environ().get(MARK) == directory
    except (psutil.Error, OSError):
        return False
