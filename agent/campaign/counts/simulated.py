# SPDX-License-Identifier: Apache-2.0
"""Count-only runs whose ranks are simulated, by a program that was built for that."""

from __future__ import annotations

import shutil
from dataclasses import replace

from ..build import build
from ..file import Campaign
from .points import ranks_parameter

SIMULATOR = "smpi"
"""The family of its launches, and its name in campaign files."""


def simulates(campaign: Campaign) -> bool:
    """Whether count-only runs may be simulated: the campaign declares a program for that, and SimGrid is there."""
    return bool(campaign.counts.command) and shutil.which("smpirun") is not None


def simulated_campaign(campaign: Campaign) -> Campaign:
    """Return the campaign with the program and the launcher of simulated count-only runs."""
    ranks = ranks_parameter(campaign)
    return replace(
        campaign,
        command=campaign.counts.command,
        launcher=SIMULATOR,
        ranks=f"{{{ranks}}}",
        platform=None,
        build=campaign.counts.build,
        facts="simulated ",  # the program and its command are others than those of runs with times
    )


def build_simulated(campaign: Campaign) -> None:
    """Build the program of simulated count-only runs, if there may be some. Raises MeasurementError."""
    if campaign.counts.build and simulates(campaign):
        build(simulated_campaign(campaign))
