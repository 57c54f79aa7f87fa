# SPDX-License-Identifier: Apache-2.0
"""The PMPI library: the table of MPI operations with their messages and bytes, and the wrappers that count them.

mpi_library            path of libquipu_mpi.so for an MPI, built on first use
describe_mpicc         the MPI of a compiler wrapper
MpiInstallation        the result of describe_mpicc
load_table             the table of operations that move data (operations.toml)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .installation import MpiInstallation, describe_mpicc
    from .library import mpi_library
    from .table import load_table

__all__ = ["MpiInstallation", "describe_mpicc", "load_table", "mpi_library"]
_MODULES = {"MpiInstallation": "installation", "describe_mpicc": "installation", "load_table": "table"}


def __getattr__(name: str) -> Any:
    """Import on first use: a launch needs neither the generator nor the table."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES.get(name, 'library')}", __name__), name)
