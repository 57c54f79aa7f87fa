# SPDX-License-Identifier: Apache-2.0
"""Empirical models in performance model normal form (PMNF) of any number of parameters.

data: preparation of values and points; hypotheses: the library of terms; fit: least squares over hypotheses × call
paths; proposers: candidates; criterion: selection among candidates; uncertainty, doubt: remaining uncertainty as
numbers and text; posterior: computed for a batch on request; calibration: all constants; options; counts, batch,
modeler: the pipeline. Models are plain values: evaluate, add, print, write as JSON.
"""

from __future__ import annotations

from .changes.ranges import Change, find_changes, fit_models
from .data.deviation import Deviation, deviations
from .hypotheses.library import Library
from .model import Alternative, Comparison, Factor, Model, Prediction, Quality, Term, add, compare, from_json, to_json
from .options import NoModel, Options

__all__ = [
    "Alternative",
    "Change",
    "Comparison",
    "Deviation",
    "Factor",
    "Library",
    "Model",
    "NoModel",
    "Options",
    "Prediction",
    "Quality",
    "Term",
    "add",
    "compare",
    "deviations",
    "find_changes",
    "fit_models",
    "from_json",
    "to_json",
]
