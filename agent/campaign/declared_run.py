# SPDX-License-Identifier: Apache-2.0
"""Run a campaign as its file declares: on this machine or as jobs, at all points or where a search chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .campaign import CampaignResult, Choose, run_campaign
from .file import Campaign
from .task import Progress

if TYPE_CHECKING:
    from .jobs.scheduled import Scheduled


def scheduled(campaign: Campaign) -> Scheduled | None:
    """Return an object that executes runs as jobs; None without [scheduler]. Raises EnvironmentProblem without psij."""
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
    """Make the missing runs of a campaign. For options and errors see `run_campaign` and `scheduled`."""
    choose: Choose | None = None
    if campaign.search is not None:
        from .adaptive import chosen_batches  # imported here because it imports the modelers, which takes time

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
