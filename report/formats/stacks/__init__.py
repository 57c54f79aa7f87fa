# SPDX-License-Identifier: Apache-2.0
"""Writers of call stacks with weights, for viewers of profiles: a call tree of one run or one configuration.

weighted: the common input of all formats. folded, speedscope, chrome_trace, pprof, hatchet, caliper: text, bytes or
data for JSON. caliper also: files of all runs of an experiment, as Thicket reads them.
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
