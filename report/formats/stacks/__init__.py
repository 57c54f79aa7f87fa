# SPDX-License-Identifier: Apache-2.0
"""Write the call tree of a run or a configuration for viewers of profiles, as call stacks with weights.

The module weighted contains the common input of all writers. The modules folded, speedscope, chrome_trace, pprof,
hatchet and caliper each write one format: they return text, bytes, or data for JSON. The module caliper also writes the
files of all runs of an experiment, which Thicket reads.
"""

from __future__ import annotations

from .caliper import caliper, is_of_quipu, run_text
from .chrome_trace import chrome_trace
from .folded import folded
from .hatchet import hatchet
from .pprof import pprof
from .speedscope import speedscope
from .weighted import WeightedStacks, weighted_stacks

__all__ = [
    "WeightedStacks",
    "caliper",
    "chrome_trace",
    "folded",
    "hatchet",
    "is_of_quipu",
    "pprof",
    "run_text",
    "speedscope",
    "weighted_stacks",
]
