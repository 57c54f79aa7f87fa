# SPDX-License-Identifier: Apache-2.0
"""Read profiles of other tools, one file or folder for each run, as an experiment.

cube        Cube profiles of Score-P and Scalasca
caliper     files of Caliper (.cali)
hpctoolkit  databases of HPCToolkit
folders     finds the profiles, and the parameters in their names
stacked     common parts of the readers
"""

from __future__ import annotations

from .caliper import read_caliper
from .cube import read_cube
from .hpctoolkit import read_databases

__all__ = ["read_caliper", "read_cube", "read_databases"]
