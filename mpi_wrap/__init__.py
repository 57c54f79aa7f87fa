# SPDX-License-Identifier: Apache-2.0
"""Build the PMPI library, whose wrappers count the messages and bytes of MPI operations.

mpi_library            path of libquipu_mpi.so for an MPI, built on first use
describe_mpicc         the MPI of a compiler wrapper (mpicc)
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
    """Import a name on first use, because most starts of `quipu run` need neither the generator nor the table."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES.get(name, 'library')}", __name__), name)
