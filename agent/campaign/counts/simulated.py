# SPDX-License-Identifier: Apache-2.0
"""Count-only runs with simulated ranks, which need a program built for SMPI (SimGrid's MPI)."""

from __future__ import annotations

import shutil
from dataclasses import replace

from ..build import build
from ..file import Campaign
from .points import ranks_parameter

SIMULATOR = "smpi"
"""The launcher family of the simulator, and its name in campaign files."""


def simulates(campaign: Campaign) -> bool:
    """Return whether count-only runs can be simulated: the campaign declares a program, and SimGrid is installed."""
    return bool(campaign.counts.command) and shutil.which("smpirun") is not None


def simulated_campaign(campaign: Campaign) -> Campaign:
    """Return the campaign with program, build and launcher replaced by those for simulated count-only runs."""
    ranks = ranks_parameter(campaign)
    return replace(
        campaign,
        command=campaign.counts.command,
        launcher=SIMULATOR,
        ranks=f"{{{ranks}}}",
        platform=None,
        build=campaign.counts.build,
        facts="simulated ",  # fingerprints keep these facts apart from the facts of the runs with times
    )


def build_simulated(campaign: Campaign) -> None:
    """Build the program of simulated count-only runs, if they are possible. Raises MeasurementError if that fails."""
    if campaign.counts.build and simulates(campaign):
        build(simulated_campaign(campaign))
