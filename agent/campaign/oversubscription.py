# SPDX-License-Identifier: Apache-2.0
"""Find, before the first run, the points of a campaign with more ranks than this machine has processors."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from quipu.modeling.errors import QuipuError

from ..archive.metadata import configuration_name
from ..catalogue import MORE_RANKS_IN_CAMPAIGN
from ..installation import native_file
from ..launch.launchers import LaunchRequest, plan_launch
from ..launch.launchers.detect import Ask, version_text
from .before import threads_of
from .file import Campaign
from .points import Point

_MOST_NAMED = 4


def oversubscription_warning(
    campaign: Campaign, points: Sequence[Point], processors: int | None = None, ask: Ask = version_text
) -> str:
    """Return a warning that times at some points will contain waiting for a processor; "" if there are no such points.

    points: the points to measure. For the other arguments see `oversubscribed_points`.
    """
    processors = processors or os.cpu_count() or 1
    oversubscribed = oversubscribed_points(campaign, points, processors, ask)
    if not oversubscribed:
        return ""
    names = [configuration_name(campaign.values(point)) for point in oversubscribed[:_MOST_NAMED]]
    more = " …" if len(oversubscribed) > _MOST_NAMED else ""
    named = f"{'; '.join(names)}{more}"
    text = MORE_RANKS_IN_CAMPAIGN(many=len(oversubscribed), points=len(points), processors=processors, names=named)
    return f"warning: {text}"


def oversubscribed_points(
    campaign: Campaign, points: Sequence[Point], processors: int | None = None, ask: Ask = version_text
) -> list[Point]:
    """Return the points whose ranks times threads exceed the processors of this machine; empty for count-only runs.

    processors: number of processors; None: of this machine. ask: function that returns the output of
    `LAUNCHER --version`, the only program that is started. Points whose launch cannot be planned are not returned;
    their run reports the error.
    """
    if campaign.clock == "none":
        return []
    processors = processors or os.cpu_count() or 1
    answers: dict[Path, str] = {}

    def remembered(path: Path, environment: Mapping[str, str]) -> str:
        if path not in answers:
            answers[path] = ask(path, environment)
        return answers[path]

    oversubscribed = []
    shim, variables = native_file("quipu-exec"), {"QUIPU_DIR": str(campaign.directory)}
    for point in points:
        try:
            command = campaign.command_at(point)
            environment = {**os.environ, **campaign.environment_at(point)}
            request = LaunchRequest(command, shim, environment, variables, processors, campaign.path.parent)
            plan = plan_launch(request, remembered)
        except QuipuError:
            continue
        if plan.local_ranks is not None and plan.local_ranks * threads_of(plan, environment) > processors:
            oversubscribed.append(point)
    return oversubscribed
