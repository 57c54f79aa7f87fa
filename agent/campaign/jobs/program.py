# SPDX-License-Identifier: Apache-2.0
"""The program of a job: `python -m quipu.agent.campaign.jobs.program FOLDER` makes the run that task.json describes."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from quipu.modeling.errors import QuipuError

from ..repetition import RunFailed, run
from .folder import JobFolder, Result

BEAT = 10.0
"""Seconds between two heartbeats of a run; heartbeats are rare, so that they do not disturb the measurement."""


def main(folder: Path) -> int:
    """Claim the job in `folder`, make the run and store its result. Return the exit code: 1 if the run failed, else 0.

    If another process has claimed the job, return 0 without a run, so that the scheduler does not repeat the job.
    """
    job = JobFolder(folder)
    if not folder.is_dir() or not job.take():
        return 0
    with job.output.open("ab") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    ended = threading.Event()
    threading.Thread(target=_beat, args=(job, ended), daemon=True).start()
    began = time.monotonic()
    try:
        asked = job.asked()
        archive = run(asked.command, asked.parameters, None, Path(asked.experiment), asked.options())
        result = Result(time.monotonic() - began, archive.path.name)
    except QuipuError as error:
        kept = error.archive.path.name if isinstance(error, RunFailed) and error.archive is not None else None
        result = Result(time.monotonic() - began, kept, str(error))
    finally:
        ended.set()
    job.end(result)
    return 1 if result.error else 0


def _beat(job: JobFolder, ended: threading.Event) -> None:
    while not ended.wait(BEAT):
        try:
            job.beat()
        except OSError:  # the next heartbeat may succeed
            continue


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
