# SPDX-License-Identifier: Apache-2.0
"""File formats of other tools: readers and writers.

scorep_filter  Score-P filter files (which regions are measured)
extrap         experiments in the formats of Extra-P
profiles       profiles of Score-P (Cube), Caliper and HPCToolkit, one for each configuration
stacks         call trees for viewers of profiles: folded stacks, speedscope, Chrome traces, pprof, Hatchet, Caliper
detect         reads an experiment of another tool, whichever format it has
"""

from __future__ import annotations

from .scorep_filter import Filter, Rule, demangled, format_filter, function_of_construct, parse_filter, read_filter

__all__ = ["Filter", "Rule", "demangled", "format_filter", "function_of_construct", "parse_filter", "read_filter"]
