# SPDX-License-Identifier: Apache-2.0
"""Clean up after a campaign that was killed by SIGKILL: end its builds and plain runs, and remove incomplete files.

The next campaign in the same folder does this, because two concurrent builds would damage the program. A plain run is a
run without measurement. Measured runs are not ended; their profiles are merged (`recover`).
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
"""Name of a file that exists in the folder of a campaign during a build or a plain run. The file contains the session
id (getsid) of the processes."""
MARK = "QUIPU_CAMPAIGN"
"""Environment variable of these processes; its value is the folder of the campaign."""

_BEGUN = re.compile(r"\.[a-z0-9-]+\.(json|filter)\.\d+")  # names of temporary files of archive.run_json.write_text


@contextmanager
def recorded_processes(directory: Path) -> Iterator[Mapping[str, str]]:
    """Yield environment variables to mark processes that must not outlive the campaign.

    The file AT_WORK exists while the context is active.
    """
    path = directory / AT_WORK
    noted = False
    with suppress(OSError):  # the folder may not exist (a build outside of a campaign), or the disk may be full
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
