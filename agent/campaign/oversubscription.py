"""Which points of a campaign will have more ranks than this machine has processors, before time is spent on them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
from quipu.modeling.errors import QuipuError

from ..archive.metadata import configuration_name
from ..installation import native_file
from ..launch.launchers import LaunchRequest, plan_launch
from ..launch.launchers.detect import Ask, version_text
from .file import Campaign, Point

_MOST_NAMED = 4


def oversubscription_warning(
    campaign: Campaign, points: Sequence[Point], processors: int | None = None, ask: Ask = version_text
) -> str:
    """Return a warning that times at some points will contain waiting for a processor; empty if they will not.

    points: those that are to be measured. processors: of this machine, as a run notes them. Nothing is started but
    `LAUNCHER --version`; a point that cannot be planned is left to its run, which says why.
    """
    if campaign.clock == "none":  # no time is kept, and effort is the same
        return ""
    processors = processors or psutil.cpu_count() or 1
    environment = {**os.environ, **campaign.environment}
    answers: dict[Path, str] = {}

    def remembered(path: Path, environment: Mapping[str, str]) -> str:
        if path not in answers:
            answers[path] = ask(path, environment)
        return answers[path]

    crowded = []
    shim, variables = native_file("quipu-exec"), {"QUIPU_DIR": str(campaign.directory)}
    for point in points:
        try:
            command = campaign.command_at(point)
            request = LaunchRequest(command, shim, environment, variables, processors, campaign.path.parent)
            ranks = plan_launch(request, remembered).local_ranks
        except QuipuError:
            continue
        if ranks is not None and ranks > processors:
            crowded.append(point)
    if not crowded:
        return ""
    names = [configuration_name(campaign.values(point)) for point in crowded[:_MOST_NAMED]]
    more = " …" if len(crowded) > _MOST_NAMED else ""
    return (
        f"warning: {len(crowded)} of {len(points)} points have more ranks than the {processors} processors of this "
        f"machine ({'; '.join(names)}{more}): their times will contain waiting for a processor, so that models of time "
        "leave them out or are marked; effort and messages are exact all the same. For time, measure at most "
        f'{processors} ranks here, or simulate more: launcher = "smpi" (docs/simulation.md)'
    )
