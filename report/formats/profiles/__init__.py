# SPDX-License-Identifier: Apache-2.0
"""Profiles of other tools, one file or folder for each configuration, as one experiment.

cube: Score-P and Scalasca. caliper: .cali. hpctoolkit: databases. folders: finds profiles and the parameters in their
names. stacked: common parts of the readers.
"""

from __future__ import annotations

from .caliper import read_caliper
from .cube import read_cube
from .hpctoolkit import read_databases

__all__ = ["read_caliper", "read_cube", "read_databases"]
