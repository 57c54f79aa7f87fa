# SPDX-License-Identifier: Apache-2.0
"""MPI calls below Python functions."""

from __future__ import annotations

from mpi4py import MPI


def exchange(comm: MPI.Comm) -> int:
    """Send this rank's number to the next rank."""
    value: int = comm.sendrecv(comm.rank, dest=(comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
    return value


def main() -> None:
    """Exchange some times."""
    for _ in range(5):
        exchange(MPI.COMM_WORLD)
    MPI.COMM_WORLD.Barrier()


main()
