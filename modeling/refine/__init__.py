# SPDX-License-Identifier: Apache-2.0
"""Select the regions to measure in the next run: from models, from one run, or from the call graph alone.

selection  regions by their share of the time of the program at a point (values of the parameters)
budget     regions that contain most of the time of the program, within a budget of overhead
costs      input of selection and budget: seconds and visits of call paths, and the cost of a visit
static     the selections of PIRA II: by statements in the call graph, and by models at an extrapolated point
imbalance  the load imbalance of regions over ranks, as in PIRA LIDe

Sources: PIRA II is Lehr et al., Automatic Instrumentation Refinement for Empirical Performance Modeling, 2019; it
refines the instrumentation of a program from run to run. LIDe is its extension for load imbalance (docs/refine.md).
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
