# SPDX-License-Identifier: Apache-2.0
"""Read and write the file formats of other tools.

scorep_filter  filter files of Score-P, which select the regions to measure
extrap         experiments in the formats of Extra-P
profiles       profiles of Score-P (Cube), Caliper and HPCToolkit, one for each configuration
stacks         call trees for viewers of profiles: folded stacks, speedscope, Chrome traces, pprof, Hatchet, Caliper
detect         detects the format of an experiment of another tool, and reads it
"""

from __future__ import annotations

from .scorep_filter import Filter, Rule, demangled, format_filter, function_of_construct, parse_filter, read_filter

__all__ = ["Filter", "Rule", "demangled", "format_filter", "function_of_construct", "parse_filter", "read_filter"]
