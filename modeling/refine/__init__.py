# SPDX-License-Identifier: Apache-2.0
"""Deciding what to measure next, from models, one run, or the call graph alone.

selection  regions that matter at a point, by their share of the program
budget     regions that explain most of a program's time, within a budget for measuring
costs      what both know of regions: seconds, visits, and what a visit costs
static     the selections of PIRA II: statements of the call graph, models at its extrapolated point
imbalance  how unevenly ranks share a region's time
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
