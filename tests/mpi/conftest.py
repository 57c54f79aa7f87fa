# SPDX-License-Identifier: Apache-2.0
"""The PMPI library and the test programs, built once."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from measured import MPICH, compile_program
from peers import require
from quipu.mpi_wrap import mpi_library


@pytest.fixture(scope="session")
def libraries() -> Callable[[str], Path]:
    """Build libquipu_mpi.so for an MPI, given by the suffix of its tools (such as `.mpich`)."""

    @functools.cache
    def build(mpi: str) -> Path:
        if mpi == MPICH:
            require("MPICH")
        return mpi_library(f"mpicc{mpi}")

    return build


@pytest.fixture(scope="session")
def library(libraries: Callable[[str], Path]) -> Path:
    """libquipu_mpi.so for the default MPI."""
    return libraries("")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Build a test program for the default MPI once and give its path."""

    @functools.cache
    def build(name: str) -> Path:
        return compile_program(name, tmp_path_factory.mktemp(name))

    return build
