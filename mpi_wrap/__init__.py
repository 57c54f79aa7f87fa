"""The PMPI library: which MPI operations move how many bytes, and the wrappers that count them.

mpi_library            path of libquipu_mpi.so for an MPI, built on first use
describe_mpicc         which MPI a compiler wrapper belongs to
MpiInstallation        what it returns
load_table             the table of operations that move data (operations.toml)
"""

from .installation import MpiInstallation, describe_mpicc
from .library import mpi_library
from .table import load_table

__all__ = ["MpiInstallation", "describe_mpicc", "load_table", "mpi_library"]
