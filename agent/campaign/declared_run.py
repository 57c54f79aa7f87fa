# SPDX-License-Identifier: Apache-2.0
"""Run a campaign as declared in its file: here or as jobs, all points or the points that a search chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .campaign import CampaignResult, Choose, run_campaign
from .file import Campaign
from .task import Progress

if TYPE_CHECKING:
    from .jobs.scheduled import Scheduled


def scheduled(campaign: Campaign) -> Scheduled | None:
    """Return the execution as jobs, None if the campaign has no scheduler. Raises EnvironmentProblem without psij."""
    if campaign.scheduler is None:
        return None
    from .jobs.queue import scheduler_queue
    from .jobs.scheduled import Scheduled

    return Scheduled(scheduler_queue(campaign.scheduler, campaign.directory))


def run_declared(
    campaign: Campaign,
    progress: Progress,
    *,
    stop_on_failure: bool = False,
    keep_going: bool = False,
    keep_old: bool = False,
) -> CampaignResult:
    """Make the missing runs of a campaign. Raises the errors of `run_campaign` and `scheduled`."""
    choose: Choose | None = None
    if campaign.search is not None:
        from .adaptive import chosen_batches  # imported here because it imports the modelers

        choose = chosen_batches
    return run_campaign(
        campaign,
        progress,
        stop_on_failure=stop_on_failure,
        keep_going=keep_going,
        execution=scheduled(campaign),
        choose=choose,
        keep_old=keep_old,
    )
