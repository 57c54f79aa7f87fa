# SPDX-License-Identifier: Apache-2.0
"""Whether a raw folder is merged already: whoever merged it was ended before the folder was removed."""

from __future__ import annotations

import shutil
from pathlib import Path

from quipu.modeling.errors import QuipuError

from ..archive.read import read_archive
from ..launch.raw_folder import read_launch, read_raw_folder
from .experiment import scan_runs
from .run import merge_command


def merged_as(raw: Path, experiment: Path) -> Path | None:
    """Return the archive in an experiment folder that has the processes of a raw folder, None if none has.

    It began at the same millisecond with the same command, and has a rank with the number of one of these processes.
    Raises FormatError if the raw folder or its launch.json cannot be read.
    """
    launched = read_launch(raw).metadata
    processes = {profile.pid & 0x7FFFFFFF for profile in read_raw_folder(raw).profiles}
    for stored in scan_runs(experiment)[0]:
        known = stored.metadata
        if known.started and (known.started, known.command) == (launched.started, launched.command):
            ranks = read_archive(stored.path, values=False).ranks
            if processes & {record.pid for record in ranks}:
                return stored.path
    return None


def settled_after_interruption(raw: Path, experiment: Path) -> str:
    """Remove the raw folder of this process if nothing was counted, or it is merged; else return where it is."""
    try:
        counted = any(raw.glob("profile-*.quipu"))
        archive = merged_as(raw, experiment) if counted else None
    except QuipuError:
        archive = None
    if counted and archive is None:
        return f"what was counted stays in {raw}; merge it with: {merge_command(raw, experiment)}"
    shutil.rmtree(raw, ignore_errors=True)
    return "" if archive is None else f"the run was merged before that: {archive}"
