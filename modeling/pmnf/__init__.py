"""Empirical models in performance model normal form (PMNF) of any number of parameters.

library: which hypotheses there are; fitter: least squares over hypotheses × call paths; selector: which one to
believe; modeler: all three together. Models are plain values: evaluate, add, print, write as JSON.
"""

from __future__ import annotations

from .changes import Change, find_changes
from .comparison import Comparison, compare
from .deviation import Deviation, deviations
from .library import Library
from .model import Alternative, Model, Prediction, Quality, add
from .modeler import NoModel, Options, fit_models
from .serialize import from_json, to_json
from .term import Factor, Term

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
