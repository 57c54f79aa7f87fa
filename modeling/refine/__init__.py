# SPDX-License-Identifier: Apache-2.0
"""Select the regions to measure next, from models, one run, or the call graph alone.

selection  regions by their share of the program at a point
budget     regions that explain most time of the program, within a budget of overhead
costs      input of both: seconds, visits, and the cost of a visit
static     the selections of PIRA II: statements of the call graph, models at an extrapolated point
imbalance  the load imbalance of regions over ranks
"""

from __future__ import annotations

from .budget import select_within
from .costs import SCOREP, HookCost, PathCosts, costs_at, path_costs
from .selection import Choice, RegionSelection, select
from .static import extrapolated_point, refine_by_models, select_statically

__all__ = [
    "SCOREP",
    "Choice",
    "HookCost",
    "PathCosts",
    "RegionSelection",
    "costs_at",
    "extrapolated_point",
    "path_costs",
    "refine_by_models",
    "select",
    "select_statically",
    "select_within",
]
