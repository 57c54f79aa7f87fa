# SPDX-License-Identifier: Apache-2.0
"""Suggest numbers of processes with which a campaign can distinguish the extents of the process grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from quipu.modeling.process_grid import ProcessGrid, telling
from quipu.modeling.rank_numbers import rank_counts

from ..merge.experiment import scan_runs
from ..merge.process_grids import process_grids
from .counts.points import ranks_parameter
from .file import Campaign


def advice(campaign: Campaign, directory: Path | None = None) -> str:
    """Return a text with numbers of processes to add to a campaign; "" if none are necessary or the grid is unknown.

    directory: None: use the grid that the campaign declares; else the grid recorded in the complete runs there.
    """
    grid = campaign.grid if directory is None else _made(campaign, directory)
    if grid is None:
        return ""
    measured = [campaign.values(point)[grid.parameter] for point in campaign.points]
    if campaign.target and grid.parameter == ranks_parameter(campaign):
        measured += rank_counts(measured, campaign.target[grid.parameter])
    wanted = telling(grid, measured)
    if not wanted:
        return ""
    numbers = ", ".join(map(str, wanted))
    extents = ", ".join("×".join(f"{x:g}" for x in grid.at(p)) for p in wanted)
    return (
        f"process grid {grid}: the measured {grid.parameter} do not distinguish its extents; "
        f"measure {grid.parameter} = {numbers} ({extents}), too"
    )


def _made(campaign: Campaign, directory: Path) -> ProcessGrid | None:
    runs = [run.metadata for run in scan_runs(directory)[0] if run.metadata.complete]
    if not runs:
        return None
    points = np.array([[run.parameters[name] for name in campaign.parameters] for run in runs], dtype=np.float64)
    grids, _ = process_grids(campaign.parameters, points, runs, range(len(runs)))
    return grids[0] if grids and grids[0].source else None
