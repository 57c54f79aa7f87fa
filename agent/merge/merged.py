# SPDX-License-Identifier: Apache-2.0
"""Detect raw folders that are already merged. They exist if a merge was killed before it removed the raw folder."""

from __future__ import annotations

import shutil
from pathlib import Path

from quipu.modeling.errors import QuipuError

from ..archive.read import read_archive
from ..launch.raw_folder import read_launch, read_raw_folder
from .experiment import scan_runs
from .run import merge_command


def merged_as(raw: Path, experiment: Path) -> Path | None:
    """Return the archive in an experiment folder that contains the processes of a raw folder; None if there is none.

    The archive must have the same start time (ms) and command, and a rank with the process id of one of the processes.
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
    """Remove a raw folder that contains no profiles or is merged; otherwise keep it.

    Returns a text for the user about the place of the measurements; "" if there are none.
    """
    try:
        counted = any(raw.glob("profile-*.quipu"))
        archive = merged_as(raw, experiment) if counted else None
    except QuipuError:
        archive = None
    if counted and archive is None:
        return f"the profiles stay in {raw}; merge them with: {merge_command(raw, experiment)}"
    shutil.rmtree(raw, ignore_errors=True)
    return "" if archive is None else f"the run was merged before that: {archive}"
