# SPDX-License-Identifier: Apache-2.0
"""Prepare the first run after an installation, so that it is fast: build the MPI library, compile Python files."""

from __future__ import annotations

import compileall
from importlib import import_module
from pathlib import Path

from quipu.mpi_wrap.library import mpi_library

_PACKAGES = ("quipu", "quipu.agent", "quipu.modeling", "quipu.mpi_wrap", "quipu.report")


def prepare_first_run() -> Path:
    """Build the MPI library for the default MPI, compile the Python files of Quipu, and return the path of the library.

    Python files in a folder without write permission are not compiled. Raises EnvironmentProblem if MPI, clang or the
    runtime is missing, and MeasurementError if the build fails.
    """
    for name in _PACKAGES:
        for folder in import_module(name).__path__:
            compileall.compile_dir(folder, quiet=2)
    return mpi_library()
