# SPDX-License-Identifier: Apache-2.0
"""Models as plain values: terms, models with their uncertainty, text and JSON of models, and their comparison."""

from __future__ import annotations

from .comparison import Comparison, compare
from .deferred import Deferred
from .model import Alternative, Model, Prediction, Quality, add, alternatives_with, collect, covariance_in, evaluate
from .parse import parse_product, parse_sum
from .presence import present
from .recursions import recursion, recursion_of, recursion_text
from .serialize import from_json, to_json
from .steps import Steps
from .term import LARGEST_POWER, Blocks, Exponents, Factor, Function, Term, lead_exponents, sort_key

__all__ = [
    "LARGEST_POWER",
    "Alternative",
    "Blocks",
    "Comparison",
    "Deferred",
    "Exponents",
    "Factor",
    "Function",
    "Model",
    "Prediction",
    "Quality",
    "Steps",
    "Term",
    "add",
    "alternatives_with",
    "collect",
    "compare",
    "covariance_in",
    "evaluate",
    "from_json",
    "lead_exponents",
    "parse_product",
    "parse_sum",
    "present",
    "recursion",
    "recursion_of",
    "recursion_text",
    "sort_key",
    "to_json",
]
