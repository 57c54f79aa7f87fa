# SPDX-License-Identifier: Apache-2.0
"""Outdated runs: runs with another program, command or other measuring options than the campaign has now."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from quipu.modeling.errors import MeasurementError
from quipu.modeling.printable import counted

from ..merge.experiment import StoredRun, scan_runs
from .counts.simulated import simulated_campaign
from .file import Campaign
from .identity import machine, measuring_facts, outdated
from .repetition import LaunchOptions
from .task import Progress

FOLDER = ".replaced"
_MOST_REASONS = 3


def put_aside(campaign: Campaign, options: LaunchOptions, progress: Progress) -> int:
    """Move outdated complete runs into the subfolder FOLDER; return their number.

    A note to `progress` names the most frequent reasons. Raises MeasurementError if the runs cannot be moved.
    """
    now = {**campaign.template, **measuring_facts(options)}
    if campaign.counts.command:
        now |= simulated_campaign(campaign).template
    if campaign.scheduler is None and campaign.rates is None:
        now["machine"] = machine()
    reasons: Counter[str] = Counter()
    old: list[StoredRun] = []
    runs = [run for run in scan_runs(campaign.directory)[0] if run.metadata.complete]
    for run in runs:
        found = outdated(run.metadata.fingerprint, now)
        reasons.update(found)
        old += [run] if found else []
    if old:
        why = "; ".join(reason for reason, _ in reasons.most_common(_MOST_REASONS))
        place = campaign.directory / FOLDER
        move_runs(old, place)
        progress.note(
            f"{counted(len(old), 'run was', 'runs were')} measured under other conditions ({why}) and will be measured "
            f"again; the old {'one is' if len(old) == 1 else 'ones are'} in {place} (--keep-old would keep them)"
        )
    return len(old)


def move_runs(runs: list[StoredRun], place: Path) -> None:
    """Move runs into the folder `place` in their experiment. Raises MeasurementError if that is not possible."""
    try:
        place.mkdir(exist_ok=True)
        for run in runs:
            number = 0
            while (target := place / f"{run.path.name}{f'.{number}' if number else ''}").exists():
                number += 1
            run.path.rename(target)
    except OSError as error:
        raise MeasurementError(f"{place}: outdated runs cannot be moved there: {error.strerror or error}") from error
