# SPDX-License-Identifier: Apache-2.0
"""Compute efficiencies by the POP methodology (Performance Optimisation and Productivity).

They show how well a parallel program uses its processors. A scope is a call path with everything below it; the last
scope is the whole program.
"""

from __future__ import annotations

from ..run_times import RunTimes, Scopes
from .factors import HIERARCHY, Factor, Factors, parallel_factors
from .losses import Losses, losses
from .prediction import predicted_factors, predicted_work
from .scaling import Scaling, computation_factors, scalings, work_of

__all__ = [
    "HIERARCHY",
    "Factor",
    "Factors",
    "Losses",
    "RunTimes",
    "Scaling",
    "Scopes",
    "computation_factors",
    "losses",
    "parallel_factors",
    "predicted_factors",
    "predicted_work",
    "scalings",
    "work_of",
]
