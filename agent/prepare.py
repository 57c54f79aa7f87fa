# SPDX-License-Identifier: Apache-2.0
"""What the first run after an installation would otherwise have to make: the MPI library and Python's bytecode."""

from __future__ import annotations

import compileall
from importlib import import_module
from pathlib import Path

from quipu.mpi_wrap.library import mpi_library

_PACKAGES = ("quipu", "quipu.agent", "quipu.modeling", "quipu.mpi_wrap", "quipu.report")


def prepare_first_run() -> Path:
    """Build the MPI library for the default MPI and compile the Python files of Quipu; return the library.

    Python files of a folder that cannot be written, as of another user's installation, are left as they are. Raises
    EnvironmentProblem if there is no MPI, no clang or no runtime, MeasurementError if building fails.
    """
    for name in _PACKAGES:
        for folder in import_module(name).__path__:
            compileall.compile_dir(folder, quiet=2)
    return mpi_library()
