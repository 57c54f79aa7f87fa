# SPDX-License-Identifier: Apache-2.0
"""Jacobi iteration for the 2-D Poisson equation with mpi4py and numpy.

The grid has n x n interior points and zero boundaries (strong scaling: n belongs to the whole grid). Every rank owns
a band of rows and exchanges its outermost rows with the ranks above and below; the first and the last rank have one
neighbour. The right-hand side belongs to a discrete eigenvector, so the k-th iterate is known up to rounding.
See README.md for the work per operation.
"""

from __future__ import annotations

import sys
import zlib
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

EXIT_WRONG_RESULT = 1
EXIT_USAGE = 2

USAGE = """\
usage: jacobi.py N ITERATIONS [INTERVAL]
  N           interior points per dimension of the whole grid (at least the number of ranks, at most 20000)
  ITERATIONS  of the method (1 to 1000000)
  INTERVAL    iterations between two residuals (default 10)
"""


class UsageError(Exception):
    """An argument cannot be used."""


@dataclass(frozen=True)
class Arguments:
    """The command line."""

    points: int
    iterations: int
    interval: int


@dataclass(frozen=True)
class Band:
    """The rows of the grid that one rank owns."""

    comm: MPI.Intracomm
    points: int
    counts: tuple[int, ...]  # rows of every rank

    @property
    def rows(self) -> int:
        """Rows of this rank."""
        return self.counts[self.comm.rank]

    @property
    def first(self) -> int:
        """Number of this rank's first row in the whole grid."""
        return sum(self.counts[: self.comm.rank])

    @property
    def above(self) -> int:
        """Rank that owns the rows before this band; MPI.PROC_NULL if there is none."""
        return self.comm.rank - 1 if self.comm.rank > 0 else MPI.PROC_NULL

    @property
    def below(self) -> int:
        """Rank that owns the rows after this band; MPI.PROC_NULL if there is none."""
        return self.comm.rank + 1 if self.comm.rank + 1 < self.comm.size else MPI.PROC_NULL


def parse_integer(name: str, text: str, low: int, high: int) -> int:
    """Return the integer in `text`; UsageError if it is none or not in [low, high]."""
    try:
        value = int(text)
    except ValueError:
        raise UsageError(f"{name} is {text!r}, not a whole number") from None
    if not low <= value <= high:
        raise UsageError(f"{name} is {value}, not between {low} and {high}")
    return value


def parse_arguments(words: list[str], ranks: int) -> Arguments:
    """Return the arguments; UsageError names the one at fault."""
    if not 2 <= len(words) <= 3:
        raise UsageError("wrong number of arguments")
    return Arguments(
        parse_integer("N", words[0], ranks, 20000),
        parse_integer("ITERATIONS", words[1], 1, 1_000_000),
        parse_integer("INTERVAL", words[2], 1, 1_000_000) if len(words) > 2 else 10,
    )


def agree_on_arguments(comm: MPI.Intracomm, words: list[str]) -> Arguments:
    """Parse on rank 0 and send the three numbers to all: one MPI_Bcast of 24 bytes.

    The first number is -1 if the arguments are wrong; then every rank raises UsageError.
    """
    numbers = np.full(3, -1, dtype=np.int64)
    message = ""
    if comm.rank == 0:
        try:
            arguments = parse_arguments(words, comm.size)
            numbers[:] = arguments.points, arguments.iterations, arguments.interval
        except UsageError as error:
            message = str(error)
    comm.Bcast(numbers, root=0)
    if numbers[0] < 0:
        raise UsageError(message)
    return Arguments(*(int(number) for number in numbers))


def make_band(comm: MPI.Intracomm, points: int) -> Band:
    """Divide the rows as evenly as possible; the first ranks take what is left over."""
    share, rest = divmod(points, comm.size)
    return Band(comm, points, tuple(share + (rank < rest) for rank in range(comm.size)))


def solution(band: Band) -> FloatArray:
    """Return the solution in this band, shape (rows, points): the lowest eigenvector of the discrete Laplacian."""
    wave = np.sin(np.pi * np.arange(1, band.points + 1) / (band.points + 1))
    result: FloatArray = np.outer(wave[band.first : band.first + band.rows], wave)
    return result


def exchange_rows(band: Band, field: FloatArray) -> None:
    """Fill the ghost rows of field, shape (rows + 2, points + 2): two MPI_Sendrecv of `points` doubles."""
    comm = band.comm
    inner = slice(1, -1)
    comm.Sendrecv(field[1, inner], dest=band.above, sendtag=0, recvbuf=field[-1, inner], source=band.below, recvtag=0)
    comm.Sendrecv(field[-2, inner], dest=band.below, sendtag=1, recvbuf=field[0, inner], source=band.above, recvtag=1)


def sweep(now: FloatArray, following: FloatArray, load: FloatArray) -> None:
    """Write one Jacobi iterate of -Laplacian u = f into the interior of `following`; load is h^2 f / 4."""
    target = following[1:-1, 1:-1]
    np.add(now[:-2, 1:-1], now[2:, 1:-1], out=target)
    target += now[1:-1, :-2]
    target += now[1:-1, 2:]
    target *= 0.25
    target += load


def global_norm(comm: MPI.Intracomm, values: FloatArray) -> float:
    """Return the L2 norm of a distributed array: one MPI_Allreduce of 8 bytes."""
    total = np.array([np.sum(values * values)])
    comm.Allreduce(MPI.IN_PLACE, total, op=MPI.SUM)
    return float(np.sqrt(total[0]))


def gather_field(band: Band, field: FloatArray) -> FloatArray | None:
    """Return the interior of the whole field on rank 0: one MPI_Gatherv of rows x points doubles per rank."""
    part = np.ascontiguousarray(field[1:-1, 1:-1])
    whole = np.empty((band.points, band.points)) if band.comm.rank == 0 else None
    counts = [rows * band.points for rows in band.counts]
    band.comm.Gatherv(part, None if whole is None else (whole, counts), root=0)
    return whole


def run(comm: MPI.Intracomm, arguments: Arguments) -> bool:
    """Iterate, verify and print one line on rank 0; return whether the result is right (on every rank the same)."""
    band = make_band(comm, arguments.points)
    exact = solution(band)
    # A Jacobi iteration multiplies the error in this eigenvector by cos(pi h), and its load is 1 - cos(pi h) of it.
    factor = float(np.cos(np.pi / (arguments.points + 1)))
    load = (1.0 - factor) * exact
    now = np.zeros((band.rows + 2, arguments.points + 2))
    following = np.zeros_like(now)
    residual = 0.0
    for iteration in range(1, arguments.iterations + 1):
        exchange_rows(band, now)
        sweep(now, following, load)
        if iteration % arguments.interval == 0:
            residual = global_norm(comm, following[1:-1, 1:-1] - now[1:-1, 1:-1])
        now, following = following, now

    expected = 1.0 - factor**arguments.iterations
    error = np.array([np.max(np.abs(now[1:-1, 1:-1] - expected * exact))])
    comm.Allreduce(MPI.IN_PLACE, error, op=MPI.MAX)
    # No error grows: the weights are positive and add up to 1. The factor itself is rounded, and so is every step.
    tolerance = 8 * np.finfo(np.float64).eps * (arguments.iterations + 4)
    verified = bool(error[0] <= tolerance)
    whole = gather_field(band, now)
    if whole is not None:
        print(
            f"jacobi ranks={comm.size} points={arguments.points}x{arguments.points} iterations={arguments.iterations} "
            f"residual={residual:.15e} norm={float(np.sqrt(np.sum(whole * whole))):.15e} "
            f"field={zlib.crc32(whole.tobytes()):08x} error={error[0]:.3e} {'verified' if verified else 'WRONG'}",
            flush=True,
        )
    return verified


def main() -> int:
    """Run the program; return its exit status."""
    comm = MPI.COMM_WORLD
    try:
        arguments = agree_on_arguments(comm, sys.argv[1:])
    except UsageError as error:
        if comm.rank == 0:
            print(f"jacobi.py: {error}\n{USAGE}", end="", file=sys.stderr)
        return EXIT_USAGE
    return 0 if run(comm, arguments) else EXIT_WRONG_RESULT


if __name__ == "__main__":
    sys.exit(main())
